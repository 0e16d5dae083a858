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

// CheckCondemnSlots holds step 3 of the trim-check against the row.
func CheckCondemnSlots(row *ChainRow, expect, to segment.ID) error {
	const verb = "CondemnSlots"
	switch {
	case row.Condemned != expect:
		return Conflict(verb, "condemned", expect, row.Condemned)
	case row.Trimmed != row.Condemned:
		return Conflict(verb, "trimmed = condemned", row.Condemned, row.Trimmed)
	case to <= expect:
		return Invalid(verb, "to %d does not go past %d", to, expect)
	case to > row.Rewritten:
		return Conflict(verb, "rewritten", fmt.Sprintf("at least %d", to), row.Rewritten)
	}
	return nil
}

// CheckAdvanceTrim holds the end of step 2 against the row.
func CheckAdvanceTrim(row *ChainRow, from, to segment.ID, grace time.Duration, now time.Time) error {
	const verb = "AdvanceTrim"
	switch {
	case row.Trimmed != from:
		return Conflict(verb, "trimmed", from, row.Trimmed)
	case to <= from:
		return Invalid(verb, "to %d does not go past %d", to, from)
	case to > row.Condemned:
		return Conflict(verb, "condemned", fmt.Sprintf("at least %d", to), row.Condemned)
	case !SlotsDue(row, grace, now):
		return Conflict(verb, "grace", fmt.Sprintf("%v since condemned", grace), fmt.Sprintf("%v", now.Sub(row.CondemnedAt)))
	}
	return nil
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
