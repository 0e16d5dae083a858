package reap

import (
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// slotRight is the right to delete the slots [from, to) of a chain. Only planTrim
// makes one.
type slotRight struct {
	chain    segment.Chain
	from, to segment.ID
}

func (s slotRight) keys() []string {
	keys := make([]string, 0, s.to-s.from)
	for id := s.from; id < s.to; id++ {
		keys = append(keys, segment.SlotKey(s.chain, id))
	}
	return keys
}

// NamedError: a ref names a slot that was condemned. The cursors or the refs are
// wrong, and nothing is deleted until a person has looked.
type NamedError struct {
	Ref catalog.Ref
}

func (e *NamedError) Error() string {
	return fmt.Sprintf("condemned slot %s is named by a ref of stream %q, rows %v to %v: nothing is deleted on this chain: run fsck",
		e.Ref.Key, e.Ref.Stream, e.Ref.FirstPos(), e.Ref.LastPos())
}

// planTrim decides which condemned slots go. It is pure; why says what keeps them
// if none does. The catalog holds the same against its rows again in AdvanceTrim.
func planTrim(p catalog.TrimPlan) (right slotRight, why string, err error) {
	c := &p.Chain
	switch {
	case c.Condemned == c.Trimmed:
		return slotRight{}, "none is condemned", nil
	case !p.Due:
		return slotRight{}, "condemned at " + c.CondemnedAt.UTC().Format("15:04:05.000") + ", its grace runs", nil
	case len(p.Named) > 0:
		return slotRight{}, "", &NamedError{Ref: p.Named[0]}
	case len(p.Slots) == 0:
		return slotRight{}, "", fmt.Errorf("%w: chain %s has no slot rows in [%d, %d): run fsck", catalog.ErrCorrupt, c.Chain, c.Trimmed, c.Condemned)
	}
	next := c.Trimmed
	for i := range p.Slots {
		if p.Slots[i].ID != next || next >= c.Condemned {
			return slotRight{}, "", fmt.Errorf("%w: chain %s: slot row %d where %d was expected: run fsck", catalog.ErrCorrupt, c.Chain, p.Slots[i].ID, next)
		}
		next++
	}
	return slotRight{chain: c.Chain, from: c.Trimmed, to: next}, "", nil
}

type conclusion int

const (
	nothingLeft conclusion = iota
	graceRuns
	mayCondemn
)

// planConclude decides what step 3 does. Slots are condemned a batch at a time: a
// later one never shortens the grace of an earlier one, nor lengthens it.
func planConclude(c *catalog.ChainRow) conclusion {
	switch {
	case c.Condemned > c.Trimmed:
		return graceRuns
	case c.Rewritten > c.Condemned:
		return mayCondemn
	}
	return nothingLeft
}
