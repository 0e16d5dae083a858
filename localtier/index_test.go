package localtier

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// fillIndex notes a million durable one-row frames, as appends do.
func fillIndex(x *index, streams int) {
	names := make([]string, streams)
	for i := range names {
		names[i] = fmt.Sprintf("stream-%06d", i)
	}
	const frameBytes = 64 // of a one-row frame, so that they take more than one segment
	end := wal.Offset{Segment: 1, Byte: 200}
	x.maxHeld = maxHeldFrames
	x.startAt(1)
	for i := range 1_000_000 {
		if end.Byte+frameBytes > 64<<20 {
			end = wal.Offset{Segment: end.Segment + 1, Byte: 200}
		}
		end.Byte += frameBytes
		x.add(&pendingFrame{stream: names[i%streams], first: segment.Seq(i + 1), rows: 1, bytes: frameBytes - segment.FrameHeaderBytes}, end)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers held
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestIndexMemory: one-row frames are the worst case, and take at most 24 bytes a row in
// one stream as in 10,000. The names of streams, kept once a segment, come on top.
func TestIndexMemory(t *testing.T) {
	for _, streams := range []int{1, 10_000} {
		before := heap()
		x := &index{}
		fillIndex(x, streams)
		all := heap()
		for _, seg := range x.segs {
			seg.table.blocks = nil
			for i := range seg.table.chains {
				seg.table.chains[i].every = nil
			}
		}
		names := heap()
		perRow, perName := float64(all-names)/1e6, float64(names-before)/float64(streams*len(x.segs))
		if x.held != 1_000_000 || len(x.segs) != 1 {
			t.Fatalf("%d frames in %d segments", x.held, len(x.segs))
		}
		if perRow > 24 {
			t.Errorf("%d streams: %.1f bytes a row, at most 24", streams, perRow)
		}
		if streams > 1 && perName > 200 {
			t.Errorf("%d streams: %.0f bytes a stream and segment besides", streams, perName)
		}
		t.Logf("%d streams: %.2f bytes a row, and %.0f bytes a stream and segment for its name", streams, perRow, perName)
		runtime.KeepAlive(x)
	}
}

// TestPendingKeepsNothing: the queue gives back what a burst took, and holds on to no
// frame that it is done with.
func TestPendingKeepsNothing(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	s := a.shards[0]
	rows := []segment.Row{{Payload: []byte("row"), Time: 1}}
	_, first, err := s.enqueue(t.Context(), Producer{}, "s", [][]segment.Row{rows}, 100)
	if err != nil {
		t.Fatal(err)
	}
	last := first
	for range 3 * keptPending {
		if _, last, err = s.enqueue(t.Context(), Producer{}, "s", [][]segment.Row{rows}, 100); err != nil {
			t.Fatal(err)
		}
	}
	q := &s.index.pending
	if q.n == 0 || len(q.ring) <= keptPending {
		t.Fatalf("%d frames wait in %d places: this is no burst", q.n, len(q.ring))
	}
	if _, err := last.last.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.index.settle()
	if q.n != 0 || q.ring != nil {
		t.Errorf("%d frames wait in %d places after all are durable", q.n, len(q.ring))
	}
	w.mustAppend(a, "s", AckLocal, "one more")
	for i := range q.ring {
		if q.ring[i] != (pendingFrame{}) {
			t.Errorf("place %d holds on to frame %d", i, q.ring[i].first)
		}
	}
	if _, end, _ := a.Local(t.Context(), "s"); end != 3*keptPending+3 {
		t.Errorf("the index ends at %d", end)
	}
	w.mustClose(a)
}

// opens counts what is opened, and can lose a segment as housekeeping does.
type opens struct {
	segmentOpener
	n     map[segment.ID]int
	gone  map[segment.ID]bool
	blink int // so many opens find nothing
}

func (o *opens) OpenSegment(id segment.ID) (*wal.SegmentReader, error) {
	o.n[id]++
	if o.blink > 0 || o.gone[id] {
		o.blink--
		return nil, wal.ErrNotFound
	}
	return o.segmentOpener.OpenSegment(id)
}

// twentyRows leaves a directory of five unpublished segments with two rows of s and two of
// others each.
func (w *world) twentyRows() *Writer {
	w.t.Helper()
	cut, _ := cutOnce(StepBuilt, 1)
	a := w.open("a", func(o *Options) { o.Cut = cut })
	for i := range 5 {
		w.mustAppend(a, "s", AckLocal, fmt.Sprint(4*i+1), fmt.Sprint(4*i+2))
		w.mustAppend(a, fmt.Sprint("t", i), AckLocal, fmt.Sprint(4*i+3), fmt.Sprint(4*i+4))
		mustSeal(w.t, a.shards[0])
	}
	return a
}

// TestIndexLazy: after a start a read goes through the segments that it needs, once, and
// opens no file for a stream that a segment does not hold.
func TestIndexLazy(t *testing.T) {
	w := newWorld(t, 1)
	abandon(t, w.twentyRows())
	cut, _ := cutOnce(StepBuilt, 1)
	a := w.open("a", func(o *Options) { o.Cut = cut })
	x := &a.shards[0].index
	o := &opens{segmentOpener: x.log, n: map[segment.ID]int{}}
	x.log = o
	steps := []struct {
		stream   string
		from, to segment.Seq
		rows     string
		opens    map[segment.ID]int
	}{
		{"s", 6, 9, "[6 9]", map[segment.ID]int{2: 2, 3: 2}},
		{"s", 6, 9, "[6 9]", map[segment.ID]int{2: 1, 3: 1}},
		{"t2", 1, 0, "[11 12]", map[segment.ID]int{1: 1, 3: 1, 4: 1, 5: 1}},
		{"t2", 1, 0, "[11 12]", map[segment.ID]int{3: 1}},
		{"none", 1, 0, "[]", map[segment.ID]int{}},
	}
	for _, st := range steps {
		clear(o.n)
		got, err := readLocal(t, a, st.stream, st.from, st.to)
		if err != nil || fmt.Sprint(got) != st.rows {
			t.Errorf("%s from %d to %d: %v, %v", st.stream, st.from, st.to, got, err)
		}
		if fmt.Sprint(o.n) != fmt.Sprint(st.opens) {
			t.Errorf("%s from %d to %d opened %v, want %v", st.stream, st.from, st.to, o.n, st.opens)
		}
	}
	abandon(t, a)
}

// TestIndexRoom: tables that are not used go first when there are too many frames, and
// come back when they are needed.
func TestIndexRoom(t *testing.T) {
	w := newWorld(t, 1)
	a := w.twentyRows()
	x := &a.shards[0].index
	x.maxHeld = 9
	w.mustAppend(a, "s", AckLocal, "21") // a new segment: room is made
	held := func() (ids []segment.ID) {
		n := 0
		for _, seg := range x.segs {
			if seg.table != nil {
				ids = append(ids, seg.id)
				n += seg.table.n
			}
		}
		if n != x.held || n > x.maxHeld {
			t.Errorf("%d frames are held, %d are counted, %d may be", n, x.held, x.maxHeld)
		}
		return ids
	}
	if got := fmt.Sprint(held()); got != "[4 5 6]" {
		t.Errorf("tables of %s", got)
	}
	if got, err := readLocal(t, a, "s", 5, 6); err != nil || fmt.Sprint(got) != "[5 6]" {
		t.Errorf("%v, %v", got, err)
	}
	if got := fmt.Sprint(held()); got != "[2 5 6]" {
		t.Errorf("tables of %s", got)
	}
	if got, err := readLocal(t, a, "s", 1, 0); err != nil || len(got) != 11 {
		t.Errorf("%v, %v", got, err)
	}
	held()
	abandon(t, a)
}

// TestIndexGap: what came back from the bucket is served once nothing is missing between
// it and what is here.
func TestIndexGap(t *testing.T) {
	w := newWorld(t, 1)
	a := w.twentyRows()
	s := a.shards[0]
	sealed := s.wal.Sealed()
	s.index.forget(3)
	first := func() segment.Seq {
		f, _ := s.index.span()
		return f
	}
	if first() != 13 {
		t.Fatalf("local from %d", first())
	}
	s.index.adopt(sealed[0])
	s.index.adopt(sealed[0])
	if first() != 13 {
		t.Errorf("local from %d with segments 2 and 3 missing", first())
	}
	var not *NotLocalError
	if _, err := readLocal(t, a, "s", 1, 0); !errors.As(err, &not) || not.First != 13 {
		t.Errorf("%v", err)
	}
	s.index.adopt(sealed[2])
	s.index.adopt(sealed[1])
	if got, err := readLocal(t, a, "s", 1, 0); err != nil || len(got) != 10 || first() != 1 {
		t.Errorf("%v, %v, local from %d", got, err, first())
	}
	abandon(t, a)
}

// TestReadOfSealing: a segment that the log does not list for a moment, since its Seal has
// just become durable, is waited for and not taken for housekept.
func TestReadOfSealing(t *testing.T) {
	w := newWorld(t, 1)
	a := w.twentyRows()
	x := &a.shards[0].index
	x.log = &opens{segmentOpener: x.log, n: map[segment.ID]int{}, blink: 3}
	if got, err := readLocal(t, a, "s", 17, 0); err != nil || fmt.Sprint(got) != "[17 18]" {
		t.Errorf("%v, %v", got, err)
	}
	abandon(t, a)
}

// TestReadOfGone: a segment that goes between the look and the open is the bucket's, and
// the rows before it were delivered.
func TestReadOfGone(t *testing.T) {
	w := newWorld(t, 1)
	a := w.twentyRows()
	x := &a.shards[0].index
	o := &opens{segmentOpener: x.log, n: map[segment.ID]int{}, gone: map[segment.ID]bool{}}
	x.log = o
	var got []string
	var not *NotLocalError
	for row, err := range a.Read(t.Context(), "s", 1, 0) {
		if err != nil {
			if !errors.As(err, &not) {
				t.Fatal(err)
			}
			break
		}
		got = append(got, string(row.Payload))
		if row.Seq == 6 {
			o.gone[3] = true
			x.forget(3) // as housekeeping does after the unlink
		}
	}
	if fmt.Sprint(got) != "[1 2 5 6]" || not == nil || not.First != 13 {
		t.Errorf("%v, then %v", got, not)
	}
	abandon(t, a)
}
