package localtier

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// TestPlanFloor: the decision, by its rules.
func TestPlanFloor(t *testing.T) {
	// Segments 3 to 7 of 100 bytes and ten rows each, but 5, a fence, which has none.
	sealed := []wal.SealedSegment{
		{ID: 3, Base: 1, Next: 11, Bytes: 100},
		{ID: 4, Base: 11, Next: 21, Bytes: 100},
		{ID: 5, Base: 21, Next: 21, Bytes: 100},
		{ID: 6, Base: 21, Next: 31, Bytes: 100},
		{ID: 7, Base: 31, Next: 41, Bytes: 100},
	}
	at := func(cursors ...segment.Seq) (out []segment.Consumer) {
		for i, c := range cursors {
			out = append(out, segment.Consumer{Name: fmt.Sprint(i), Cursor: c})
		}
		return out
	}
	const plenty = 1000
	for _, c := range []struct {
		what string
		in   floorInput
		want segment.ID
	}{
		{"nobody", floorInput{reader: wal.NoFloor, holdMax: plenty}, wal.NoFloor},
		{"one that acknowledged nothing", floorInput{consumers: at(0), reader: wal.NoFloor, holdMax: plenty}, 3},
		{"all but a segment's last row", floorInput{consumers: at(9), reader: wal.NoFloor, holdMax: plenty}, 3},
		{"a whole segment", floorInput{consumers: at(10), reader: wal.NoFloor, holdMax: plenty}, 4},
		{"up to a fence", floorInput{consumers: at(20), reader: wal.NoFloor, holdMax: plenty}, 6},
		{"the slowest counts", floorInput{consumers: at(40, 12, 31), reader: wal.NoFloor, holdMax: plenty}, 4},
		{"caught up", floorInput{consumers: at(40), reader: wal.NoFloor, holdMax: plenty}, wal.NoFloor},
		{"a reader behind the consumer", floorInput{consumers: at(31), reader: 4, holdMax: plenty}, 4},
		{"a reader before the consumer", floorInput{consumers: at(12), reader: 7, holdMax: plenty}, 4},
		{"a reader of the open segment", floorInput{reader: 8, holdMax: plenty}, 8},
		{"everything is kept here", floorInput{reader: wal.NoFloor, keepAll: true, holdMax: plenty}, 0},
		{"too far behind", floorInput{consumers: at(0), reader: wal.NoFloor, holdMax: 250}, 6},
		{"too far behind to a byte", floorInput{consumers: at(0), reader: wal.NoFloor, holdMax: 300}, 5},
		{"everything, however much", floorInput{reader: wal.NoFloor, keepAll: true, holdMax: 200}, 0},
		{"a disk nearly full", floorInput{consumers: at(0), reader: 3, keepAll: true, holdMax: plenty, pressed: true}, wal.NoFloor},
	} {
		c.in.sealed = sealed
		if got := planFloor(c.in); got != c.want {
			t.Errorf("%s: from segment %d on, want %d", c.what, got, c.want)
		}
	}
	if got := planFloor(floorInput{consumers: at(0), reader: wal.NoFloor, holdMax: plenty}); got != wal.NoFloor {
		t.Errorf("without sealed segments: %d", got)
	}
}

// absorbedSegments leaves a writer with five absorbed segments of two rows of s each, all
// on its disk still.
func (w *world) absorbedSegments() *Writer {
	w.t.Helper()
	a := w.open("a")
	for i := range 5 {
		w.mustAppend(a, "s", AckLocal, fmt.Sprint(2*i+1), fmt.Sprint(2*i+2))
		w.flush(a)
	}
	// CHECKPOINT is written after the absorb that Flush waits for.
	s := a.shards[0]
	eventually(w.t, s, "CHECKPOINT follows", func() bool { at, _ := s.wal.LastCheckpoint(); return at.Segment == 5 })
	return a
}

func (w *world) flush(wr *Writer) {
	w.t.Helper()
	if err := wr.Flush(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (s *shardLog) local() (ids []segment.ID) {
	for _, seg := range s.wal.Sealed() {
		ids = append(ids, seg.ID)
	}
	return ids
}

func wantLocal(t *testing.T, s *shardLog, want ...segment.ID) {
	t.Helper()
	if got := s.local(); !slices.Equal(got, want) {
		t.Errorf("segments %v are local, want %v", got, want)
	}
}

// TestReaderHolds: a reader in progress reads on, though all that it reads is absorbed
// and housekeeping comes by at every row.
func TestReaderHolds(t *testing.T) {
	w := newWorld(t, 1)
	a := w.absorbedSegments()
	s := a.shards[0]
	rows := 0
	for row, err := range a.Read(t.Context(), "s", 1, 0) {
		if err != nil {
			t.Fatalf("after %d rows: %v", rows, err)
		}
		if rows++; row.Seq != segment.Seq(rows) {
			t.Fatalf("row %d after %d", row.Seq, rows-1)
		}
		s.housekeep(t.Context())
		// The newest segment always stays.
		want := min(segment.ID(row.Seq+1)/2, 5)
		if got := s.local(); len(got) == 0 || got[0] != want {
			t.Errorf("at row %d segments %v are local", row.Seq, got)
		}
	}
	if rows != 10 {
		t.Errorf("%d rows", rows)
	}
	if len(s.index.holds.readers) != 0 {
		t.Error("a reader that ended holds on")
	}
	w.mustClose(a)
}

// TestK24ConsumerDelaysAndNeverCancels: a durable consumer holds back what it has not
// acknowledged, and what was held back goes once it has.
func TestK24ConsumerDelaysAndNeverCancels(t *testing.T) {
	w := newWorld(t, 1)
	a := w.absorbedSegments()
	s := a.shards[0]
	ctx := t.Context()
	if _, err := a.CreateConsumer(ctx, 0, "slow", 3); err != nil {
		t.Fatal(err)
	}
	s.housekeep(ctx)
	wantLocal(t, s, 2, 3, 4, 5)
	for _, c := range []struct {
		ack  segment.Seq
		want []segment.ID
	}{{4, []segment.ID{3, 4, 5}}, {5, []segment.ID{3, 4, 5}}, {8, []segment.ID{5}}} {
		if _, err := a.Ack(ctx, 0, "slow", c.ack); err != nil {
			t.Fatal(err)
		}
		s.housekeep(ctx)
		wantLocal(t, s, c.want...)
	}
	w.mustClose(a)
}

// TestConsumerHoldMax: a consumer that is away holds so many bytes and no more.
func TestConsumerHoldMax(t *testing.T) {
	w := newWorld(t, 1)
	a := w.absorbedSegments()
	s := a.shards[0]
	if _, err := a.CreateConsumer(t.Context(), 0, "away", 0); err != nil {
		t.Fatal(err)
	}
	sealed := s.wal.Sealed()
	s.cfg.ConsumerHoldMax = sealed[2].Bytes + sealed[3].Bytes + sealed[4].Bytes
	s.housekeep(t.Context())
	wantLocal(t, s, 3, 4, 5)
	w.mustClose(a)
	if err := (Config{ConsumerHoldMax: minConsumerHold - 1}).Validate(); err == nil {
		t.Error("a hold of less than a segment is accepted")
	}
}

// fillDisk makes the shard believe that so much is free.
func (s *shardLog) fillDisk(free int64) {
	s.cfg.MinFreeDisk, s.disk.least = 1<<20, 1<<20
	s.disk.last.Store(nil)
	s.disk.ask = func(string) (int64, error) { return free, nil }
}

// TestK22NeverUnabsorbed: whatever consumers, readers and the disk say, a segment that
// is not absorbed stays, and under pressure an absorbed one goes whoever holds it.
func TestK22NeverUnabsorbed(t *testing.T) {
	w := newWorld(t, 1)
	cut, _ := cutOnce(StepBuilt, 4) // three slots are absorbed
	a := w.open("a", func(o *Options) { o.Cut = cut })
	s := a.shards[0]
	ctx := t.Context()
	for i := range 5 {
		w.mustAppend(a, "s", AckLocal, fmt.Sprint(2*i+1), fmt.Sprint(2*i+2))
		mustSeal(t, s)
	}
	eventually(t, s, "three are absorbed", func() bool { at, _ := s.wal.LastCheckpoint(); return at.Segment == 3 })
	if _, err := a.CreateConsumer(ctx, 0, "slow", 0); err != nil {
		t.Fatal(err)
	}
	s.fillDisk(2<<20 + 1)
	s.housekeep(ctx)
	wantLocal(t, s, 1, 2, 3, 4, 5) // enough room: the consumer holds all
	s.fillDisk(2<<20 - 1)
	s.housekeep(ctx)
	wantLocal(t, s, 4, 5)
	s.fillDisk(0)
	s.housekeep(ctx)
	wantLocal(t, s, 4, 5)
	if err := s.wal.Err(); err != nil {
		t.Fatal(err)
	}
	var not *NotLocalError
	if _, err := a.Pull(ctx, 0, "slow", 100); !errors.As(err, &not) || not.First != 7 {
		t.Errorf("%v", err)
	}
	s.fillDisk(1 << 30)
	abandon(t, a)
	w.mustClose(w.open("a"))
	w.checkStored()
}
