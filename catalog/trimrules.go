package catalog

import (
	"fmt"
	"time"

	"github.com/strandline/strandline/segment"
)

// RewrittenInput is what the trim-check's first step looks at (03 §7 step 1).
type RewrittenInput struct {
	Row ChainRow
	// Settle of the chain's topology.
	Settle bool
	// Earliest is the segment of the earliest standing settle marker, 0 if none stands.
	Earliest segment.ID
	// Named is the earliest slot up to the watermark that a ref still names, 0 if none
	// does. It is looked for only where nothing settles: elsewhere the settle marker of
	// such a slot stands.
	Named segment.ID
	// Slowest is the slot that holds the row after the slowest durable cursor, 0
	// without consumers or if they have acknowledged all.
	Slowest segment.ID
	// HoldFloor is the earliest slot that the consumers may still hold: what lies
	// below it is more than consumer-hold-max bytes behind. 0: no bound.
	HoldFloor segment.ID
}

// ConsumerHold finds, over a chain's slots from the newest down, the one of the slowest
// consumer's next row, and how far back its hold may reach.
type ConsumerHold struct {
	cursor segment.Seq
	max    int64
	bytes  int64
}

// Holds begins to look for what the chain's consumers hold back, nil if that is nothing;
// max of 0 or less sets no bound.
func (in *RewrittenInput) Holds(max int64) *ConsumerHold {
	slowest := SlowestCursor(in.Row.Consumers)
	if !slowest.OK || slowest.Seq+1 >= in.Row.NextSeq {
		return nil
	}
	if max > 0 {
		in.HoldFloor = in.Row.AbsorbedEnd
	}
	return &ConsumerHold{cursor: slowest.Seq, max: max}
}

// Take takes the next slot; over says that it and those before it are acknowledged.
func (h *ConsumerHold) Take(in *RewrittenInput, s *SlotRow) (over bool) {
	if !s.Void && s.Next <= h.cursor+1 {
		return true
	}
	if h.bytes += s.Bytes; h.bytes <= h.max && in.HoldFloor != 0 {
		in.HoldFloor = s.ID
	}
	if !s.Void {
		in.Slowest = s.ID
	}
	return false
}

// NextRewritten is the cursor after the step: never below condemned, never back.
func NextRewritten(in RewrittenInput) segment.ID {
	row := &in.Row
	to := row.AbsorbedEnd
	if !in.Settle {
		// Nothing is ever rewritten here: slots go when retention gave them up.
		to = min(to, row.WatermarkSegment+1)
	}
	if in.Named != 0 {
		// Its refs are dead, but not retired yet: its grace begins after that.
		to = min(to, in.Named)
	}
	if in.Earliest != 0 {
		to = min(to, in.Earliest)
	}
	if in.Slowest != 0 {
		to = min(to, max(in.Slowest, in.HoldFloor))
	}
	return max(to, row.Condemned, row.Rewritten)
}

// SlotsDue says whether condemned slots may be deleted now.
func SlotsDue(row *ChainRow, grace time.Duration, now time.Time) bool {
	return row.Condemned > row.Trimmed && !now.Before(row.CondemnedAt.Add(grace))
}

// Trimming is a step of a chain's trim-check that moves a cursor.
type Trimming struct {
	From, To segment.ID
	Grace    time.Duration
	Named    []Ref // refs that name a slot in [From, To)
}

// ValidateCondemnSlots checks that the marker is the chain's trim-check.
func ValidateCondemnSlots(m MarkerRef, c segment.Chain) error {
	if m.Duty != DutyTrimCheck || m.ID != ChainID(c) {
		return Invalid("CondemnSlots", "marker %s %s is not the trim-check of chain %s", m.Duty, m.ID, c)
	}
	return nil
}

// CondemnRow is the chain's row after step 3 of the trim-check.
func CondemnRow(row ChainRow, s Trimming, now time.Time) (ChainRow, error) {
	const verb = "CondemnSlots"
	switch {
	case row.Condemned != s.From:
		return row, Conflict(verb, "condemned", s.From, row.Condemned)
	case row.Trimmed != row.Condemned:
		return row, Conflict(verb, "trimmed = condemned", row.Condemned, row.Trimmed)
	case s.To <= s.From:
		return row, Invalid(verb, "to %d does not go past %d", s.To, s.From)
	case s.To > row.Rewritten:
		return row, Conflict(verb, "rewritten", fmt.Sprintf("at least %d", s.To), row.Rewritten)
	}
	row.Condemned, row.CondemnedAt = s.To, now
	return row, nil
}

// TrimRow is the chain's row after step 2 of the trim-check: the slots are deleted from
// every bucket.
func TrimRow(row ChainRow, s Trimming, now time.Time) (ChainRow, error) {
	const verb = "AdvanceTrim"
	switch {
	case row.Trimmed != s.From:
		return row, Conflict(verb, "trimmed", s.From, row.Trimmed)
	case s.To <= s.From:
		return row, Invalid(verb, "to %d does not go past %d", s.To, s.From)
	case s.To > row.Condemned:
		return row, Conflict(verb, "condemned", fmt.Sprintf("at least %d", s.To), row.Condemned)
	case !SlotsDue(&row, s.Grace, now):
		return row, Conflict(verb, "grace", fmt.Sprintf("%v since condemned", s.Grace), fmt.Sprintf("%v", now.Sub(row.CondemnedAt)))
	case len(s.Named) > 0:
		return row, Conflict(verb, "refs", fmt.Sprintf("none that names a slot of %s below %d", row.Chain, s.To), fmt.Sprintf("%s names %s", s.Named[0].FirstPos(), s.Named[0].Key))
	}
	row.Trimmed = s.To
	return row, nil
}

// JournalRow is the chain's row after trim record n, which was its next.
func JournalRow(row ChainRow, n uint64) (ChainRow, error) {
	if row.TrimJournal != n {
		return row, Conflict("AdvanceJournal", "trim journal of chain "+row.Chain.String(), n, row.TrimJournal)
	}
	row.TrimJournal++
	return row, nil
}

// CheckTrimPos: a stream is trimmed through its tip at most.
func CheckTrimPos(s *Stream, pos segment.Pos) error {
	if s.Last.Next().Less(pos) {
		return fmt.Errorf("%w: trim of %q to %s, its last row is %s", ErrBeyondTip, s.Name, pos, s.Last)
	}
	return nil
}

// CheckCursors: the order that every chain row keeps.
func CheckCursors(row *ChainRow) error {
	if row.Trimmed < 1 || row.Trimmed > row.Condemned || row.Condemned > row.Rewritten || row.Rewritten > row.AbsorbedEnd {
		return fmt.Errorf("%w: chain %s has trimmed %d, condemned %d, rewritten %d, absorbed_end %d: not in order; restore the catalog or rebuild it",
			ErrCorrupt, row.Chain, row.Trimmed, row.Condemned, row.Rewritten, row.AbsorbedEnd)
	}
	return nil
}
