package localtier

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// keepRows is a policy that leaves n rows, with no floor to speak of.
func (w *world) keepRows(n uint64) {
	w.t.Helper()
	_, err := w.cat.SetRetention(w.t.Context(), 1, catalog.Retention{
		Mode: catalog.RetentionInterest, Rows: n, SegmentBytes: 1, MinSegments: 1,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// slots appends one row a slot.
func (w *world) slots(wr *Writer, n int) {
	w.t.Helper()
	for i := range n {
		w.mustAppend(wr, "s", AckShared, fmt.Sprint(i))
	}
}

func mustRetain(t *testing.T, wr *Writer) RetainOutcome {
	t.Helper()
	out, err := wr.Retain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// TestRetain: the watermark first, then the files here; readers and new consumers begin
// above it; a policy that keeps everything does nothing.
func TestRetain(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.slots(a, 6)
	if out := mustRetain(t, a); out.Raised || out.Kept == "" {
		t.Errorf("without a policy: %+v", out)
	}
	w.keepRows(2)
	out := mustRetain(t, a)
	if !out.Raised || out.WatermarkSeq != 4 || out.Unlinked != 4 || w.chain(0).WatermarkSeq != 4 {
		t.Errorf("%+v, row %+v", out, w.chain(0))
	}
	_, err := readLocal(t, a, "s", 1, 0)
	var away *NotLocalError
	if got, err2 := readLocal(t, a, "s", 5, 0); !errors.As(err, &away) || away.First != 5 || err2 != nil || fmt.Sprint(got) != "[4 5]" {
		t.Errorf("%v; %q, %v", err, got, err2)
	}
	if c, err := a.CreateConsumer(t.Context(), 0, "new", 0); err != nil || c.Cursor != 4 {
		t.Errorf("a new consumer: %+v, %v", c, err)
	}
	// The consumer holds what it has not read.
	w.slots(a, 4)
	if out := mustRetain(t, a); out.Raised {
		t.Errorf("past a consumer: %+v", out)
	}
	if _, err := a.Ack(t.Context(), 0, "new", 7); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Retain(t.Context()); err != nil && !errors.Is(err, catalog.ErrConflict) {
		t.Fatal(err) // the row's cursor is published with the next slot
	}
	w.slots(a, 1)
	if out := mustRetain(t, a); w.chain(0).WatermarkSeq != 7 {
		t.Errorf("%+v, row %+v", out, w.chain(0))
	}
	w.mustClose(a)
	// A restart, and a new owner, begin above it.
	a = w.open("a")
	if first, _, err := a.Local(t.Context(), "s"); err != nil || first < 8 {
		t.Errorf("local from %d, %v", first, err)
	}
	w.mustClose(a)
	b := w.open("b", func(o *Options) { o.Config.HydrateAll = true })
	b.shards[0].hydrating.Wait()
	if first, _, err := b.Local(t.Context(), "s"); err != nil || first != 8 {
		t.Errorf("the new owner has rows from %d on, %v", first, err)
	}
	w.mustClose(b)
	w.fsck()
}

// TestRetainOfARolledBackRow: a row that is behind its head does not catch up with it by its
// owner's retention, which would hide that the catalog lost commits.
func TestRetainOfARolledBackRow(t *testing.T) {
	w := newWorld(t, 1)
	w.keepRows(2)
	a := w.open("a")
	w.slots(a, 6)
	row := w.chain(0)
	head, err := segment.EncodeHead(&segment.Head{
		Epoch: 1, Term: row.Term, AbsorbedEnd: row.AbsorbedEnd, NextSeq: row.NextSeq, LastUUID: row.LastUUID,
		WatermarkSegment: row.WatermarkSegment + 4, WatermarkSeq: 4, Condemned: row.Condemned, Trimmed: row.Trimmed, Nonce: "n",
	})
	if err != nil {
		t.Fatal(err)
	}
	w.put(segment.HeadKey(row.Chain), head, nil)
	if out, err := a.Retain(t.Context()); !errors.Is(err, ErrRolledBack) {
		t.Errorf("%+v, %v", out, err)
	}
	if after := w.chain(0); after.WatermarkSeq != 0 {
		t.Errorf("the watermark went on: %+v", after)
	}
	w.mustClose(a)
}

// TestRetainBehindAFailOver: a watermark is raised in the session in which the head was looked
// at, and by the next run if that one ended meanwhile.
func TestRetainBehindAFailOver(t *testing.T) {
	w := newWorld(t, 1)
	w.keepRows(1)
	c := &failsOver{Catalog: w.cat}
	a := w.open("a", func(o *Options) { o.Catalog = c })
	w.slots(a, 3)
	c.over = true
	if out, err := a.Retain(t.Context()); !errors.Is(err, catalog.ErrSessionEnded) || w.chain(0).WatermarkSeq != 0 {
		t.Errorf("%+v, %v, row %+v", out, err, w.chain(0))
	}
	c.over = false
	if out := mustRetain(t, a); !out.Raised {
		t.Errorf("the next run: %+v", out)
	}
	w.mustClose(a)
}

// failsOver is another server by the time a watermark is raised.
type failsOver struct {
	Catalog
	over bool
}

func (c *failsOver) RaiseWatermark(ctx context.Context, m catalog.Watermark) (catalog.ChainRow, error) {
	if c.over {
		if err := catalog.CheckSession(ctx, "RaiseWatermark", func() catalog.Session { return "another" }); err != nil {
			return catalog.ChainRow{}, err
		}
	}
	return c.Catalog.RaiseWatermark(ctx, m)
}

// TestCutRetain cuts a run after each of its steps. Nothing above the committed watermark
// is gone, and the next start, or run, is at it.
func TestCutRetain(t *testing.T) {
	for step, committed := range map[Step]bool{StepPlanned: false, StepWatermark: true, StepReclaimed: true} {
		t.Run(string(step), func(t *testing.T) {
			w := newWorld(t, 1)
			w.keepRows(2)
			cut := cutLocked(step, 1)
			a := w.open("a", func(o *Options) { o.Cut = cut })
			w.slots(a, 5)
			if _, err := a.Retain(t.Context()); !errors.Is(err, errPower) {
				t.Fatalf("%v", err)
			}
			want := segment.Seq(0)
			if committed {
				want = 3
			}
			if row := w.chain(0); row.WatermarkSeq != want {
				t.Errorf("%+v", row)
			}
			w.crash(a, "a", "b")
			b := w.open("b")
			first, next, err := b.Local(t.Context(), "s")
			if err != nil || next != 6 || first != want+1 {
				t.Errorf("local rows %d to before %d, %v", first, next, err)
			}
			if _, err := b.Retain(t.Context()); err != nil || w.chain(0).WatermarkSeq != 3 {
				t.Errorf("%v, %+v", err, w.chain(0))
			}
			if got, err := readLocal(t, b, "s", 4, 0); err != nil || fmt.Sprint(got) != "[3 4]" {
				t.Errorf("%q, %v", got, err)
			}
			w.mustClose(b)
			w.fsck()
		})
	}
}

// TestK23 retention ahead of publishing: a trim above what is published is refused, and
// says so; the owner's retention never reaches there, and publishing is not held up.
func TestK23(t *testing.T) {
	w := newWorld(t, 1)
	w.keepRows(1)
	c := &awayCatalog{Catalog: w.cat}
	a := w.open("a", func(o *Options) { o.Catalog = c })
	w.slots(a, 2)
	cut := w.chain(0)
	c.away.Store(true)
	for i := range 4 {
		w.mustAppend(a, "s", AckLocal, fmt.Sprintf("unpublished %d", i))
		mustSeal(t, a.shards[0])
	}
	if _, err := w.cat.TrimStream(t.Context(), "s", segment.Pos{Epoch: 1, Seq: 5}); !errors.Is(err, catalog.ErrBeyondTip) {
		t.Errorf("a trim ahead of publishing: %v", err)
	}
	if out := mustRetain(t, a); out.WatermarkSeq != 1 {
		t.Errorf("four rows wait to be published, one slot may go: %+v", out)
	}
	c.away.Store(false)
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if row := w.chain(0); row.NextSeq != cut.NextSeq+4 {
		t.Errorf("%+v", row)
	}
	if _, err := w.cat.TrimStream(t.Context(), "s", segment.Pos{Epoch: 1, Seq: 5}); err != nil {
		t.Errorf("the same trim, published: %v", err)
	}
	if out := mustRetain(t, a); out.WatermarkSeq != 5 {
		t.Errorf("%+v", out)
	}
	w.mustAppend(a, "s", AckShared, "after")
	w.mustClose(a)
	w.fsck()
}

// TestRetainLostAnswer: after an unknown outcome the commit is asked for again.
func TestRetainLostAnswer(t *testing.T) {
	w := newWorld(t, 1)
	w.keepRows(1)
	c := &lostWatermark{Catalog: w.cat}
	a := w.open("a", func(o *Options) { o.Catalog = c })
	w.slots(a, 3)
	if out := mustRetain(t, a); !out.Raised || out.WatermarkSeq != 2 || c.calls != 2 {
		t.Errorf("%+v after %d calls", out, c.calls)
	}
	w.mustClose(a)
}

type lostWatermark struct {
	Catalog
	calls int
}

func (c *lostWatermark) RaiseWatermark(ctx context.Context, m catalog.Watermark) (catalog.ChainRow, error) {
	row, err := c.Catalog.RaiseWatermark(ctx, m)
	if c.calls++; c.calls == 1 && err == nil {
		return catalog.ChainRow{}, fmt.Errorf("%w: injected", catalog.ErrAmbiguous)
	}
	return row, err
}

// TestZombieRetains: an owner that lost its chain commits no watermark, at whatever step
// it wakes up.
func TestZombieRetains(t *testing.T) {
	w := newWorld(t, 1)
	w.keepRows(1)
	var b *Writer
	a := w.open("a", func(o *Options) {
		o.Cut = func(s Step) error {
			if s == StepPlanned && b == nil {
				b = w.open("b", steal)
			}
			return nil
		}
	})
	w.slots(a, 4)
	if _, err := a.Retain(t.Context()); !errors.Is(err, catalog.ErrConflict) {
		t.Errorf("%v", err)
	}
	if row := w.chain(0); row.WatermarkSeq != 0 {
		t.Errorf("%+v", row)
	}
	if out := mustRetain(t, b); out.WatermarkSeq != 3 {
		t.Errorf("%+v", out)
	}
	_ = a.Close(t.Context()) // it lost the chain
	w.mustAppend(b, "s", AckShared, "last")
	w.mustClose(b)
	w.fsck()
}
