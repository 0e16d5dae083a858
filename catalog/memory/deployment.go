package memory

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// schemaVersion is what Settings answers: the rows are this build's, always.
const schemaVersion = 4

// Now is the clock that all verbs judge by.
func (c *Catalog) Now(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, typed("Now", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock(), catalog.CheckSession(ctx, "Now", c.session)
}

// Settings is what stands.
func (c *Catalog) Settings(ctx context.Context) (out catalog.Settings, err error) {
	err = c.read(ctx, "Settings", func(t *tx) error {
		out = t.stands()
		return out.Initialised()
	})
	return out, err
}

func (t *tx) stands() catalog.Settings {
	s := t.settings
	s.Schema = schemaVersion
	return s
}

// Init names the deployment, once.
func (c *Catalog) Init(ctx context.Context, deployment segment.UUID) (out catalog.Settings, err error) {
	if deployment == (segment.UUID{}) {
		return out, catalog.Invalid("Init", "no deployment id")
	}
	err = c.write(ctx, "Init", func(t *tx) error {
		if t.settings.Deployment == (segment.UUID{}) {
			t.settings.Deployment = deployment
		}
		out = t.stands()
		return nil
	})
	return out, err
}

// SeedReadGrace sets the read grace unless somebody did.
func (c *Catalog) SeedReadGrace(ctx context.Context, v time.Duration) (catalog.Margin, error) {
	return c.seed(ctx, catalog.ReadGraceMargin(), v)
}

// SeedOrphanGrace sets the orphan grace unless somebody did.
func (c *Catalog) SeedOrphanGrace(ctx context.Context, v time.Duration) (catalog.Margin, error) {
	return c.seed(ctx, catalog.OrphanGraceMargin(), v)
}

func (c *Catalog) seed(ctx context.Context, m catalog.SafetyMargin, v time.Duration) (out catalog.Margin, err error) {
	if err := m.ValidateSeed(v); err != nil {
		return out, err
	}
	err = c.write(ctx, "Seed "+m.Name, func(t *tx) error {
		stands := m.Of(&t.settings)
		if !stands.Seeded {
			*stands = catalog.SeedMargin(v, t.now)
		}
		out = *stands
		return nil
	})
	return out, err
}

// SetReadGrace changes the read grace, one old read grace from now.
func (c *Catalog) SetReadGrace(ctx context.Context, v time.Duration) (catalog.Margin, error) {
	return c.change(ctx, catalog.ReadGraceMargin(), v)
}

// SetOrphanGrace changes the orphan grace, one old orphan grace from now.
func (c *Catalog) SetOrphanGrace(ctx context.Context, v time.Duration) (catalog.Margin, error) {
	return c.change(ctx, catalog.OrphanGraceMargin(), v)
}

func (c *Catalog) change(ctx context.Context, m catalog.SafetyMargin, v time.Duration) (out catalog.Margin, err error) {
	err = c.write(ctx, "Set "+m.Name, func(t *tx) (err error) {
		if out, err = m.Change(&t.settings, v, t.now); err != nil {
			return err
		}
		*m.Of(&t.settings) = out
		return nil
	})
	if err != nil {
		return catalog.Margin{}, err
	}
	return out, nil
}

// grace is how long whoever deletes has to wait.
func (t *tx) grace() time.Duration {
	if t.skip[ReadGrace] {
		return 0
	}
	return t.settings.ReadGrace.Deleting(t.now, catalog.DefaultReadGrace)
}

func (t *tx) orphanGrace() time.Duration {
	return t.settings.OrphanGrace.Deleting(t.now, catalog.DefaultOrphanGrace)
}

// RegisterAuditor renews one lease, forgets those that ran out, of duties too (a holder
// that was killed gives none back), and counts.
func (c *Catalog) RegisterAuditor(ctx context.Context, id string, lease time.Duration) (live int, err error) {
	if id == "" || lease <= 0 {
		return 0, catalog.Invalid("RegisterAuditor", "id %q, lease %v", id, lease)
	}
	err = c.write(ctx, "RegisterAuditor", func(t *tx) error {
		t.auditor.set(id, nanos(t.now.Add(lease)))
		var over []string
		for k, end := range t.auditor.all() {
			if end <= nanos(t.now) {
				over = append(over, k)
			}
		}
		for _, k := range over {
			t.auditor.del(k)
		}
		t.dropLeases()
		live = t.auditor.n
		return nil
	})
	return live, err
}

// Audit appends a row.
func (c *Catalog) Audit(ctx context.Context, kind, subject, detail string) error {
	return c.write(ctx, "Audit", func(t *tx) error {
		t.record(kind, subject, detail)
		return nil
	})
}

func (t *tx) record(kind, subject, detail string) {
	t.lastAudit++
	t.audit.set(t.lastAudit, catalog.AuditRow{Seq: t.lastAudit, Time: t.now, Kind: kind, Subject: subject, Detail: detail})
	t.audit.del(t.lastAudit - catalog.AuditKept)
}
