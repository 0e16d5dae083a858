package wal

import (
	"testing"
	"time"

	"github.com/strandline/strandline/segment"
)

// TestReopenedSegmentIsNotSealedUnasked: a segment that is past its age when the log
// is opened stays open until the next append, so what Open's caller reads of the log is
// one picture. Sealing in between made a restart take its own directory for another's.
func TestReopenedSegmentIsNotSealedUnasked(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	cfg := Config{SegmentAge: time.Second, Now: func() time.Time { return now }, NextStart: func(*segment.Start) error { return nil }}
	l, err := Open(t.Context(), dir, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.StartSegment(t.Context(), segment.Start{Chain: segment.Chain{Epoch: 1}, ID: 1, Base: 1, Term: 1}); err != nil {
		t.Fatal(err)
	}
	appendOne := func() {
		t.Helper()
		ticket, err := l.AppendBatch(t.Context(), &segment.Batch{Stream: "s", Rows: []segment.Row{{Payload: []byte("x")}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ticket.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	appendOne()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if l, err = Open(t.Context(), dir, cfg, nil); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	l.mu.Lock()
	running := l.age != nil
	l.mu.Unlock()
	if st := l.State(); running || !st.Open || len(l.Sealed()) != 0 {
		t.Fatalf("the reopened segment is sealed or about to be: timer %v, open %v, %d sealed", running, st.Open, len(l.Sealed()))
	}
	sealed := make(chan SealedSegment, 1)
	l.cfg.OnSealed = func(s SealedSegment) { sealed <- s }
	appendOne() // its age goes on, and is over
	select {
	case s := <-sealed:
		if s.ID != 1 {
			t.Fatalf("segment %d was sealed", s.ID)
		}
	case <-t.Context().Done():
		t.Fatal("the aged segment was never sealed")
	}
}
