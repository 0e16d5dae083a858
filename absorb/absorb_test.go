package absorb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/sqlite"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a chain of shard 0 with slots made by hand.
type world struct {
	t     *testing.T
	mem   *memstore.Driver
	b     Bucket
	cat   *sqlite.DB
	now   *clock
	chain segment.Chain
	who   Caller

	prev segment.UUID
	next segment.Seq
	at   segment.ID
}

type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func newWorld(t *testing.T, wrap func(objstore.Driver) objstore.Driver) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{t: t, mem: memstore.New(memstore.Options{}), chain: segment.Chain{Epoch: 1}, next: 1, at: 1}
	w.now = &clock{t: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	if wrap == nil {
		wrap = func(d objstore.Driver) objstore.Driver { return d }
	}
	w.b = Bucket{Set: objstore.Set{newStore(t, wrap(w.mem))}, Class: segment.ClassStandard}
	cat, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(t.TempDir(), "c.db"), Create: true, Clock: w.now.now, CacheBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	w.cat = cat
	t.Cleanup(func() {
		if err := cat.Close(); err != nil {
			t.Error(err)
		}
		for _, v := range w.mem.Violations() {
			t.Errorf("the bucket's referee: %s", v)
		}
	})
	if _, err := cat.Init(ctx, uuid.New()); err != nil {
		t.Fatal(err)
	}
	topo := catalog.Topology{Epoch: 1, Shards: 1, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: true, State: catalog.TopologyOpen}
	if _, err := cat.EnsureTopology(ctx, topo); err != nil {
		t.Fatal(err)
	}
	w.who = w.acquire(uuid.New())
	return w
}

func (w *world) acquire(owner segment.UUID) Caller {
	w.t.Helper()
	row, err := w.cat.AcquireChain(w.t.Context(), catalog.Acquire{Chain: w.chain, Owner: owner, Lease: time.Minute, Expect: w.row().Term, Steal: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return Caller{Owner: owner, Term: row.Term}
}

func newStore(t *testing.T, d objstore.Driver) *objstore.Store {
	t.Helper()
	s, err := objstore.New(d, objstore.Config{Attempts: 2, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *world) row() catalog.ChainRow {
	w.t.Helper()
	row, err := w.cat.Chain(w.t.Context(), w.chain)
	if err != nil {
		w.t.Fatal(err)
	}
	return row
}

// slot is what a writer would publish at the next position.
type slot struct {
	key  string
	body []byte
	meta map[string]string
	f    *segment.Footer
	id   segment.ID
}

func (w *world) makeSlot(term segment.Term, streams ...string) slot {
	w.t.Helper()
	u := uuid.New()
	start := segment.Start{Chain: w.chain, ID: w.at, Base: w.next, Term: term, Prev: w.prev}
	payload, err := segment.AppendStart(nil, &start)
	if err != nil {
		w.t.Fatal(err)
	}
	file := segment.AppendHeader(nil, u)
	frame := func(k segment.Kind, p []byte) {
		if file, err = segment.AppendFrame(file, u, int64(len(file)), k, 0, p); err != nil {
			w.t.Fatal(err)
		}
	}
	frame(segment.KindStart, payload)
	next := w.next
	for _, s := range streams {
		b := segment.Batch{Stream: s, First: next, Rows: []segment.Row{{Payload: []byte(s)}, {Payload: []byte("second")}}}
		p, err := segment.AppendBatch(nil, &b)
		if err != nil {
			w.t.Fatal(err)
		}
		frame(segment.KindBatch, p)
		next += 2
	}
	frame(segment.KindSeal, segment.AppendSeal(nil, segment.Seal{Frames: uint32(1 + len(streams)), Next: next, Digest: xxhash.Sum64(file)}))
	bundle, err := segment.PlanBundle(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		w.t.Fatal(err)
	}
	var body bytes.Buffer
	f, err := bundle.WriteTo(&body, segment.BundleOptions{Object: uuid.New(), Writer: "test", ID: w.at, Sealed: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	s := slot{segment.SlotKey(w.chain, w.at), body.Bytes(), bundle.Meta(), f, w.at}
	w.prev, w.next, w.at = u, next, w.at+1
	return s
}

func (w *world) put(s slot) slot {
	w.t.Helper()
	if _, err := w.b.Set.First().PutOnce(w.t.Context(), s.key, s.body, s.meta); err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) all(who Caller) (Report, error) {
	return All(w.t.Context(), w.cat, w.b, w.chain, who)
}

func (w *world) plan(stream string) string {
	w.t.Helper()
	p, err := w.cat.Plan(w.t.Context(), catalog.PlanRequest{Stream: stream, Limit: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, r := range p.Refs {
		out = append(out, fmt.Sprintf("%d-%d@%s", r.First, r.Last, r.Key[len(r.Key)-1:]))
	}
	return fmt.Sprint(out)
}

// TestAll absorbs what stands, in order, once, up to the first gap.
func TestAll(t *testing.T) {
	w := newWorld(t, nil)
	w.put(w.makeSlot(1, "a", "b"))
	w.put(w.makeSlot(1, "a"))
	w.put(w.makeSlot(1))
	w.makeSlot(1, "a")        // never published
	w.put(w.makeSlot(1, "b")) // stands behind a gap
	done, err := w.all(w.who)
	if err != nil || done != (Report{Absorbed: 3}) {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := w.plan("a"); got != "[1-2@1 5-6@2]" {
		t.Errorf("a: %s", got)
	}
	if row := w.row(); row.AbsorbedEnd != 4 || row.NextSeq != 7 {
		t.Errorf("%+v", row)
	}
	if done, err := w.all(w.who); err != nil || done != (Report{}) {
		t.Errorf("again: %+v, %v", done, err)
	}
}

// TestFromFooterIsWhatIsReadBack: the owner's footer and the bucket's give one absorb.
func TestFromFooterIsWhatIsReadBack(t *testing.T) {
	w := newWorld(t, nil)
	s := w.put(w.makeSlot(1, "a", "b"))
	got, err := Read(t.Context(), w.b, w.chain, s.id)
	if err != nil {
		t.Fatal(err)
	}
	mine := FromFooter(s.f, w.b, s.key, int64(len(s.body)), w.who)
	theirs := FromFooter(got.Footer, w.b, got.Key, got.Info.Size, w.who)
	if fmt.Sprintf("%+v", mine) != fmt.Sprintf("%+v", theirs) {
		t.Errorf("built %+v\nread  %+v", mine, theirs)
	}
	if len(mine.Refs) != 2 || mine.Refs[0].Rows != 2 || mine.Refs[0].Chunks != 1 || mine.Refs[0].Revision != -1 {
		t.Errorf("%+v", mine.Refs)
	}
}

// TestK21 a transient error is never "absent", and never a finding.
func TestK21(t *testing.T) {
	for _, kind := range []error{objstore.ErrUnavailable, objstore.ErrDenied, objstore.ErrShort} {
		var sick bool
		w := newWorld(t, func(d objstore.Driver) objstore.Driver {
			return faultstore.Wrap(d, func(c faultstore.Call) faultstore.Fault {
				if sick && c.Op == objstore.OpGet {
					return faultstore.Fault{Kind: faultstore.NotApplied, Err: kind}
				}
				return faultstore.Fault{}
			})
		})
		w.put(w.makeSlot(1, "a"))
		sick = true
		done, err := w.all(w.who)
		var found *Finding
		if err == nil || errors.As(err, &found) || errors.Is(err, objstore.ErrNotFound) || done != (Report{}) {
			t.Errorf("%v: %+v, %v", kind, done, err)
		}
		if row := w.row(); row.AbsorbedEnd != 1 {
			t.Errorf("%v: absorbed_end moved to %d", kind, row.AbsorbedEnd)
		}
		sick = false
		if done, err := w.all(w.who); err != nil || done.Absorbed != 1 {
			t.Errorf("healed: %+v, %v", done, err)
		}
	}
}

// TestOneBadReadIsNoFinding: wrong bytes once, good ones the second time.
func TestOneBadReadIsNoFinding(t *testing.T) {
	gets := 0
	w := newWorld(t, func(d objstore.Driver) objstore.Driver {
		return faultstore.Wrap(d, func(c faultstore.Call) faultstore.Fault {
			if c.Op == objstore.OpGet {
				if gets++; gets == 2 { // the footer, from its first byte on
					return faultstore.Fault{Kind: faultstore.WrongBytes}
				}
			}
			return faultstore.Fault{}
		})
	})
	s := w.put(w.makeSlot(1, manyStreams(2000)...))
	if _, err := Slot(t.Context(), w.cat, w.b, w.chain, s.id, w.who); err != nil || gets != 4 {
		t.Errorf("%v after %d GETs, 4 are two whole reads", err, gets)
	}
}

func manyStreams(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("stream-with-a-long-name-%06d", i)
	}
	return out
}

// TestFindings: what stands and is no slot of this position can only be voided.
func TestFindings(t *testing.T) {
	for name, c := range map[string]func(w *world, s *slot){
		"empty":          func(_ *world, s *slot) { s.body = nil },
		"short":          func(_ *world, s *slot) { s.body = s.body[:20] },
		"cut":            func(_ *world, s *slot) { s.body = s.body[:len(s.body)-1] },
		"flipped footer": func(_ *world, s *slot) { s.body[len(s.body)-60] ^= 1 },
		"no metadata":    func(_ *world, s *slot) { s.meta = nil },
		"other metadata": func(w *world, s *slot) { s.meta = segment.SlotMeta{UUID: uuid.New(), Length: 1}.Map() },
		"other position": func(w *world, s *slot) { s.key = segment.SlotKey(w.chain, 1) },
		"wrong prev":     func(w *world, s *slot) { w.at, w.prev = 1, uuid.New(); *s = w.makeSlot(1, "a") },
		"wrong base":     func(w *world, s *slot) { w.at, w.next, w.prev = 1, 9, uuid.Nil; *s = w.makeSlot(1, "a") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			if name == "other position" {
				w.at = 7
			}
			s := w.makeSlot(1, "a")
			c(w, &s)
			w.put(s)
			_, err := Slot(t.Context(), w.cat, w.b, w.chain, 1, w.who)
			var found *Finding
			if !errors.As(err, &found) || !errors.Is(err, ErrStructural) {
				t.Fatalf("%v", err)
			}
			if row := w.row(); row.AbsorbedEnd != 1 {
				t.Errorf("a finding alone moved absorbed_end to %d", row.AbsorbedEnd)
			}
			stranger := Caller{Owner: uuid.New(), Term: w.who.Term}
			if _, err := Void(t.Context(), w.cat, w.b, found, stranger); err == nil {
				t.Error("a stranger voided it")
			}
			if _, err := Void(t.Context(), w.cat, w.b, found, Caller{}); err == nil {
				t.Error("voided by nobody under a living lease")
			}
			for range 2 { // the second time it is the same act
				if _, err := Void(t.Context(), w.cat, w.b, found, w.who); err != nil {
					t.Fatal(err)
				}
			}
			row := w.row()
			if row.AbsorbedEnd != 2 || row.NextSeq != 1 || row.LastUUID != uuid.Nil {
				t.Errorf("%+v", row)
			}
			w.at, w.next, w.prev = 2, 1, uuid.Nil
			w.put(w.makeSlot(1, "a"))
			if done, err := w.all(w.who); err != nil || done.Absorbed != 1 {
				t.Errorf("the chain goes on: %+v, %v", done, err)
			}
		})
	}
}

// TestLowerTermIsVoided: a late fence of an old owner, met by the present one.
func TestLowerTermIsVoided(t *testing.T) {
	w := newWorld(t, nil)
	w.put(w.makeSlot(1, "a"))
	w.who = w.acquire(uuid.New())
	w.put(w.makeSlot(2, "a"))
	prev, next := w.prev, w.next
	w.put(w.makeSlot(1, "a"))
	w.prev, w.next = prev, next
	w.put(w.makeSlot(2, "a"))
	done, err := w.all(w.who)
	if err != nil || done != (Report{Absorbed: 3, Voided: 1}) {
		t.Errorf("%+v, %v", done, err)
	}
	if got := w.plan("a"); got != "[1-2@1 3-4@2 5-6@4]" {
		t.Errorf("a: %s", got)
	}
	rows, err := w.cat.AuditRows(t.Context(), 0, 100)
	if err != nil || !slices.ContainsFunc(rows, func(r catalog.AuditRow) bool { return r.Kind == "void" }) {
		t.Errorf("no audit record of the void: %+v, %v", rows, err)
	}
}

// TestAbsorbByTwo: owner and auditor at once; each slot once.
func TestAbsorbByTwo(t *testing.T) {
	w := newWorld(t, nil)
	for range 12 {
		w.put(w.makeSlot(1, "a", "b"))
	}
	w.now.advance(time.Hour)
	var wg sync.WaitGroup
	sum := make([]Report, 3)
	for i, who := range []Caller{w.who, {}, {}} {
		wg.Go(func() {
			var err error
			if sum[i], err = w.all(who); err != nil {
				t.Errorf("absorber %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if n := sum[0].Absorbed + sum[1].Absorbed + sum[2].Absorbed; n != 12 {
		t.Errorf("%d absorbs of 12 slots: %+v", n, sum)
	}
	if row := w.row(); row.AbsorbedEnd != 13 {
		t.Errorf("%+v", row)
	}
}

// TestFencedCallerStops: it is the owner no more.
func TestFencedCallerStops(t *testing.T) {
	w := newWorld(t, nil)
	old := w.who
	w.put(w.makeSlot(1, "a"))
	w.acquire(uuid.New())
	if _, err := w.all(old); !errors.Is(err, catalog.ErrFenced) {
		t.Errorf("%v", err)
	}
	if row := w.row(); row.AbsorbedEnd != 1 {
		t.Errorf("%+v", row)
	}
}

// TestChecker absorbs for chains whose lease has ended, and for no other.
func TestChecker(t *testing.T) {
	w := newWorld(t, nil)
	w.put(w.makeSlot(1, "a"))
	k := Checker{Catalog: w.cat, Classes: objstore.Classes{"standard": w.b.Set}}
	if done, err := k.RunOnce(t.Context()); err != nil || done != (Report{}) {
		t.Errorf("under a living lease: %+v, %v", done, err)
	}
	w.now.advance(2 * time.Minute)
	if done, err := k.RunOnce(t.Context()); err != nil || done.Absorbed != 1 {
		t.Errorf("after its end: %+v, %v", done, err)
	}
	k.Classes = nil
	if _, err := k.RunOnce(t.Context()); !errors.Is(err, objstore.ErrInvalid) {
		t.Errorf("without its bucket: %v", err)
	}
}

// TestDifferingCopyIsReported and left alone.
func TestDifferingCopyIsReported(t *testing.T) {
	w := newWorld(t, nil)
	second := memstore.New(memstore.Options{})
	w.b.Set = append(w.b.Set, newStore(t, second))
	s := w.put(w.makeSlot(1, "a"))
	w.at, w.next, w.prev = 1, 1, uuid.Nil
	other := w.makeSlot(1, "z")
	if _, err := w.b.Set[1].PutOnce(t.Context(), other.key, other.body, other.meta); err != nil {
		t.Fatal(err)
	}
	if done, err := w.all(w.who); err != nil || done.Absorbed != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if !bytes.Equal(second.Dump()[s.key], other.body) {
		t.Error("the copy was changed")
	}
	rows, err := w.cat.AuditRows(t.Context(), 0, 100)
	if err != nil || !slices.ContainsFunc(rows, func(r catalog.AuditRow) bool { return r.Kind == "damage" && r.Subject == s.key }) {
		t.Errorf("not reported: %+v, %v", rows, err)
	}
}

// TestLargeFooter needs a second GET, of exactly what is missing.
func TestLargeFooter(t *testing.T) {
	w := newWorld(t, nil)
	s := w.put(w.makeSlot(1, manyStreams(2000)...))
	before := w.b.Set.First().Counters()
	done, err := Slot(t.Context(), w.cat, w.b, w.chain, s.id, w.who)
	if err != nil || done.Inserted != 2000 {
		t.Errorf("%d refs, %v", done.Inserted, err)
	}
	if n := w.b.Set.First().Counters().Sub(before).Requests[objstore.OpGet]; n != 2 {
		t.Errorf("%d GETs", n)
	}
}
