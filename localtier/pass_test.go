package localtier

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// readOnlyTwenty is a look at twenty rows, four a segment, that counts opens.
func (w *world) readOnlyTwenty() (*ReadOnly, *opens) {
	w.t.Helper()
	a := w.twentyRows()
	abandon(w.t, a)
	ro, err := OpenReadOnly(w.t.Context(), a.shards[0].dir)
	if err != nil {
		w.t.Fatal(err)
	}
	o := &opens{segmentOpener: ro.index.log, n: map[segment.ID]int{}}
	ro.index.log = o
	return ro, o
}

// TestPassReadsOnce: a scan of segments that nobody read through opens each once, gives
// out rows that stay as they are, and leaves the tables that reading through makes.
func TestPassReadsOnce(t *testing.T) {
	ro, o := newWorld(t, 1).readOnlyTwenty()
	rows, err := collectShard(ro.ReadShard(t.Context(), 1, 0))
	if err != nil || len(rows) != 20 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, r := range rows {
		if r.Seq != segment.Seq(i+1) || string(r.Payload) != fmt.Sprint(i+1) {
			t.Errorf("row %d is %d: %q", i+1, r.Seq, r.Payload)
		}
	}
	for _, seg := range ro.index.segs {
		if o.n[seg.id] != 1 {
			t.Errorf("segment %d was opened %d times", seg.id, o.n[seg.id])
		}
		want, next, err := tableOf(t.Context(), ro.log, seg.id, seg.base)
		if err != nil || next != seg.next || !reflect.DeepEqual(want, seg.table) {
			t.Errorf("segment %d: table %+v to %d, %+v to %d wanted; %v", seg.id, seg.table, seg.next, want, next, err)
		}
	}
	if ro.index.held != 20 {
		t.Errorf("%d frames in the tables", ro.index.held)
	}
	if again, err := collectShard(ro.ReadShard(t.Context(), 1, 0)); err != nil || !reflect.DeepEqual(again, rows) || o.n[1] != 2 {
		t.Errorf("through the tables: %d rows, %d opens, %v", len(again), o.n[1], err)
	}
}

// TestPassStops: a reader that has enough leaves no table of what it did not read whole,
// and who goes on in the middle makes it. Nobody waits for a reader at rest.
func TestPassStops(t *testing.T) {
	ro, o := newWorld(t, 1).readOnlyTwenty()
	for r, err := range ro.ReadShard(t.Context(), 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Seq < 6 {
			continue
		}
		if got, err := scanLocal(ro.ReadShard(t.Context(), 5, 7)); err != nil || fmt.Sprint(got) != "[5:s:5 6:s:6 7:t1:7]" {
			t.Errorf("beside a reader: %v, %v", got, err)
		}
		break
	}
	if segs := ro.index.segs; segs[0].table == nil || segs[1].table != nil || o.n[2] != 2 {
		t.Errorf("tables %v, %v after %d opens", segs[0].table, segs[1].table, o.n[2])
	}
	if got, err := scanLocal(ro.ReadShard(t.Context(), 7, 9)); err != nil || fmt.Sprint(got) != "[7:t1:7 8:t1:8 9:s:9]" {
		t.Errorf("%v, %v", got, err)
	}
	if ro.index.segs[1].table == nil {
		t.Error("nobody made the table")
	}
}

// TestPassDamage: no row of a frame that does not validate is given out, nor one behind
// it, and the segment has no table.
func TestPassDamage(t *testing.T) {
	ro, _ := newWorld(t, 1).readOnlyTwenty()
	table, _, err := tableOf(t.Context(), ro.log, 2, 5)
	if err != nil {
		t.Fatal(err)
	}
	flip(t, filepath.Join(ro.dir, segment.FileName(2)), int64(table.at(2).off)+segment.FrameHeaderBytes+8)
	got, err := scanLocal(ro.ReadShard(t.Context(), 1, 0))
	var c *segment.CorruptionError
	if !errors.As(err, &c) || c.Segment != 2 || c.Offset != int64(table.at(2).off) || len(got) != 6 {
		t.Errorf("%v, %v", got, err)
	}
	if ro.index.segs[1].table != nil {
		t.Error("it has a table")
	}
	if got, err := scanLocal(ro.ReadShard(t.Context(), 9, 0)); err != nil || len(got) != 12 {
		t.Errorf("the segments behind it: %v, %v", got, err)
	}
}

func flip(t *testing.T, path string, off int64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[off] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAppendAllocations: an append of one frame allocates what the log does, and no more.
func TestAppendAllocations(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	rows := []segment.Row{{Payload: []byte("row"), Time: 1}}
	ctx := t.Context()
	inLog := func() {
		b := segment.Batch{Stream: "~audit/0", Rows: rows}
		ticket, err := a.shards[0].wal.AppendBatch(ctx, &b)
		if err == nil {
			_, err = ticket.Wait(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	inAll := func() {
		if _, err := a.Append(ctx, "s", rows, AckLocal); err != nil {
			t.Fatal(err)
		}
	}
	// Whatever else runs in the process is counted, too: some rounds are quiet.
	for round := 1; ; round++ {
		log, all := testing.AllocsPerRun(300, inLog), testing.AllocsPerRun(300, inAll)
		if all <= log {
			break
		}
		if round == 10 {
			t.Fatalf("%v allocations an append, %v of them in the log", all, log)
		}
	}
	abandon(t, a)
}

// TestAppendPoisoned: a poisoned log is told of before anything else that is wrong with an
// append, and before its frames.
func TestAppendPoisoned(t *testing.T) {
	w := newWorld(t, 1)
	disk := &sickFS{FS: osFS()}
	a := w.open("a", func(o *Options) { o.Config.WAL.FS = disk })
	disk.fail(true)
	for _, rows := range [][]segment.Row{{{Payload: []byte("row")}}, nil, {{Payload: make([]byte, segment.MaxFrameBytes)}}} {
		var s *ShardError
		if _, err := a.Append(t.Context(), "s", rows, AckLocal); !errors.Is(err, wal.ErrPoisoned) || !errors.As(err, &s) {
			t.Errorf("%d rows: %v", len(rows), err)
		}
	}
	abandon(t, a)
}
