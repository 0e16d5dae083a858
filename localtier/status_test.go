package localtier

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// spans gathers the steps that a writer was asked to trace, in the order of their ends.
type spans struct {
	mu    sync.Mutex
	ended []TraceStep
	errs  []error
}

func (s *spans) trace(ctx context.Context, t Traced) (context.Context, func(error)) {
	return ctx, func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended, s.errs = append(s.ended, t.Step), append(s.errs, err)
	}
}

func TestTraceSteps(t *testing.T) {
	w := newWorld(t, 1)
	var s spans
	wr := w.open("a", func(o *Options) { o.Trace = s.trace })
	w.mustAppend(wr, "s", AckLocal, "one")
	w.mustAppend(wr, "s", AckShared, "two")
	w.mustClose(wr)
	want := map[TraceStep]int{TraceAppend: 2, TraceCommit: 2, TraceShared: 1, TracePlace: 1, TraceAbsorb: 1, TracePublish: 1}
	for step, n := range want {
		if got := len(slices.DeleteFunc(slices.Clone(s.ended), func(x TraceStep) bool { return x != step })); got != n {
			t.Errorf("%d ends of %q, want %d: %v", got, step, n, s.ended)
		}
	}
	if err := errors.Join(s.errs...); err != nil {
		t.Error(err)
	}
}

// TestStatusLags: what only this disk has, since when, and what the slowest consumer owes.
func TestStatusLags(t *testing.T) {
	w := newWorld(t, 1)
	wr := w.open("a")
	if _, err := wr.CreateConsumer(t.Context(), 0, "slow", 0); err != nil {
		t.Fatal(err)
	}
	w.mustAppend(wr, "s", AckLocal, "one", "two", "three")
	st := wr.Status()[0]
	if st.Unabsorbed < 3 || !st.UnabsorbedSince.IsZero() || !st.Behind.IsZero() {
		t.Errorf("rows of the open segment: %d unabsorbed since %v, behind %v", st.Unabsorbed, st.UnabsorbedSince, st.Behind)
	}
	if err := wr.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	st = wr.Status()[0]
	if st.Unabsorbed != 0 || !st.UnabsorbedSince.IsZero() || st.Behind.IsZero() || st.Row.NextSeq != st.NextSeq {
		t.Errorf("absorbed, and not read by the consumer: %+v", st)
	}
	if _, err := wr.Ack(t.Context(), 0, "slow", st.NextSeq-1); err != nil {
		t.Fatal(err)
	}
	if st := wr.Status()[0]; !st.Behind.IsZero() {
		t.Errorf("the consumer has read all, and is behind since %v", st.Behind)
	}
	var buckets int64
	for _, n := range st.Log.SyncBuckets {
		buckets += n
	}
	if buckets != st.Log.Syncs || len(st.Log.SyncBuckets) != len(wal.SyncBounds())+1 {
		t.Errorf("%d fsyncs, %d in the buckets %v", st.Log.Syncs, buckets, st.Log.SyncBuckets)
	}
	w.mustClose(wr)
	if c := wr.Status()[0].Log.Checkpoint; c.Segment == 0 {
		t.Errorf("checkpoint %+v", c)
	}
}

// TestStatusCorrupt: damage that a read meets is counted.
func TestStatusCorrupt(t *testing.T) {
	w := newWorld(t, 1)
	wr := w.open("a")
	w.mustAppend(wr, "s", AckLocal, "one", "two", "three")
	if err := wr.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	flip(t, filepath.Join(wr.Status()[0].Dir, segment.FileName(1)), 200)
	var met error
	for _, err := range wr.Read(t.Context(), "s", 1, 0) {
		met = errors.Join(met, err)
	}
	if st := wr.Status()[0]; !segment.IsStructural(met) || st.Corrupt != 1 {
		t.Errorf("%d counted, the read ended in %v", st.Corrupt, met)
	}
	w.mustClose(wr)
}

// TestLeaseErrorIsTakenBack: a shard without rows does not tell for ever of a catalog that
// was away once.
func TestLeaseErrorIsTakenBack(t *testing.T) {
	w := newWorld(t, 1)
	c := &awayCatalog{Catalog: w.cat}
	a := w.open("a", func(o *Options) { o.Catalog, o.Config.LeaseTime = c, time.Second })
	until := func(what string, is func(string) bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !is(a.Status()[0].LastError); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %q", what, a.Status()[0].LastError)
			}
		}
	}
	c.away.Store(true)
	until("it is told of", func(said string) bool { return strings.Contains(said, "renew the lease") })
	c.away.Store(false)
	until("it is taken back", func(said string) bool { return said == "" })
	w.mustClose(a)
}
