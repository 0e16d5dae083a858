package catalogtest

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Options of a catalog to be made.
type Options struct {
	Clock func() time.Time
	// WindowRefs lowers catalog.MaxWindowRefs, if it is not 0.
	WindowRefs int
}

// Open makes an empty catalog; it is closed by t's cleanup.
type Open func(t *testing.T, o Options) catalog.Catalog

// Clock is a hand-wound clock.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock starts at a fixed moment.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

// Now reads it.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance winds it.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// readGrace and orphanGrace are what World seeds.
const (
	readGrace   = 10 * time.Second
	orphanGrace = time.Minute
	leaseTime   = 5 * time.Minute
	class       = segment.Class("express")
)

// World is a catalog with one epoch of two shards, whose chain 0 has an owner.
type World struct {
	T     *testing.T
	Ctx   context.Context
	C     catalog.Catalog
	Clock *Clock
	Chain segment.Chain
	Owner segment.UUID
	Term  segment.Term

	// What the next slot continues.
	Next segment.Seq
	ID   segment.ID
	Prev segment.UUID
}

// NewWorld opens and fills a catalog.
func NewWorld(t *testing.T, open Open) *World {
	t.Helper()
	return newWorld(t, open, Options{})
}

func newWorld(t *testing.T, open Open, o Options) *World {
	t.Helper()
	clock := NewClock()
	o.Clock = clock.Now
	w := &World{T: t, Ctx: context.Background(), C: open(t, o), Clock: clock, Chain: segment.Chain{Epoch: 1}, Owner: UUID(1), Next: 1, ID: 1}
	_, err := w.C.Init(w.Ctx, UUID(99))
	w.OK(err)
	_, err = w.C.SeedReadGrace(w.Ctx, readGrace)
	w.OK(err)
	_, err = w.C.SeedOrphanGrace(w.Ctx, orphanGrace)
	w.OK(err)
	_, err = w.C.EnsureTopology(w.Ctx, topology(1, true))
	w.OK(err)
	row, err := w.C.AcquireChain(w.Ctx, catalog.Acquire{Chain: w.Chain, Owner: w.Owner, Address: "a:1", Lease: leaseTime})
	w.OK(err)
	w.Term = row.Term
	return w
}

func topology(e segment.Epoch, settle bool) catalog.Topology {
	return catalog.Topology{Epoch: e, Shards: 2, Class: class, Buckets: []string{"b1", "b2"}, Settle: settle, State: catalog.TopologyOpen}
}

// UUID is the n-th.
func UUID(n uint64) (u segment.UUID) {
	u[0] = 0xaa
	binary.BigEndian.PutUint64(u[8:], n)
	return u
}

// OK fails the test on an error.
func (w *World) OK(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatalf("want no error, got %v", err)
	}
}

// Is fails the test unless err is of the kind, and, if guard is not empty, names it.
func (w *World) Is(err, kind error, guard string) {
	w.T.Helper()
	if !errors.Is(err, kind) {
		w.T.Fatalf("want %v, got %v", kind, err)
	}
	var c *catalog.ConflictError
	if guard != "" && (!errors.As(err, &c) || c.Guard != guard) {
		w.T.Fatalf("want guard %q, got %v", guard, err)
	}
}

// Equal compares.
func Equal[V comparable](t *testing.T, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// rowHash is what a row adds to a row sum.
func rowHash(s segment.Seq) uint64 { return (uint64(s) + 1) * 0x9e3779b97f4a7c15 }

const rowBytes = 100

// Span is rows of one stream, side by side.
type Span struct {
	Stream string
	Rows   int
}

// Spans reads "a:3 b:2".
func Spans(t *testing.T, s string) (out []Span) {
	t.Helper()
	for _, f := range strings.Fields(s) {
		name, n, _ := strings.Cut(f, ":")
		rows, err := strconv.Atoi(n)
		if err != nil {
			t.Fatalf("spans %q: %v", s, err)
		}
		out = append(out, Span{name, rows})
	}
	return out
}

// Build makes the next slot's absorb without sending it. Spans of one stream must
// come in the order of their names, as chunks do in a footer.
func (w *World) Build(spans string) catalog.Absorb {
	w.T.Helper()
	a := catalog.Absorb{
		Slot: catalog.SlotRow{
			Chain: w.Chain, ID: w.ID, First: w.Next, Bytes: 1000, UUID: UUID(1000 + uint64(w.ID)), Prev: w.Prev,
			Digest: 0xfedcba9876543210 + uint64(w.ID), Term: w.Term, Sealed: w.Clock.Now(),
		},
		Key: segment.SlotKey(w.Chain, w.ID), Class: class, CallerOwner: w.Owner, CallerTerm: w.Term,
	}
	next := w.Next
	for _, sp := range Spans(w.T, spans) {
		r := catalog.Ref{
			Stream: sp.Stream, Chain: w.Chain, First: next, Last: next + segment.Seq(sp.Rows) - 1, Kind: catalog.RefSlot, Revision: -1,
			Chunks: 1, Offset: int64(next) * 10, Stored: 50, Raw: 100, Codec: 1, CRC: 7, Sum: 1<<63 + 5,
		}
		describe(&r, func(segment.Seq) bool { return true })
		next = r.Last + 1
		a.Refs = append(a.Refs, r)
	}
	a.Slot.Next = next
	return a
}

// describe fills what says which rows a ref has, those of First to Last that in takes.
func describe(r *catalog.Ref, in func(segment.Seq) bool) {
	r.Rows, r.RowSum, r.Bytes = 0, 0, 0
	for s := r.First; s <= r.Last; s++ {
		if in(s) {
			r.Rows++
			r.RowSum += rowHash(s)
			r.Bytes += rowBytes
		}
	}
	r.MinTime, r.MaxTime = int64(r.First), int64(r.Last)
}

// Absorb sends the next slot and goes on behind it.
func (w *World) Absorb(spans string) catalog.Absorbed {
	w.T.Helper()
	a := w.Build(spans)
	got, err := w.C.AbsorbSlot(w.Ctx, a)
	w.OK(err)
	w.Continue(a)
	return got
}

// Continue takes an absorbed slot as what the next one continues.
func (w *World) Continue(a catalog.Absorb) {
	w.ID, w.Next, w.Prev = a.Slot.ID+1, a.Slot.Next, a.Slot.UUID
}

// Holder is the settle duty's on the chain, with its lease.
func (w *World) Holder() catalog.Holder {
	w.T.Helper()
	h := catalog.Holder{Duty: catalog.DutySettle, ID: catalog.ChainID(w.Chain), Owner: "auditor-1"}
	w.OK(w.C.LeaseDuty(w.Ctx, h, time.Hour))
	return h
}

// Announce writes an intent under a nonce.
func (w *World) Announce(key, nonce string) catalog.Intent {
	w.T.Helper()
	in, err := w.C.Announce(w.Ctx, catalog.Announce{Key: key, Class: segment.ClassStandard, Holder: w.Holder(), Nonce: nonce, Deadline: orphanGrace / 2})
	w.OK(err)
	return in
}

// Refs are all refs of a stream that a plan gives.
func (w *World) Refs(stream string) []catalog.Ref {
	w.T.Helper()
	p, err := w.C.Plan(w.Ctx, catalog.PlanRequest{Stream: stream})
	w.OK(err)
	return p.Refs
}

// Output is a run over refs, served by key.
func Output(key string, revision int32, kind catalog.RefKind, refs ...catalog.Ref) catalog.Run {
	n := refs[0]
	n.Last = refs[len(refs)-1].Last
	n.Rows, n.RowSum, n.Bytes = 0, 0, 0
	for _, r := range refs {
		n.Rows += r.Rows
		n.RowSum += r.RowSum
		n.Bytes += r.Bytes
	}
	n.Key, n.Kind, n.Class, n.Revision = key, kind, segment.ClassStandard, revision
	n.Offset, n.Stored, n.Chunks = 0, n.Bytes, uint32(len(refs))
	return catalog.Run{Expect: refs, New: n}
}

// Settle moves all refs of a stream into one stream object, and returns its key.
func (w *World) Settle(stream string) string {
	w.T.Helper()
	refs := w.Refs(stream)
	rev := int32(-1)
	for _, r := range refs {
		rev = max(rev, r.Revision)
	}
	key := segment.StreamKey(stream, w.Chain.Epoch, refs[0].First, uint32(rev+1))
	w.Announce(key, "n-"+key)
	_, err := w.C.CommitRewrite(w.Ctx, catalog.Rewrite{Key: key, Nonce: "n-" + key, Runs: []catalog.Run{Output(key, rev+1, catalog.RefStream, refs...)}})
	w.OK(err)
	return key
}

// SettleMarkers are the chain's standing settle markers.
func (w *World) SettleMarkers() (out []catalog.MarkerRef) {
	w.T.Helper()
	ms, err := w.C.MarkersOf(w.Ctx, catalog.DutySettle, "", 0)
	w.OK(err)
	for _, m := range ms {
		out = append(out, m.MarkerRef)
	}
	return out
}

// Marker is a standing marker; ok is false if none stands.
func (w *World) Marker(d catalog.Duty, id string) (catalog.Marker, bool) {
	w.T.Helper()
	ms, err := w.C.MarkersOf(w.Ctx, d, "", 0)
	w.OK(err)
	for _, m := range ms {
		if m.ID == id {
			return m, true
		}
	}
	return catalog.Marker{}, false
}

// Row is the chain's row.
func (w *World) Row() catalog.ChainRow {
	w.T.Helper()
	row, err := w.C.Chain(w.Ctx, w.Chain)
	w.OK(err)
	return row
}
