package auditbench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/sqlite"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/storebench"
	"github.com/strandline/strandline/internal/verbs"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

// The margins of every tier.
const (
	readGrace   = 10 * time.Minute
	orphanGrace = time.Hour
	ownerLease  = 10_000 * time.Hour
)

// tier is a deployment of its own: a directory of the bucket, a catalog, one chain.
type tier struct {
	clock   *clock
	driver  *under
	store   *objstore.Store
	classes objstore.Classes
	db      catalog.Catalog // what prepares is not counted
	cat     catalog.Catalog // and what the duties call is, in verbs
	verbs   atomic.Int64
	log     *slog.Logger
	caller  absorb.Caller
	chain   segment.Chain

	countOnly bool // tests of counts do not look at memory
}

// newTier founds one under a name of its own, for the author's slots.
func (b *bench) newTier(ctx context.Context, name string, a *author) (t *tier, err error) {
	t = &tier{clock: &b.clock, driver: &under{Driver: b.store.Driver(), dir: b.dir + name + "/"}, log: b.o.Logger, chain: a.chain}
	if t.store, err = objstore.New(t.driver, objstore.Config{}); err != nil {
		return nil, err
	}
	t.store.Narrow(b.store.Capabilities())
	t.classes = objstore.Classes{string(segment.ClassStandard): {t.store}}
	if t.db, err = b.catalog(ctx, filepath.Join(b.tmp, name), t.clock.now); err != nil {
		return nil, err
	}
	t.cat = verbs.Around(t.db, func(ctx context.Context, _ verbs.Verb, do func(context.Context) error) error {
		t.verbs.Add(1)
		return do(ctx)
	})
	if err := t.found(ctx, a); err != nil {
		return nil, errors.Join(err, t.db.Close())
	}
	return t, nil
}

// onDisk opens a catalog in a directory that is made for it.
func onDisk(ctx context.Context, dir string, now func() time.Time) (catalog.Catalog, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "catalog.db"), Create: true, Clock: now})
}

func (t *tier) found(ctx context.Context, a *author) error {
	if _, err := check.Ensure(ctx, t.db, t.classes); err != nil {
		return err
	}
	if _, err := t.db.SeedReadGrace(ctx, readGrace); err != nil {
		return err
	}
	if _, err := t.db.SeedOrphanGrace(ctx, orphanGrace); err != nil {
		return err
	}
	if _, err := t.db.EnsureTopology(ctx, catalog.Topology{
		Epoch: a.chain.Epoch, Shards: 1, Class: segment.ClassStandard, Buckets: []string{"bench"}, Settle: true, State: catalog.TopologyOpen,
	}); err != nil {
		return err
	}
	row, err := t.db.AcquireChain(ctx, catalog.Acquire{Chain: a.chain, Owner: a.owner, Address: "bench", Lease: ownerLease})
	t.caller = absorb.Caller{Owner: a.owner, Term: row.Term}
	return err
}

// within runs do in a tier of its own, and removes what that left: a large run would else
// fill the store. After an error the end of the run cleans up.
func (b *bench) within(ctx context.Context, name string, a *author, do func(t *tier) error) error {
	t, err := b.newTier(ctx, name, a)
	if err != nil {
		return err
	}
	if err := errors.Join(do(t), t.db.Close()); err != nil {
		return err
	}
	return storebench.Remove(ctx, b.store, t.driver.dir)
}

// publish puts slots and absorbs them.
func (t *tier) publish(ctx context.Context, slots ...*sealed) error {
	for _, s := range slots {
		if _, err := t.store.PutOnce(ctx, s.key, s.object, s.meta); err != nil {
			return err
		}
		in := absorb.FromFooter(s.footer, absorb.Bucket{Set: objstore.Set{t.store}, Class: segment.ClassStandard}, s.key, int64(len(s.object)), t.caller)
		if _, err := t.db.AbsorbSlot(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// settler settles what stands, at once, otherwise with the defaults but for cfg.
func (t *tier) settler(cfg settle.Config) (*settle.Settler, error) {
	cfg.SettleAge = -1
	return settle.New(settle.Deps{
		Catalog: t.cat, Classes: t.classes, Clock: t.clock.now, Logger: t.log, NewNonce: uuid.NewString, NewUUID: uuid.New,
	}, cfg)
}

// owner is who holds the leases.
const owner = "bench"

// settle runs batches until the chain owes none.
func (t *tier) settle(ctx context.Context, s *settle.Settler) (sum moved, err error) {
	for {
		rep, err := s.RunOnce(ctx, t.chain, owner)
		if err != nil {
			return sum, err
		}
		if rep.Idle != "" {
			return sum, nil
		}
		if err := sum.add(&rep); err != nil {
			return sum, err
		}
	}
}

// maxMarkers bounds a cascade: one that does not end is a fault of its policy.
const maxMarkers = 100_000

// markers serves what is due of these duties, and what that arms, until nothing is.
func (t *tier) markers(ctx context.Context, s *settle.Settler, duties ...catalog.Duty) (sum moved, err error) {
	for range maxMarkers {
		due, err := t.cat.TakeDue(ctx, catalog.Take{Duties: duties, Owner: owner, Lease: time.Minute, Limit: 1})
		if err != nil || len(due) == 0 {
			return sum, err
		}
		rep, err := s.RunMarker(ctx, due[0], owner)
		if err == nil && rep.Idle == "" {
			err = sum.add(&rep)
		}
		if err != nil {
			return sum, fmt.Errorf("%s %s: %w", due[0].Duty, due[0].ID, err)
		}
	}
	return sum, fmt.Errorf("%v: more than %d markers came due one after another", duties, maxMarkers)
}

// moved sums reports.
type moved struct {
	runs, slots, outputs int
	rows                 uint64
	raw, stored          int64
	through, serverSide  int64
}

func (m *moved) add(r *settle.Report) error {
	if len(r.Failures) > 0 {
		return fmt.Errorf("%d streams were left out, the first, %q: %w", len(r.Failures), r.Failures[0].Stream, r.Failures[0].Err)
	}
	m.runs++
	m.slots += r.Slots
	m.outputs += r.Outputs
	m.rows += r.Rows
	m.raw += r.RawBytes
	m.stored += r.StoredBytes
	m.through += r.Through
	m.serverSide += r.ServerSide
	return nil
}
