package localtier

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// A directory of a writer: segments 3 and 4 sealed, 5 open, of term 2.
var (
	me, other    = segment.UUID{1}, segment.UUID{2}
	u2, u3, u4   = segment.UUID{12}, segment.UUID{13}, segment.UUID{14}
	u5           = segment.UUID{15}
	directory345 = []wal.SealedSegment{
		{ID: 3, UUID: u3, Prev: u2, Base: 10, Next: 20, Term: 2},
		{ID: 4, UUID: u4, Prev: u3, Base: 20, Next: 30, Term: 2},
	}
	open5 = wal.State{
		Segment: 5, UUID: u5, Open: true, Next: 33, DurableNext: 33,
		Start: segment.Start{ID: 5, Base: 30, Term: 2, Prev: u4},
	}
)

// TestDecide is the decision table of taking a chain: which directory may go on, and
// which local segment is the last absorbed one. One that is set aside wrongly would lose
// the order of rows that were acknowledged.
func TestDecide(t *testing.T) {
	row := func(change func(*catalog.ChainRow)) catalog.ChainRow {
		r := catalog.ChainRow{Owner: me, Term: 2, LastTerm: 2, LastUUID: u3, NextSeq: 20, AbsorbedEnd: 7}
		change(&r)
		return r
	}
	sealed5 := open5
	sealed5.Open = false
	all := append(directory345[:2:2], wal.SealedSegment{ID: 5, UUID: u5, Prev: u4, Base: 30, Next: 33, Term: 2})
	for name, c := range map[string]struct {
		row      catalog.ChainRow
		local    []wal.SealedSegment
		st       wal.State
		want     way
		absorbed segment.ID
	}{
		"links in the middle":               {row(func(*catalog.ChainRow) {}), directory345, open5, wayResume, 3},
		"nothing absorbed yet":              {row(func(r *catalog.ChainRow) { r.LastUUID, r.NextSeq = u2, 10 }), directory345, open5, wayResume, 2},
		"the open one is next":              {row(func(r *catalog.ChainRow) { r.LastUUID, r.NextSeq = u4, 30 }), directory345, open5, wayResume, 4},
		"all absorbed, newest sealed":       {row(func(r *catalog.ChainRow) { r.LastUUID, r.NextSeq = u5, 33 }), all, sealed5, wayResume, 5},
		"older ones are housekept":          {row(func(r *catalog.ChainRow) { r.LastUUID, r.NextSeq = u4, 30 }), nil, open5, wayResume, 4},
		"empty":                             {row(func(*catalog.ChainRow) {}), nil, wal.State{}, wayAcquire, 0},
		"closed":                            {row(func(r *catalog.ChainRow) { r.Closed = true }), directory345, open5, wayClosed, 0},
		"closed and empty":                  {row(func(r *catalog.ChainRow) { r.Closed = true }), nil, wal.State{}, wayClosed, 0},
		"another took it and has not begun": {row(func(r *catalog.ChainRow) { r.Owner, r.Term = other, 3 }), directory345, open5, wayTakeBack, 0},
		"another took it and fenced":        {row(func(r *catalog.ChainRow) { r.Owner, r.Term, r.LastTerm, r.LastUUID = other, 3, 3, segment.UUID{9} }), directory345, open5, waySetAside, 0},
		"its own, after another fenced":     {row(func(r *catalog.ChainRow) { r.Term, r.LastTerm, r.LastUUID = 4, 3, segment.UUID{9} }), directory345, open5, waySetAside, 0},
		"its own term left no segment":      {row(func(r *catalog.ChainRow) { r.Term = 3 }), directory345, open5, wayTakeBack, 0},
		"right uuid, wrong seq":             {row(func(r *catalog.ChainRow) { r.NextSeq = 21 }), directory345, open5, wayTakeBack, 0},
		"an unknown predecessor":            {row(func(r *catalog.ChainRow) { r.LastUUID = segment.UUID{9} }), directory345, open5, wayTakeBack, 0},
	} {
		got := decide(c.row, me, c.local, c.st)
		if got.way != c.want || got.absorbed != c.absorbed {
			t.Errorf("%s: way %d through %d, want %d through %d", name, got.way, got.absorbed, c.want, c.absorbed)
		}
	}
}

// TestLostSlots: a chain that ends before what the directory saw absorbed, with nobody
// else's slots to explain it.
func TestLostSlots(t *testing.T) {
	at := func(next segment.Seq, lastTerm segment.Term) catalog.ChainRow {
		return catalog.ChainRow{NextSeq: next, LastTerm: lastTerm}
	}
	if !lostSlots(at(9, 2), directory345, open5) || !lostSlots(at(29, 1), nil, open5) {
		t.Error("lost slots are not seen")
	}
	if lostSlots(at(10, 2), directory345, open5) || lostSlots(at(9, 3), directory345, open5) {
		t.Error("a chain that is not behind, or that another wrote, is taken for one that lost slots")
	}
}

// TestLeftOvers: only a prefix is given up, and only what holds rows is kept.
func TestLeftOvers(t *testing.T) {
	all := []leftOver{{ID: 3, Base: 10, Next: 20}, {ID: 4, Base: 20, Next: 20}, {ID: 5, Base: 20, Next: 25}, {ID: 6, Base: 25, Next: 26}}
	for _, c := range []struct {
		absorbed map[segment.ID]bool
		want     []segment.ID
	}{
		{map[segment.ID]bool{}, []segment.ID{3, 5, 6}},
		{map[segment.ID]bool{3: true}, []segment.ID{5, 6}},
		{map[segment.ID]bool{3: true, 4: true, 5: true, 6: true}, nil},
		{map[segment.ID]bool{5: true, 6: true}, []segment.ID{3, 5, 6}}, // against the order of a chain: a mistake somewhere
	} {
		var got []segment.ID
		for _, l := range leftOvers(all, func(l leftOver) segment.Seq {
			if c.absorbed[l.ID] {
				return l.Next
			}
			return 0
		}) {
			got = append(got, l.ID)
		}
		if len(got) != len(c.want) {
			t.Errorf("%v: left %v, want %v", c.absorbed, got, c.want)
		}
	}
}

// TestPlanReclaim: by seq, never the newest, never beyond CHECKPOINT.
func TestPlanReclaim(t *testing.T) {
	for _, c := range []struct {
		before    segment.ID
		watermark segment.Seq
		want      segment.Reclaim
	}{
		{5, 0, segment.Reclaim{}},
		{5, 18, segment.Reclaim{}},
		{5, 19, segment.Reclaim{Seq: 19, Segment: 3}},
		{5, 40, segment.Reclaim{Seq: 29, Segment: 4}},
		{4, 40, segment.Reclaim{Seq: 19, Segment: 3}},
		{3, 40, segment.Reclaim{}},
	} {
		got, ok := planReclaim(directory345, c.before, c.watermark)
		if got != c.want || ok != (c.want.Segment != 0) {
			t.Errorf("before %d, watermark %d: %+v %v, want %+v", c.before, c.watermark, got, ok, c.want)
		}
	}
}

// TestAsideNames: what is not ours is not listed.
func TestAsideNames(t *testing.T) {
	c, u := segment.Chain{Epoch: 3, Shard: 0xabc}, uuid.New()
	name := asideName(c, u, 12)
	q, ok := parseAside(name)
	if !ok || q.Chain != c || q.Writer != u {
		t.Errorf("%s: %+v, %v", name, q, ok)
	}
	for _, bad := range []string{"", "x", name + ".1", name[:len(name)-3], "removed." + name, c.String() + ".nobody.1", "0000000G.00000000." + u.String() + ".1", c.String() + "." + u.String() + ".01"} {
		if _, ok := parseAside(bad); ok {
			t.Errorf("%q is taken for one of ours", bad)
		}
	}
}

func TestBackoffWaitsAsAsked(t *testing.T) {
	cfg := Config{Backoff: time.Millisecond, MaxBackoff: time.Second}
	asked := fmt.Errorf("publish: %w", &objstore.Error{Op: "put", Key: "k", Kind: objstore.ErrUnavailable, RetryAfter: time.Minute})
	if got := backoff(cfg, 40, asked); got != time.Minute {
		t.Errorf("the store asked for a minute: %v", got)
	}
	if got := backoff(cfg, 40, errors.New("any")); got <= 0 || got > time.Second {
		t.Errorf("without an ask: %v", got)
	}
}
