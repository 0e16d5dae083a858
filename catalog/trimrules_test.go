package catalog

import (
	"errors"
	"testing"
	"time"

	"github.com/strandline/strandline/segment"
)

// TestTrimRow: slots go a whole grace after they were condemned, in order, and none that a
// ref names (I2, I4).
func TestTrimRow(t *testing.T) {
	const grace = time.Hour
	row := ChainRow{AbsorbedEnd: 9, Rewritten: 8, Condemned: 6, Trimmed: 3, CondemnedAt: t0}
	ripe := t0.Add(grace)
	for name, x := range map[string]struct {
		step Trimming
		now  time.Time
		kind error
	}{
		"all of them":         {Trimming{From: 3, To: 6}, ripe, nil},
		"some of them":        {Trimming{From: 3, To: 4}, ripe, nil},
		"within the grace":    {Trimming{From: 3, To: 6}, ripe.Add(-1), ErrConflict},
		"from another cursor": {Trimming{From: 2, To: 6}, ripe, ErrConflict},
		"past condemned":      {Trimming{From: 3, To: 7}, ripe, ErrConflict},
		"not past trimmed":    {Trimming{From: 3, To: 3}, ripe, ErrInvalid},
		"a ref names one":     {Trimming{From: 3, To: 6, Named: []Ref{{Key: "slot"}}}, ripe, ErrConflict},
	} {
		x.step.Grace = grace
		next, err := TrimRow(row, x.step, x.now)
		if !errors.Is(err, x.kind) || err == nil && next.Trimmed != x.step.To || err != nil && next.Trimmed != row.Trimmed {
			t.Errorf("%s: trimmed %d: %v", name, next.Trimmed, err)
		}
	}
}

// TestCondemnRow: what was rewritten is condemned as of now, once what was condemned before
// is gone.
func TestCondemnRow(t *testing.T) {
	row := ChainRow{AbsorbedEnd: 9, Rewritten: 8, Condemned: 3, Trimmed: 3, CondemnedAt: t0}
	for name, x := range map[string]struct {
		trimmed segment.ID
		step    Trimming
		kind    error
	}{
		"all of it":             {3, Trimming{From: 3, To: 8}, nil},
		"some of it":            {3, Trimming{From: 3, To: 4}, nil},
		"from another cursor":   {3, Trimming{From: 2, To: 8}, ErrConflict},
		"more than rewritten":   {3, Trimming{From: 3, To: 9}, ErrConflict},
		"nothing":               {3, Trimming{From: 3, To: 3}, ErrInvalid},
		"while some are to go":  {2, Trimming{From: 3, To: 8}, ErrConflict},
		"back behind condemned": {3, Trimming{From: 3, To: 1}, ErrInvalid},
	} {
		was := row
		was.Trimmed = x.trimmed
		now := t0.Add(time.Hour)
		next, err := CondemnRow(was, x.step, now)
		if !errors.Is(err, x.kind) || err == nil && (next.Condemned != x.step.To || !next.CondemnedAt.Equal(now)) || err != nil && !next.CondemnedAt.Equal(t0) {
			t.Errorf("%s: condemned %d at %v: %v", name, next.Condemned, next.CondemnedAt, err)
		}
	}
	c := segment.Chain{Epoch: 1, Shard: 2}
	for m, sound := range map[MarkerRef]bool{
		{Duty: DutyTrimCheck, ID: ChainID(c)}:                       true,
		{Duty: DutyReclaim, ID: ChainID(c)}:                         false,
		{Duty: DutyTrimCheck, ID: ChainID(segment.Chain{Epoch: 1})}: false,
	} {
		if err := ValidateCondemnSlots(m, c); (err == nil) != sound {
			t.Errorf("marker %v: %v", m, err)
		}
	}
}

func TestJournalRow(t *testing.T) {
	if next, err := JournalRow(ChainRow{TrimJournal: 4}, 4); err != nil || next.TrimJournal != 5 {
		t.Errorf("the next record: %d, %v", next.TrimJournal, err)
	}
	for _, n := range []uint64{3, 5} {
		if next, err := JournalRow(ChainRow{TrimJournal: 4}, n); !errors.Is(err, ErrConflict) || next.TrimJournal != 4 {
			t.Errorf("record %d: %d, %v", n, next.TrimJournal, err)
		}
	}
}

// TestConsumerHold: a consumer holds the slot of its next row, void slots hold nothing but
// count, and the hold reaches so many bytes back.
func TestConsumerHold(t *testing.T) {
	slots := []SlotRow{ // newest first: rows 31 to 40, 21 to 30, a void one, 11 to 20, 1 to 10
		{ID: 5, Next: 41, Bytes: 10}, {ID: 4, Next: 31, Bytes: 10}, {ID: 3, Bytes: 10, Void: true}, {ID: 2, Next: 21, Bytes: 10}, {ID: 1, Next: 11, Bytes: 10},
	}
	for name, x := range map[string]struct {
		cursor         segment.Seq
		max            int64
		slowest, floor segment.ID
	}{
		"nothing acknowledged": {0, 0, 1, 0},
		"within a slot":        {15, 0, 2, 0},
		"at a slot's end":      {20, 0, 4, 0},
		"a void one behind":    {20, 100, 4, 3},
		"bound to two slots":   {0, 20, 1, 4},
		"bound to less":        {0, 9, 1, 6},
		"all of it in bounds":  {0, 50, 1, 1},
		"all acknowledged":     {40, 50, 0, 0},
	} {
		in := RewrittenInput{Row: ChainRow{NextSeq: 41, AbsorbedEnd: 6, Consumers: []segment.Consumer{{Name: "a", Cursor: x.cursor}, {Name: "b", Cursor: 40}}}}
		if hold := in.Holds(x.max); hold != nil {
			for i := range slots {
				if hold.Take(&in, &slots[i]) {
					break
				}
			}
		}
		if in.Slowest != x.slowest || in.HoldFloor != x.floor {
			t.Errorf("%s: slowest %d, floor %d; want %d, %d", name, in.Slowest, in.HoldFloor, x.slowest, x.floor)
		}
	}
	in := RewrittenInput{Row: ChainRow{NextSeq: 41, AbsorbedEnd: 6}}
	if in.Holds(50) != nil {
		t.Error("no consumer, and something is held")
	}
}
