package localtier

import (
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/strandline/strandline/segment"
)

func scanLocal(rows iter.Seq2[ShardRow, error]) (out []string, err error) {
	for r, err := range rows {
		if err != nil {
			return out, err
		}
		out = append(out, fmt.Sprintf("%d:%s:%s", r.Seq, r.Stream, r.Payload))
	}
	return out, nil
}

func collectShard(rows iter.Seq2[ShardRow, error]) (out []ShardRow, err error) {
	for r, err := range rows {
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
	return out, nil
}

// TestReadShard: all streams in seq order, wherever they lie, of a live writer and of a
// directory that is looked at; reserved streams by name only.
func TestReadShard(t *testing.T) {
	w := newWorld(t, 1)
	cut, _ := cutOnce(StepBuilt, 1)
	a := w.open("a", func(o *Options) { o.Cut = cut })
	s := a.shards[0]
	w.mustAppend(a, "x", AckLocal, "a", "b")
	w.mustAppend(a, "y", AckLocal, "c")
	// A system record, as nothing writes yet.
	_, queued, err := s.enqueue(t.Context(), Producer{}, segment.AuditStream(0), [][]segment.Row{{{Payload: []byte("audit")}}}, 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := queued.last.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.mustAppend(a, "x", AckLocal, "d")
	mustSeal(t, s)
	w.mustAppend(a, "y", AckLocal, "e", "f")
	check := func(scan func(from, to segment.Seq) iter.Seq2[ShardRow, error]) {
		t.Helper()
		for _, c := range []struct {
			from, to segment.Seq
			want     string
		}{
			{1, 0, "[1:x:a 2:x:b 3:y:c 5:x:d 6:y:e 7:y:f]"},
			{3, 6, "[3:y:c 5:x:d 6:y:e]"},
			{4, 4, "[]"},
			{7, 100, "[7:y:f]"},
			{8, 0, "[]"},
		} {
			if got, err := scanLocal(scan(c.from, c.to)); err != nil || fmt.Sprint(got) != c.want {
				t.Errorf("from %d to %d: %v, %v; want %s", c.from, c.to, got, err, c.want)
			}
		}
		var not *NotLocalError
		if _, err := scanLocal(scan(0, 0)); !errors.As(err, &not) || not.First != 1 {
			t.Errorf("from before the first: %v", err)
		}
	}
	live := func(wr *Writer) func(from, to segment.Seq) iter.Seq2[ShardRow, error] {
		return func(from, to segment.Seq) iter.Seq2[ShardRow, error] { return wr.ReadShard(t.Context(), 0, from, to) }
	}
	check(live(a))
	ro, err := OpenReadOnly(t.Context(), s.dir)
	if err != nil {
		t.Fatal(err)
	}
	check(func(from, to segment.Seq) iter.Seq2[ShardRow, error] { return ro.ReadShard(t.Context(), from, to) })
	if first, next := ro.Local(); first != 1 || next != 8 {
		t.Errorf("local from %d to before %d", first, next)
	}
	if got, err := readLocal(t, a, segment.AuditStream(0), 1, 0); err != nil || fmt.Sprint(got) != "[audit]" {
		t.Errorf("the reserved stream by name: %v, %v", got, err)
	}
	if _, err := readLocal(t, a, "~other", 1, 0); !errors.Is(err, segment.ErrName) {
		t.Errorf("a reserved name of no stream: %v", err)
	}
	abandon(t, a)
	again := w.open("a", func(o *Options) { o.Cut = cut })
	check(live(again))
	abandon(t, again)
}

// TestReadShardElsewhere: a shard that is not served here.
func TestReadShardElsewhere(t *testing.T) {
	w := newWorld(t, 2)
	a := w.open("a", func(o *Options) { o.Shards = []segment.Shard{0} })
	b := w.open("b", func(o *Options) { o.Shards = []segment.Shard{1} })
	var not *NotOwnerError
	if _, err := scanLocal(a.ReadShard(t.Context(), 1, 1, 0)); !errors.As(err, &not) || not.Owner != "b:8420" || not.Stream != "" {
		t.Errorf("%v", err)
	}
	if _, err := scanLocal(a.ReadShard(t.Context(), 7, 1, 0)); !errors.Is(err, ErrInvalid) {
		t.Errorf("%v", err)
	}
	w.mustClose(a)
	w.mustClose(b)
}

// TestReadAboveWatermark: what retention gave up is not read, though it is on the disk;
// a reader that it overtakes is told.
func TestReadAboveWatermark(t *testing.T) {
	w := newWorld(t, 1)
	a := w.twentyRows()
	s := a.shards[0]
	raise := func(seq segment.Seq) {
		s.progress.mu.Lock()
		defer s.progress.mu.Unlock()
		s.progress.row.WatermarkSeq = seq
	}
	raise(5)
	if first, next, err := a.Local(t.Context(), "s"); err != nil || first != 6 || next != 21 {
		t.Errorf("local from %d to before %d, %v", first, next, err)
	}
	var not *NotLocalError
	if got, err := readLocal(t, a, "s", 5, 0); !errors.As(err, &not) || not.First != 6 || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := readLocal(t, a, "s", 6, 10); err != nil || fmt.Sprint(got) != "[6 9 10]" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := scanLocal(a.ReadShard(t.Context(), 0, 6, 7)); err != nil || fmt.Sprint(got) != "[6:s:6 7:t1:7]" {
		t.Errorf("%v, %v", got, err)
	}
	var seen []segment.Seq
	var err error
	for row, rerr := range a.Read(t.Context(), "s", 6, 0) {
		if err = rerr; err != nil {
			break
		}
		seen = append(seen, row.Seq)
		raise(12)
	}
	// What stood in the segment behind the row it had is given up, and nothing is left out
	// in silence.
	if fmt.Sprint(seen) != "[6]" || !errors.As(err, &not) || not.First != 13 {
		t.Errorf("%v, then %v", seen, err)
	}
	abandon(t, a)
}

// TestReadDamage: a frame that changed under the index is corruption, and no row of it is
// given out.
func TestReadDamage(t *testing.T) {
	w := newWorld(t, 1)
	a := w.twentyRows()
	x := &a.shards[0].index
	// An index that points at another frame stands for a file that changed under it.
	table := x.segs[1].table
	table.blocks[0][1].off = table.blocks[0][0].off
	got, err := readLocal(t, a, "s", 1, 0)
	var c *segment.CorruptionError
	if !errors.As(err, &c) || c.Segment != 2 || fmt.Sprint(got) != "[1 2 5]" {
		t.Errorf("%v, %v", got, err)
	}
	table.blocks[0][0].off += 3
	if got, err := readLocal(t, a, "s", 5, 0); !errors.As(err, &c) || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	abandon(t, a)
}
