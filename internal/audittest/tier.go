package audittest

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/catalog/sqlite"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

// The margins of every tier.
const (
	ReadGrace   = 10 * time.Minute
	OrphanGrace = time.Hour
	// OwnerLease is the chain's owner's.
	OwnerLease = 10_000 * time.Hour
)

// Tier is a bucket, a catalog and one chain's writer.
type Tier struct {
	T       testing.TB
	Clock   *Clock
	Mem     *memstore.Driver
	Store   *objstore.Store
	Classes objstore.Classes
	DB      catalog.Catalog
	Writer

	// Settling is how settlers and auditors made from now on move rows: every standing
	// slot at once, and nothing of what the other policies would do (see Policies).
	Settling settle.Config
	// GCLeast of auditors made from now on; 0: their default.
	GCLeast int64

	// Damaged skips fsck at the end, for tests that do damage on purpose.
	Damaged bool

	mu        sync.Mutex // lastNamed
	lastNamed map[string]time.Time
}

// New makes a tier whose cleanup checks it, on the catalog in memory. opt's clock,
// referee and exemptions are filled in.
func New(t testing.TB, opt memstore.Options) *Tier {
	t.Helper()
	return open(t, opt, true, inMemory)
}

// NewOnSQLite is New on a real database, with its locks and its groups of commits.
func NewOnSQLite(t testing.TB, opt memstore.Options) *Tier {
	t.Helper()
	return open(t, opt, true, onSQLite)
}

func inMemory(_ testing.TB, clock func() time.Time) (catalog.Catalog, error) {
	return memory.New(memory.Options{Clock: clock}), nil
}

func onSQLite(t testing.TB, clock func() time.Time) (catalog.Catalog, error) {
	return sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(memDir(t), "catalog.db"), Create: true, Clock: clock, CacheBytes: 4 << 20})
}

func open(t testing.TB, opt memstore.Options, settled bool, catalogOf func(testing.TB, func() time.Time) (catalog.Catalog, error)) *Tier {
	t.Helper()
	x := &Tier{T: t, Clock: NewClock(), lastNamed: map[string]time.Time{}, Settling: settle.Config{
		SettleAge: -1, StreamObjectMin: 4 << 10, Workers: 1, TailTarget: 1, PackFan: 64,
	}}
	opt.Clock = x.Clock.Now
	opt.CheckDelete = x.checkDelete
	opt.MayReadDeleted = func(string) bool { return true } // probes after an interrupted delete
	x.Mem = memstore.New(opt)
	x.Store = x.Open(x.Mem)
	x.Classes = objstore.Classes{string(segment.ClassStandard): {x.Store}}
	db, err := catalogOf(t, x.Clock.Now)
	x.Must(err)
	x.DB = db
	t.Cleanup(func() {
		x.check()
		x.Must(db.Close())
	})
	x.seed(settled)
	x.Clock.around = x.lookAtRefs
	return x
}

// memDir is a directory in memory where there is one: durability is not what these
// tests are about, and a sweep opens hundreds of catalogs.
func memDir(t testing.TB) string {
	const shm = "/dev/shm"
	if dir, err := os.MkdirTemp(shm, "audittest-"); err == nil {
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
		return dir
	}
	return t.TempDir()
}

func (x *Tier) seed(settled bool) {
	ctx := x.T.Context()
	settings, err := x.DB.Init(ctx, uuid.New())
	x.Must(err)
	stamp, err := segment.EncodeStamp(segment.Stamp{Deployment: settings.Deployment, Class: segment.ClassStandard})
	x.Must(err)
	_, err = x.Store.PutOnce(ctx, segment.StampKey(), stamp, nil)
	x.Must(err)
	_, err = x.DB.SeedReadGrace(ctx, ReadGrace)
	x.Must(err)
	_, err = x.DB.SeedOrphanGrace(ctx, OrphanGrace)
	x.Must(err)
	_, err = x.DB.EnsureTopology(ctx, catalog.Topology{Epoch: 1, Shards: 1, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: settled, State: catalog.TopologyOpen})
	x.Must(err)
	x.Writer = Writer{x: x, Chain: segment.Chain{Epoch: 1}, owner: uuid.New(), next: 1, id: 1}
	row, err := x.DB.AcquireChain(ctx, catalog.Acquire{Chain: x.Chain, Owner: x.owner, Address: "test", Lease: OwnerLease})
	x.Must(err)
	x.term = row.Term
}

// Open puts a Store without pauses around a driver.
func (x *Tier) Open(d objstore.Driver) *objstore.Store {
	s, err := objstore.New(d, objstore.Config{Sleep: func(context.Context, time.Duration) error { return nil }})
	x.Must(err)
	return s
}

// Must fails the test on an error.
func (x *Tier) Must(err error) {
	x.T.Helper()
	if err != nil {
		x.T.Fatal(err)
	}
}

// Ctx outlives the test, for what cleanups do.
func (x *Tier) Ctx() context.Context { return context.WithoutCancel(x.T.Context()) }

// Logger drops everything.
func Logger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// Policies lets the other policies work too, at sizes that a test reaches: a pack-merge
// of two packs, tail objects up to 32 KiB, a gc of what is half dead.
func (x *Tier) Policies() {
	x.Settling.PackFan, x.Settling.TailTarget, x.GCLeast = 2, 32<<10, 1
}

// Settler moves as Settling says.
func (x *Tier) Settler(store *objstore.Store, cat settle.Catalog) *settle.Settler {
	s, err := settle.New(settle.Deps{
		Catalog: cat, Classes: objstore.Classes{string(segment.ClassStandard): {store}}, Clock: x.Clock.Now,
		Logger: Logger(), NewNonce: uuid.NewString, NewUUID: uuid.New,
	}, x.Settling)
	x.Must(err)
	return s
}

// Auditor is one with id, working one thing at a time.
func (x *Tier) Auditor(id string, cfg auditor.Config) *auditor.Auditor {
	return x.AuditorOn(id, cfg, x.Store, x.DB)
}

// AuditorOn works through a store and a catalog of the caller's.
func (x *Tier) AuditorOn(id string, cfg auditor.Config, store *objstore.Store, cat catalog.Catalog) *auditor.Auditor {
	x.T.Helper()
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 1
	}
	if cfg.GCLeast == 0 {
		cfg.GCLeast = x.GCLeast
	}
	a, err := auditor.New(auditor.Deps{
		ID: id, Catalog: cat, Classes: objstore.Classes{string(segment.ClassStandard): {store}},
		Settler: x.Settler(store, cat), Logger: Logger(), Clock: x.Clock.Now, Wait: x.Clock.Wait,
	}, cfg)
	x.Must(err)
	return a
}

// SettleAll settles until the chain is idle.
func (x *Tier) SettleAll() {
	x.T.Helper()
	s := x.Settler(x.Store, x.DB)
	for range 100 {
		rep, err := s.RunOnce(x.Ctx(), x.Chain, "settler")
		x.Must(err)
		if rep.Idle != "" {
			return
		}
		if len(rep.Failures) > 0 {
			x.T.Fatalf("settle: %+v", rep.Failures)
		}
	}
	x.T.Fatal("the chain never got idle")
}

// RunDry runs auditors with time passing until the tier owes nothing but its
// daily looks: every grace, the orphan grace and the day of a burned key are over.
func (x *Tier) RunDry() {
	x.T.Helper()
	const rounds = 16 // a burned key that can still be derived is looked at daily for ever
	x.RunDryIn(rounds)
}

// RunDryIn is RunDry for a tier whose debts come due at many different times.
func (x *Tier) RunDryIn(rounds int) {
	x.T.Helper()
	var last error
	for range rounds {
		_, last = x.Auditor("dry", auditor.Config{}).Once(x.Ctx(), auditor.OnceOptions{})
		due, owed, err := x.DB.NextDue(x.Ctx(), []catalog.Duty{
			catalog.DutySettle, catalog.DutyPackMerge, catalog.DutyTailFill, catalog.DutyGC, catalog.DutyTrimCheck, catalog.DutyReapCheck, catalog.DutyOrphan, catalog.DutyTeardown, catalog.DutyReclaim,
		})
		x.Must(err)
		if !owed {
			break
		}
		x.Clock.Advance(max(due.Sub(x.Clock.Now()), time.Second))
	}
	x.Must(last)
}

// Take leases the due markers of a duty.
func (x *Tier) Take(d catalog.Duty) []catalog.Marker {
	x.T.Helper()
	ms, err := x.DB.TakeDue(x.Ctx(), catalog.Take{Duties: []catalog.Duty{d}, Owner: "test", Lease: time.Second, Limit: 1000})
	x.Must(err)
	return ms
}

// Markers are all standing ones of a duty.
func (x *Tier) Markers(d catalog.Duty) []catalog.Marker {
	x.T.Helper()
	ms, err := x.DB.MarkersOf(x.Ctx(), d, "", 1000)
	x.Must(err)
	return ms
}

// Intents are all of them.
func (x *Tier) Intents() []catalog.Intent {
	x.T.Helper()
	in, err := x.DB.Intents(x.Ctx(), "", 1000)
	x.Must(err)
	return in
}

// Keys are the bucket's keys of some kinds, in order; all of them without kinds.
func (x *Tier) Keys(kinds ...segment.KeyKind) []string {
	return slices.DeleteFunc(x.Mem.Keys(), func(key string) bool {
		k, err := segment.ParseKey(key)
		return len(kinds) > 0 && (err != nil || !slices.Contains(kinds, k.Kind))
	})
}

// Settled are the keys of settled objects.
func (x *Tier) Settled() []string { return x.Keys(segment.KeyStream, segment.KeyPack) }

// Slots are the keys of slots.
func (x *Tier) Slots() []string { return x.Keys(segment.KeySlot) }

// Audited are the audit rows of a kind.
func (x *Tier) Audited(kind string) []catalog.AuditRow {
	x.T.Helper()
	rows, err := x.DB.AuditRows(x.Ctx(), 0, 10_000)
	x.Must(err)
	return slices.DeleteFunc(rows, func(r catalog.AuditRow) bool { return r.Kind != kind })
}

// Another is an empty bucket beside the tier's, with its clock.
func (x *Tier) Another() *objstore.Store {
	return x.Open(memstore.New(memstore.Options{Clock: x.Clock.Now}))
}
