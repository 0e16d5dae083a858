package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

const settingDeployment = "deployment"

// Now is the clock that all verbs of this database judge by.
func (d *DB) Now(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, mapError("Now", err)
	}
	if err := catalog.CheckSession(ctx, "Now", d.session); err != nil {
		return time.Time{}, err
	}
	return d.clock(), nil
}

// settings reads what stands; a deployment of Nil means never initialised.
func (t *tx) settings() (catalog.Settings, error) {
	out := catalog.Settings{Schema: schemaVersion}
	err := t.query("SELECT name, value, old, effective FROM settings", func(scan column.Scan) error {
		var name string
		var value any
		var old, effective int64
		if err := scan(&name, &value, &old, &effective); err != nil {
			return err
		}
		switch v := value.(type) {
		case []byte:
			if name == settingDeployment && len(v) == len(out.Deployment) {
				copy(out.Deployment[:], v)
				return nil
			}
		case int64:
			if m := out.MarginOf(name); m != nil {
				*m = catalog.Margin{Seeded: true, Value: time.Duration(v), Old: time.Duration(old), Effective: column.At(effective)}
				return nil
			}
		}
		return fmt.Errorf("%w: setting %q does not decode", catalog.ErrCorrupt, name)
	})
	return out, err
}

// Settings is what stands.
func (d *DB) Settings(ctx context.Context) (out catalog.Settings, err error) {
	err = d.read(ctx, "Settings", func(t *tx) (err error) {
		if out, err = t.settings(); err != nil {
			return err
		}
		return out.Initialised()
	})
	return out, err
}

// Init names the deployment, once.
func (d *DB) Init(ctx context.Context, deployment segment.UUID) (out catalog.Settings, err error) {
	if deployment == (segment.UUID{}) {
		return out, catalog.Invalid("Init", "no deployment id")
	}
	err = d.write(ctx, "Init", func(t *tx) error {
		if err := t.exec("INSERT INTO settings VALUES (?, ?, 0, 0) ON CONFLICT DO NOTHING", settingDeployment, deployment[:]); err != nil {
			return err
		}
		out, err = t.settings()
		return err
	})
	return out, err
}

// SeedReadGrace sets the read grace unless somebody did.
func (d *DB) SeedReadGrace(ctx context.Context, v time.Duration) (catalog.Margin, error) {
	return d.seed(ctx, catalog.ReadGraceMargin(), v)
}

// SeedOrphanGrace sets the orphan grace unless somebody did.
func (d *DB) SeedOrphanGrace(ctx context.Context, v time.Duration) (catalog.Margin, error) {
	return d.seed(ctx, catalog.OrphanGraceMargin(), v)
}

func (d *DB) seed(ctx context.Context, m catalog.SafetyMargin, v time.Duration) (out catalog.Margin, err error) {
	if err := m.ValidateSeed(v); err != nil {
		return out, err
	}
	err = d.write(ctx, "Seed "+m.Name, func(t *tx) error {
		first := catalog.SeedMargin(v, t.now)
		if err := t.exec("INSERT INTO settings VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", m.Name, int64(first.Value), int64(first.Old), column.Nanos(first.Effective)); err != nil {
			return err
		}
		s, err := t.settings()
		out = *m.Of(&s)
		return err
	})
	return out, err
}

// SetReadGrace changes the read grace, one old read grace from now.
func (d *DB) SetReadGrace(ctx context.Context, v time.Duration) (catalog.Margin, error) {
	return d.setMargin(ctx, catalog.ReadGraceMargin(), v)
}

// SetOrphanGrace changes the orphan grace, one old orphan grace from now.
func (d *DB) SetOrphanGrace(ctx context.Context, v time.Duration) (catalog.Margin, error) {
	return d.setMargin(ctx, catalog.OrphanGraceMargin(), v)
}

func (d *DB) setMargin(ctx context.Context, m catalog.SafetyMargin, v time.Duration) (out catalog.Margin, err error) {
	err = d.write(ctx, "Set "+m.Name, func(t *tx) error {
		s, err := t.settings()
		if err != nil {
			return err
		}
		if out, err = m.Change(&s, v, t.now); err != nil || out == *m.Of(&s) {
			return err
		}
		return t.exec(`INSERT INTO settings VALUES (?, ?, ?, ?)
 ON CONFLICT (name) DO UPDATE SET value = excluded.value, old = excluded.old, effective = excluded.effective`, m.Name, int64(out.Value), int64(out.Old), column.Nanos(out.Effective))
	})
	if err != nil {
		return catalog.Margin{}, err
	}
	return out, nil
}

// RegisterAuditor renews one lease, forgets those that ran out, of duties too (a holder
// that was killed gives none back), and counts.
func (d *DB) RegisterAuditor(ctx context.Context, id string, lease time.Duration) (live int, err error) {
	if id == "" || lease <= 0 {
		return 0, catalog.Invalid("RegisterAuditor", "id %q, lease %v", id, lease)
	}
	err = d.write(ctx, "RegisterAuditor", func(t *tx) error {
		e1 := t.exec("INSERT INTO auditor VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET lease_end = excluded.lease_end", id, column.Nanos(t.now.Add(lease)))
		e2 := t.exec("DELETE FROM auditor WHERE lease_end <= ?", column.Nanos(t.now))
		e3 := t.exec("DELETE FROM lease WHERE lease_end <= ?", column.Nanos(t.now))
		_, e4 := t.one("SELECT COUNT(*) FROM auditor", nil, &live)
		return errors.Join(e1, e2, e3, e4)
	})
	return live, err
}

// Audit appends a row.
func (d *DB) Audit(ctx context.Context, kind, subject, detail string) error {
	return d.write(ctx, "Audit", func(t *tx) error { return t.audit(kind, subject, detail) })
}
