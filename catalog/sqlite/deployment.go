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

const (
	settingDeployment  = "deployment"
	settingReadGrace   = "read-grace"
	settingOrphanGrace = "orphan-grace"
)

// Now is the clock that all verbs of this database judge by.
func (d *DB) Now(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, mapError("Now", err)
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
			m := catalog.Margin{Seeded: true, Value: time.Duration(v), Old: time.Duration(old), Effective: column.At(effective)}
			switch name {
			case settingReadGrace:
				out.ReadGrace = m
				return nil
			case settingOrphanGrace:
				out.OrphanGrace = m
				return nil
			}
		}
		return fmt.Errorf("%w: setting %q does not decode", catalog.ErrCorrupt, name)
	})
	return out, err
}

func (t *tx) initialised() (catalog.Settings, error) {
	s, err := t.settings()
	if err == nil && s.Deployment == (segment.UUID{}) {
		err = fmt.Errorf("%w: this catalog was never initialised; start a writer or `strandline up`, which founds a deployment in it", catalog.ErrNotFound)
	}
	return s, err
}

// Settings is what stands.
func (d *DB) Settings(ctx context.Context) (out catalog.Settings, err error) {
	err = d.read(ctx, "Settings", func(t *tx) (err error) {
		out, err = t.initialised()
		return err
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
	return d.seed(ctx, settingReadGrace, v, catalog.LeastReadGrace, func(s *catalog.Settings) catalog.Margin { return s.ReadGrace })
}

// SeedOrphanGrace sets the orphan grace unless somebody did.
func (d *DB) SeedOrphanGrace(ctx context.Context, v time.Duration) (catalog.Margin, error) {
	return d.seed(ctx, settingOrphanGrace, v, catalog.LeastOrphanGrace, func(s *catalog.Settings) catalog.Margin { return s.OrphanGrace })
}

func (d *DB) seed(ctx context.Context, name string, v, least time.Duration, get func(*catalog.Settings) catalog.Margin) (out catalog.Margin, err error) {
	if v < least {
		return out, catalog.Invalid("Seed", "%s of %v is below the least, %v", name, v, least)
	}
	err = d.write(ctx, "Seed "+name, func(t *tx) error {
		// The first value is in force at once: deleters waited the default until now, and
		// readers relied on the least.
		if err := t.exec("INSERT INTO settings VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", name, int64(v), int64(v), column.Nanos(t.now)); err != nil {
			return err
		}
		s, err := t.settings()
		out = get(&s)
		return err
	})
	return out, err
}

// SetReadGrace changes the read grace, one old read grace from now.
func (d *DB) SetReadGrace(ctx context.Context, v time.Duration) (catalog.Margin, error) {
	return d.setMargin(ctx, settingReadGrace, v, catalog.LeastReadGrace, func(s *catalog.Settings) catalog.Margin { return s.ReadGrace })
}

// SetOrphanGrace changes the orphan grace, one old orphan grace from now.
func (d *DB) SetOrphanGrace(ctx context.Context, v time.Duration) (catalog.Margin, error) {
	return d.setMargin(ctx, settingOrphanGrace, v, catalog.LeastOrphanGrace, func(s *catalog.Settings) catalog.Margin { return s.OrphanGrace })
}

func (d *DB) setMargin(ctx context.Context, name string, v, least time.Duration, get func(*catalog.Settings) catalog.Margin) (out catalog.Margin, err error) {
	err = d.write(ctx, "Set "+name, func(t *tx) error {
		s, err := t.settings()
		if err != nil {
			return err
		}
		if out, err = catalog.ChangeMargin("Set "+name, get(&s), v, least, t.now); err != nil || out == get(&s) {
			return err
		}
		return t.exec(`INSERT INTO settings VALUES (?, ?, ?, ?)
 ON CONFLICT (name) DO UPDATE SET value = excluded.value, old = excluded.old, effective = excluded.effective`, name, int64(out.Value), int64(out.Old), column.Nanos(out.Effective))
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
