package reap_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
)

// journal is a chain's trim records as they stand, by number.
func journal(t *testing.T, x *tiertest.Tier) map[uint64]*segment.TrimRecord {
	t.Helper()
	out := map[uint64]*segment.TrimRecord{}
	for info, err := range x.Store.List(t.Context(), segment.TrimPrefix(x.Chain), "") {
		if err != nil {
			t.Fatal(err)
		}
		body, _, err := x.Store.ReadAll(t.Context(), info.Key, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := segment.DecodeTrim(body)
		if err != nil {
			t.Fatal(err)
		}
		out[rec.N] = rec
	}
	return out
}

// record puts one trim record and moves the chain's number past it.
func record(t *testing.T, x *tiertest.Tier, n uint64, name string, seq segment.Seq, deleted bool) {
	t.Helper()
	body, err := segment.EncodeTrim(&segment.TrimRecord{
		Epoch: x.Chain.Epoch, Shard: x.Chain.Shard, N: n,
		Streams: []segment.StreamTrim{{Name: name, LiveFrom: segment.Pos{Epoch: 1, Seq: seq}, Deleted: deleted}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Store.PutOnce(t.Context(), segment.TrimKey(x.Chain, n), body, nil); err != nil {
		t.Fatal(err)
	}
	if err := x.Catalog.AdvanceJournal(t.Context(), x.Chain, n); err != nil {
		t.Fatal(err)
	}
}

// TestFoldJournal: many trim records become one snapshot that says all of them; they
// go a grace later, no sooner; and nothing is folded twice.
func TestFoldJournal(t *testing.T) {
	x := tiertest.New(t, nil)
	trimmer := reap.NewTrimmer(x.Catalog, x.Classes, orphan.NewDeleter(x.Classes), 0)
	fold := func() reap.FoldReport {
		t.Helper()
		r, err := trimmer.Fold(t.Context(), x.Chain)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	row, err := x.Catalog.Chain(t.Context(), x.Chain)
	if err != nil {
		t.Fatal(err)
	}
	first := row.TrimJournal
	const n = 63
	for i := range uint64(n) {
		record(t, x, first+i, fmt.Sprintf("s%d", i%10), segment.Seq(100+i), i == n-1)
	}
	if r := fold(); r != (reap.FoldReport{Records: n}) {
		t.Fatalf("one record short of a snapshot: %+v", r)
	}
	record(t, x, first+n, "s0", 7, false) // an older position, journaled late, lowers nothing
	if r := fold(); r.Folded != n+1 || r.Deleted != 0 {
		t.Fatalf("%+v", r)
	}
	snap := journal(t, x)[first+n+1]
	if snap == nil || !snap.Snapshot || len(snap.Streams) != 10 {
		t.Fatalf("no snapshot behind the records: %+v", snap)
	}
	for _, s := range snap.Streams {
		var i segment.Seq
		if _, err := fmt.Sscanf(s.Name, "s%d", &i); err != nil {
			t.Fatal(err)
		}
		want := 100 + 50 + i // the last time that it was trimmed
		if i < 3 {
			want += 10
		}
		if s.LiveFrom.Seq != want || s.Deleted != (i == 2) {
			t.Errorf("%s: live from %d, deleted %v; want %d", s.Name, s.LiveFrom.Seq, s.Deleted, want)
		}
	}
	if r := fold(); r.Folded+r.Deleted != 0 {
		t.Fatalf("within the grace: %+v", r)
	}
	record(t, x, first+n+2, "t", 1, false)
	x.Clock.Advance(tiertest.ReadGrace + time.Second)
	if r := fold(); r.Deleted != n+1 || r.Folded != 0 {
		t.Fatalf("a grace later: %+v", r)
	}
	if left := journal(t, x); len(left) != 2 || left[first+n+1] == nil || left[first+n+2] == nil {
		t.Fatalf("%d records are left", len(left))
	}
}

// TestFoldLosesToAWalk: a walk that took the number of the snapshot is not forgotten.
func TestFoldLosesToAWalk(t *testing.T) {
	x := tiertest.New(t, nil)
	row, err := x.Catalog.Chain(t.Context(), x.Chain)
	if err != nil {
		t.Fatal(err)
	}
	first := row.TrimJournal
	for i := range uint64(64) {
		record(t, x, first+i, "s", segment.Seq(100+i), false)
	}
	// The walk moved the row past the next number; its record is still on its way.
	if err := x.Catalog.AdvanceJournal(t.Context(), x.Chain, first+64); err != nil {
		t.Fatal(err)
	}
	r, err := reap.NewTrimmer(x.Catalog, x.Classes, orphan.NewDeleter(x.Classes), 0).Fold(t.Context(), x.Chain)
	if err != nil || r.Folded != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := len(journal(t, x)); got != 64 {
		t.Fatalf("%d records", got)
	}
}
