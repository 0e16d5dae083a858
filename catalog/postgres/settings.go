package postgres

import (
	"context"
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
		m := catalog.Margin{Seeded: true, Value: time.Duration(value), Old: time.Duration(old), Effective: column.At(effective)}
		switch {
		case name == settingDeployment && len(id) == len(out.Deployment):
			copy(out.Deployment[:], id)
		case name == settingReadGrace:
			out.ReadGrace = m
		case name == settingOrphanGrace:
			out.OrphanGrace = m
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
		out = *s
		if err == nil && s.Deployment == (segment.UUID{}) {
			err = fmt.Errorf("%w: this catalog was never initialised; start a writer or `strandline up`, which founds a deployment in it", catalog.ErrNotFound)
		}
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
		t.exec("INSERT INTO settings VALUES ($1, $2, 0, 0, 0) ON CONFLICT DO NOTHING", settingDeployment, deployment[:])
		s, err := t.settings("")
		out = *s
		return err
	})
	return out, err
}

// margin is one of the two.
type margin struct {
	name  string
	least time.Duration
	get   func(*catalog.Settings) catalog.Margin
}

var (
	readGrace   = margin{settingReadGrace, catalog.LeastReadGrace, func(s *catalog.Settings) catalog.Margin { return s.ReadGrace }}
	orphanGrace = margin{settingOrphanGrace, catalog.LeastOrphanGrace, func(s *catalog.Settings) catalog.Margin { return s.OrphanGrace }}
)

// SeedReadGrace sets the read grace unless somebody did.
func (d *DB) SeedReadGrace(ctx context.Context, v time.Duration) (catalog.Margin, error) {
	return d.seed(ctx, readGrace, v)
}

// SeedOrphanGrace sets the orphan grace unless somebody did.
func (d *DB) SeedOrphanGrace(ctx context.Context, v time.Duration) (catalog.Margin, error) {
	return d.seed(ctx, orphanGrace, v)
}

func (d *DB) seed(ctx context.Context, m margin, v time.Duration) (out catalog.Margin, err error) {
	if v < m.least {
		return out, catalog.Invalid("Seed", "%s of %v is below the least, %v", m.name, v, m.least)
	}
	err = d.write(ctx, "Seed "+m.name, func(t *tx) error {
		if err := t.know(); err != nil {
			return err
		}
		// The first value is in force at once: deleters waited the default until now, and
		// readers relied on the least.
		t.exec("INSERT INTO settings VALUES ($1, '', $2, $3, $4) ON CONFLICT DO NOTHING", m.name, int64(v), int64(v), column.Nanos(t.now))
		s, err := t.settings("")
		out = m.get(s)
		return err
	})
	return out, err
}

// SetReadGrace changes the read grace, one old read grace from now.
func (d *DB) SetReadGrace(ctx context.Context, v time.Duration) (catalog.Margin, error) {
	return d.setMargin(ctx, readGrace, v)
}

// SetOrphanGrace changes the orphan grace, one old orphan grace from now.
func (d *DB) SetOrphanGrace(ctx context.Context, v time.Duration) (catalog.Margin, error) {
	return d.setMargin(ctx, orphanGrace, v)
}

func (d *DB) setMargin(ctx context.Context, m margin, v time.Duration) (out catalog.Margin, err error) {
	err = d.write(ctx, "Set "+m.name, func(t *tx) error {
		// Of two changes at once the second finds the first under way: it waits for the row,
		// or, where none stood, for the row's key.
		s, err := t.settings(" FOR UPDATE")
		if err != nil {
			return err
		}
		stood := m.get(s)
		if out, err = catalog.ChangeMargin("Set "+m.name, stood, v, m.least, t.now); err != nil || out == stood {
			return err
		}
		if !stood.Seeded {
			t.exec("INSERT INTO settings VALUES ($1, '', $2, $3, $4)", m.name, int64(out.Value), int64(out.Old), column.Nanos(out.Effective))
			return nil
		}
		t.exec("UPDATE settings SET value = $2, old = $3, effective = $4 WHERE name = $1", m.name, int64(out.Value), int64(out.Old), column.Nanos(out.Effective))
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
