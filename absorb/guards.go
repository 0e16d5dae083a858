package absorb

import (
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Guards says whether a slot that stands at absorbed_end follows what was absorbed
// before it: nil, a *GuardError (it never will), or a *HigherTermError (stop: not
// ours to judge). AbsorbSlot checks the same in its transaction and has the word;
// this tells a failing guard's kind beforehand.
func Guards(row catalog.ChainRow, s *segment.Slot, key string) error {
	switch {
	case s.Term > row.Term:
		return &HigherTermError{Key: key, Slot: s.Term, Row: row.Term}
	case s.Term < row.LastTerm:
		return &GuardError{"term", fmt.Sprintf("%d or more", row.LastTerm), fmt.Sprint(s.Term)}
	case s.Base != row.NextSeq:
		return &GuardError{"seq continuity", fmt.Sprintf("base seq %d", row.NextSeq), fmt.Sprint(s.Base)}
	case s.Prev != row.LastUUID:
		return &GuardError{"previous UUID", row.LastUUID.String(), s.Prev.String()}
	}
	return nil
}
