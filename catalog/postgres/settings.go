package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

const settingDeployment = "deployment"

// Now is the clock that all verbs of this database judge by.
func (d *DB) Now(ctx context.Context) (now time.Time, err error) {
	err = d.read(ctx, "Now", func(t *tx) error {
		err := t.know()
		now = t.now
		return err
	})
	return now, err
}

// askSettings reads what stands; a deployment of Nil means never initialised.
func (t *tx) askSettings(how string) *catalog.Settings {
	out := &catalog.Settings{Schema: schemaVersion}
	t.ask("SELECT name, id, value, old, effective FROM settings"+how, func(scan column.Scan) error {
		var name string
		var id []byte
		var value, old, effective int64
		if err := scan(&name, &id, &value, &old, &effective); err != nil {
			return err
		}
		switch m := out.MarginOf(name); {
		case name == settingDeployment && len(id) == len(out.Deployment):
			copy(out.Deployment[:], id)
		case m != nil:
			*m = catalog.Margin{Seeded: true, Value: time.Duration(value), Old: time.Duration(old), Effective: column.At(effective)}
		default:
			return fmt.Errorf("%w: setting %q does not decode", catalog.ErrCorrupt, name)
		}
		return nil
	})
	return out
}

func (t *tx) settings(how string) (*catalog.Settings, error) {
	s := t.askSettings(how)
	return s, t.flush()
}

// grace is how long whoever deletes has to wait, read in this transaction.
func (t *tx) grace() (time.Duration, error) {
	s, err := t.settings("")
	return t.graceOf(s), err
}

func (t *tx) graceOf(s *catalog.Settings) time.Duration {
	return s.ReadGrace.Deleting(t.now, catalog.DefaultReadGrace)
}

func (t *tx) orphanGraceOf(s *catalog.Settings) time.Duration {
	return s.OrphanGrace.Deleting(t.now, catalog.DefaultOrphanGrace)
}

// Settings is what stands.
func (d *DB) Settings(ctx context.Context) (out catalog.Settings, err error) {
	err = d.read(ctx, "Settings", func(t *tx) error {
		s, err := t.settings("")
		if out = *s; err != nil {
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
		t.exec("INSERT INTO settings VALUES ($1, $2, 0, 0, 0) ON CONFLICT DO NOTHING", settingDeployment, deployment[:])
		s, err := t.settings("")
		out = *s
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
		if err := t.know(); err != nil {
			return err
		}
		first := catalog.SeedMargin(v, t.now)
		t.exec("INSERT INTO settings VALUES ($1, '', $2, $3, $4) ON CONFLICT DO NOTHING", m.Name, int64(first.Value), int64(first.Old), column.Nanos(first.Effective))
		s, err := t.settings("")
		out = *m.Of(s)
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
		// Of two changes at once the second finds the first under way: it waits for the row,
		// or, where none stood, for the row's key.
		s, err := t.settings(" FOR UPDATE")
		if err != nil {
			return err
		}
		stood := *m.Of(s)
		if out, err = m.Change(s, v, t.now); err != nil || out == stood {
			return err
		}
		if !stood.Seeded {
			t.exec("INSERT INTO settings VALUES ($1, '', $2, $3, $4)", m.Name, int64(out.Value), int64(out.Old), column.Nanos(out.Effective))
			return nil
		}
		t.exec("UPDATE settings SET value = $2, old = $3, effective = $4 WHERE name = $1", m.Name, int64(out.Value), int64(out.Old), column.Nanos(out.Effective))
		return nil
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
		if err := t.know(); err != nil {
			return err
		}
		t.exec("INSERT INTO auditor VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET lease_end = excluded.lease_end", plain(id), column.Nanos(t.now.Add(lease)))
		t.exec("DELETE FROM auditor WHERE lease_end <= $1", column.Nanos(t.now))
		t.dropLeases()
		_, err := t.one("SELECT count(*) FROM auditor", nil, &live)
		return err
	})
	return live, err
}

// Audit appends a row.
func (d *DB) Audit(ctx context.Context, kind, subject, detail string) error {
	return d.write(ctx, "Audit", func(t *tx) error {
		err := t.know()
		t.audit(kind, subject, detail)
		return err
	})
}
