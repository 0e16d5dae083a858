package crashpoints_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

// grace is a site's read grace: several of them pass within a third of a lease, so that
// a stalled owner's next renewal does not tell it of its successor.
const grace = time.Minute

var standard = string(segment.ClassStandard)

// site is a bucket and a catalog in memory, for writers on simulated disks and an auditor,
// in virtual time.
type site struct {
	t    *testing.T
	mem  *memstore.Driver
	cat  *memory.Catalog
	topo catalog.Topology

	mu    sync.Mutex // acked
	acked map[string][]string
}

// onSite runs a test in virtual time. Slots may be created anew: that a zombie does so is
// what one test is about.
func onSite(t *testing.T, test func(t *testing.T, s *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &site{t: t, cat: memory.New(memory.Options{}), acked: map[string][]string{}}
		s.mem = memstore.New(memstore.Options{
			CheckDelete:    s.checkDelete,
			MayReadDeleted: func(string) bool { return true },
			Mutable:        func(key string) bool { return strings.HasPrefix(key, "rw/") || strings.HasPrefix(key, "seg/") },
		})
		s.seed()
		test(t, s)
		if v := s.mem.Violations(); len(v) > 0 {
			t.Errorf("the referee: %v", v)
		}
	})
}

func (s *site) checkDelete(key string) error {
	refs, err := s.cat.Liveness(context.Background(), key)
	if err == nil && len(refs) > 0 {
		return errors.New("I2: a ref names it")
	}
	return err
}

func (s *site) seed() {
	ctx := s.t.Context()
	settings, err := s.cat.Init(ctx, uuid.New())
	s.must(err)
	stamp, err := segment.EncodeStamp(segment.Stamp{Deployment: settings.Deployment, Class: segment.ClassStandard})
	s.must(err)
	_, err = s.store(nil).PutOnce(ctx, segment.StampKey(), stamp, nil)
	s.must(err)
	_, err = s.cat.SeedReadGrace(ctx, grace)
	s.must(err)
	s.topo, err = s.cat.EnsureTopology(ctx, catalog.Topology{Epoch: 1, Shards: 1, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: true, State: catalog.TopologyOpen})
	s.must(err)
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// store is the bucket, through faults if there are any.
func (s *site) store(f *audittest.Faults) *objstore.Store {
	s.t.Helper()
	var d objstore.Driver = s.mem
	if f != nil {
		d = f.Driver(s.mem)
	}
	store, err := objstore.New(d, objstore.Config{Attempts: 3})
	s.must(err)
	return store
}

// through is the catalog, through faults if there are any.
func (s *site) through(f *audittest.Faults) catalog.Catalog {
	if f == nil {
		return s.cat
	}
	return f.Around(s.cat)
}

// open starts a writer on a disk; what it asks of catalog and bucket goes through f.
func (s *site) open(disk *powercut.FS, f *audittest.Faults, change ...func(*localtier.Options)) (*localtier.Writer, error) {
	s.t.Helper()
	o := localtier.Options{
		Dir: "/a", Catalog: s.through(f), Classes: objstore.Classes{standard: {s.store(f)}}, Topology: s.topo, Address: "a:1",
		Config: localtier.Config{WAL: wal.Config{FS: disk, Preallocate: wal.PreallocateOff}, MinFreeDisk: -1},
	}
	for _, c := range change {
		c(&o)
	}
	return localtier.Open(s.t.Context(), o)
}

func (s *site) mustOpen(disk *powercut.FS, f *audittest.Faults, change ...func(*localtier.Options)) *localtier.Writer {
	s.t.Helper()
	wr, err := s.open(disk, f, change...)
	s.must(err)
	return wr
}

// append appends one row, and remembers it if it was acknowledged.
func (s *site) append(wr *localtier.Writer, ack localtier.Ack, payload string) error {
	s.t.Helper()
	_, err := wr.Append(s.t.Context(), "s", []segment.Row{{Payload: []byte(payload)}}, ack)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.acked["s"] = append(s.acked["s"], payload)
	}
	return err
}

// powerCut ends a writer and its disk at once; what comes back holds what was synced, and
// a part of the rest drawn from the seed.
func (s *site) powerCut(wr *localtier.Writer, disk *powercut.FS, seed uint64) *powercut.FS {
	s.t.Helper()
	disk.PowerOff()
	ctx, cancel := context.WithCancel(s.t.Context())
	cancel()
	if err := wr.Close(ctx); err == nil {
		s.t.Error("closed well on a disk without power")
	}
	return disk.Cut(seed)
}

// audit runs an auditor once over what is due.
func (s *site) audit(f *audittest.Faults, cfg auditor.Config) error {
	s.t.Helper()
	classes := objstore.Classes{standard: {s.store(f)}}
	mover, err := settle.New(settle.Deps{
		Catalog: s.through(f), Classes: classes, Clock: time.Now, Logger: audittest.Logger(), NewNonce: uuid.NewString, NewUUID: uuid.New,
	}, settle.Config{SettleAge: -1, Workers: 1, TailTarget: 1, PackFan: 64})
	s.must(err)
	cfg.Concurrency = 1
	a, err := auditor.New(auditor.Deps{ID: "auditor", Catalog: s.through(f), Classes: classes, Settler: mover, Logger: audittest.Logger(), Clock: time.Now}, cfg)
	s.must(err)
	_, err = a.Once(s.t.Context(), auditor.OnceOptions{})
	return err
}

// owes are the duties that run dry.
var owes = []catalog.Duty{catalog.DutySettle, catalog.DutyTrimCheck, catalog.DutyReapCheck, catalog.DutyOrphan, catalog.DutyTeardown, catalog.DutyReclaim}

// converges: duties run dry, and then fsck finds nothing to say, no marker and no intent
// stands, and what was acknowledged reads back from the bucket, in order, each row once.
func (s *site) converges() {
	s.t.Helper()
	const rounds = 40
	var err error
	for range rounds {
		err = s.audit(nil, auditor.Config{Sweep: true})
		due, owed, derr := s.cat.NextDue(s.t.Context(), owes)
		s.must(derr)
		if !owed && len(s.slots()) == 0 {
			break
		}
		time.Sleep(min(max(time.Until(due), grace), time.Hour))
	}
	s.must(err)
	rep, err := check.Fsck(s.t.Context(), s.cat, objstore.Classes{standard: {s.store(nil)}}, check.Config{})
	s.must(err)
	if len(rep.Damage) > 0 || len(rep.Garbage) > 0 || rep.Waiting > 0 {
		s.t.Errorf("fsck: damage %+v, garbage %+v, %d wait", rep.Damage, rep.Garbage, rep.Waiting)
	}
	for _, d := range owes {
		ms, err := s.cat.MarkersOf(s.t.Context(), d, "", 10)
		s.must(err)
		if len(ms) > 0 {
			s.t.Errorf("a %s marker stands: %+v", d, ms[0])
		}
	}
	intents, err := s.cat.Intents(s.t.Context(), "", 10)
	s.must(err)
	if len(intents) > 0 {
		s.t.Errorf("intents %+v", intents)
	}
	if slots := s.slots(); len(slots) > 0 {
		s.t.Errorf("slots %v stand although all is settled", slots)
	}
	if got := s.stored("s"); !slices.Equal(got, s.acked["s"]) {
		s.t.Errorf("stored %q, acknowledged %q", got, s.acked["s"])
	}
}

// stored are a stream's payloads by bucket and catalog alone.
func (s *site) stored(stream string) (out []string) {
	s.t.Helper()
	r, err := coldload.New(s.cat, objstore.Classes{standard: {s.store(nil)}}, coldload.Config{})
	s.must(err)
	for row, err := range r.Rows(s.t.Context(), stream, segment.Pos{}, segment.Pos{}) {
		s.must(err)
		out = append(out, string(row.Payload))
	}
	return out
}

// slots are the keys of slots in the bucket.
func (s *site) slots() []string {
	return slices.DeleteFunc(s.mem.Keys(), func(key string) bool { return !strings.HasPrefix(key, "seg/") })
}

func (s *site) chain() catalog.ChainRow {
	s.t.Helper()
	row, err := s.cat.Chain(s.t.Context(), segment.Chain{Epoch: 1})
	s.must(err)
	return row
}
