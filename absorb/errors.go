package absorb

import (
	"errors"
	"fmt"

	"github.com/strandline/strandline/segment"
)

// ErrStructural: what stands at a position is no slot that can be absorbed there.
var ErrStructural = errors.New("absorb: not an absorbable slot")

// ErrHigherTerm: a slot of a term that the chain row has not reached.
var ErrHigherTerm = errors.New("absorb: slot of a higher term")

// Finding is a slot that was read in full, twice, and cannot be absorbed as what
// it says. Void is the way past it.
type Finding struct {
	Chain  segment.Chain
	ID     segment.ID
	Key    string
	Size   int64
	Meta   map[string]string
	Footer *segment.Footer // nil if it does not decode
	Err    error           // structural, or a *GuardError
}

func (e *Finding) Error() string {
	return fmt.Sprintf("%v: %s: %v", ErrStructural, e.Key, e.Err)
}

// Unwrap lets errors.Is find the kind and the cause.
func (e *Finding) Unwrap() []error { return []error{ErrStructural, e.Err} }

// GuardError is a slot that does not follow what was absorbed before it.
type GuardError struct {
	Guard      string // as in 03 §2: "term", "seq continuity", "previous UUID"
	Want, Have string
}

func (e *GuardError) Error() string {
	return fmt.Sprintf("%s: the chain wants %s, the slot has %s", e.Guard, e.Want, e.Have)
}

// HigherTermError names both terms.
type HigherTermError struct {
	Key       string
	Slot, Row segment.Term
}

func (e *HigherTermError) Error() string {
	return fmt.Sprintf("%v: %s was written in term %d, the catalog says %d: a later owner is at work, or the catalog lost terms",
		ErrHigherTerm, e.Key, e.Slot, e.Row)
}

func (e *HigherTermError) Unwrap() error { return ErrHigherTerm }
