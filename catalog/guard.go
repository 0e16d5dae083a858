package catalog

import (
	"fmt"
	"math"
	"time"

	"github.com/strandline/strandline/segment"
)

func conflict(kind error, verb, guard string, want, have any) error {
	return &ConflictError{Verb: verb, Guard: guard, Want: fmt.Sprint(want), Have: fmt.Sprint(have), Kind: kind}
}

// Conflict is a guard that failed with ErrConflict.
func Conflict(verb, guard string, want, have any) error {
	return conflict(ErrConflict, verb, guard, want, have)
}

// Invalid is a request that cannot be right.
func Invalid(verb, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrInvalid, verb, fmt.Sprintf(format, args...))
}

// AcquireRow is what an acquire makes of a chain's row (03 §3 steps 0 and 1). epoch is its
// topology, nil if none stands. takeover is what the audit table is told, "" if nothing.
func AcquireRow(row ChainRow, a *Acquire, epoch *Topology, now time.Time) (next ChainRow, takeover string, err error) {
	if err := checkAcquire(&row, a, now); err != nil {
		return row, "", err
	}
	if epoch == nil {
		return row, "", NoTopology(row.Epoch)
	}
	if err := checkOpened("AcquireChain", epoch); err != nil {
		return row, "", err
	}
	if row.Owner != a.Owner && row.Owner != (segment.UUID{}) {
		takeover = fmt.Sprintf("term %d: %s takes over from %s", row.Term+1, a.Owner, row.Owner)
	}
	row.Term++
	row.Owner, row.Address, row.LeaseEnd = a.Owner, a.Address, now.Add(a.Lease)
	return row, takeover, nil
}

// checkAcquire holds an acquire against the chain row.
func checkAcquire(row *ChainRow, a *Acquire, now time.Time) error {
	const verb = "AcquireChain"
	switch {
	case a.Owner == segment.UUID{}:
		return Invalid(verb, "no owner")
	case a.Lease <= 0:
		return Invalid(verb, "lease %v", a.Lease)
	case row.Closed:
		return Conflict(verb, "chain open", "an open chain", "closed: its epoch is over, write to the newest one")
	case row.Term != a.Expect:
		return Conflict(verb, "term", a.Expect, row.Term)
	case a.Resume && row.Owner != a.Owner:
		return Conflict(verb, "owner", a.Owner, row.Owner)
	case !a.Resume && !a.Steal && row.Owner != a.Owner && now.Before(row.LeaseEnd):
		return Conflict(verb, "lease", "ended, or steal", fmt.Sprintf("owner %s until %s", row.Owner, row.LeaseEnd.Format(time.RFC3339)))
	}
	return nil
}

// Claim is whose a chain is, as a caller has it.
type Claim struct {
	segment.Chain
	Owner segment.UUID
	Term  segment.Term
}

// CheckOwner is the fence of everything an owner does to its chain row.
func CheckOwner(verb string, row *ChainRow, c Claim) error {
	if row.Owner != c.Owner || row.Term != c.Term {
		return conflict(ErrFenced, verb, "owner and term", fmt.Sprintf("%s term %d", c.Owner, c.Term), fmt.Sprintf("%s term %d", row.Owner, row.Term))
	}
	return nil
}

// Absorbing is what an absorb is held against, beside the chain row.
type Absorbing struct {
	Stood *SlotRow // at the slot's position; nil: none
	Term  *TermRow // of the slot's term in the term table; nil: none
}

// CheckAbsorb holds a slot against the chain row (03 §2 step 3). already means that this
// very slot was absorbed before.
func CheckAbsorb(row *ChainRow, a *Absorb, look Absorbing, now time.Time) (already bool, err error) {
	const verb = "AbsorbSlot"
	s := &a.Slot
	switch {
	case s.ID < row.AbsorbedEnd:
		return true, checkAbsorbed(row, a, look)
	case s.ID > row.AbsorbedEnd:
		return false, Conflict(verb, "absorbed_end", s.ID, row.AbsorbedEnd)
	case a.CallerTerm != 0 && a.CallerTerm < row.Term, a.CallerTerm == row.Term && a.CallerTerm != 0 && a.CallerOwner != row.Owner:
		return false, conflict(ErrFenced, verb, "caller's term", a.CallerTerm, row.Term)
	case a.CallerTerm > row.Term:
		return false, Conflict(verb, "caller's term", a.CallerTerm, fmt.Sprintf("%d: the catalog lost terms, acquire above what stands in the bucket", row.Term))
	}
	if a.Void {
		return false, checkVoid(row, a, now)
	}
	return false, checkContinues(row, s)
}

// checkContinues: the slot goes on where the chain stands.
func checkContinues(row *ChainRow, s *SlotRow) error {
	const verb = "AbsorbSlot"
	switch {
	case row.Closed:
		return Conflict(verb, "chain open", "an open chain", "closed by an earlier slot")
	case s.Term < row.LastTerm:
		return Conflict(verb, "term of the last absorbed slot", fmt.Sprintf("at least %d", row.LastTerm), s.Term)
	case s.Term > row.Term:
		return Conflict(verb, "term of the chain", fmt.Sprintf("at most %d", row.Term), s.Term)
	case s.First != row.NextSeq:
		return Conflict(verb, "seq continuity", row.NextSeq, s.First)
	case s.Prev != row.LastUUID:
		return Conflict(verb, "previous UUID", row.LastUUID, s.Prev)
	}
	return nil
}

// checkVoid: only the present owner voids, or anyone once the lease is over.
func checkVoid(row *ChainRow, a *Absorb, now time.Time) error {
	owner := a.CallerOwner != segment.UUID{} && a.CallerOwner == row.Owner && a.CallerTerm == row.Term
	if !owner && now.Before(row.LeaseEnd) {
		return Conflict("AbsorbSlot", "right to void", "the chain's owner, or a lease that is over",
			fmt.Sprintf("owner %s until %s", row.Owner, row.LeaseEnd.Format(time.RFC3339)))
	}
	return nil
}

// checkAbsorbed decides about a position below absorbed_end. A caller that owns
// (or once owned) the chain acknowledges rows on nil, so it must hold the chain's
// present term (K1). Anyone else acknowledges nothing and only needs the slot row.
func checkAbsorbed(row *ChainRow, a *Absorb, look Absorbing) error {
	const verb = "AbsorbSlot"
	s, stood, term := &a.Slot, look.Stood, look.Term
	owner := a.CallerTerm != 0 || a.CallerOwner != segment.UUID{}
	if owner && (a.CallerTerm != row.Term || a.CallerOwner != row.Owner) {
		return conflict(ErrFenced, verb, "caller's term", fmt.Sprintf("%s term %d", a.CallerOwner, a.CallerTerm), fmt.Sprintf("%s term %d", row.Owner, row.Term))
	}
	if stood == nil {
		// The slot was trimmed. The term table does not know UUIDs, so it speaks only
		// for the caller's own present term, in which nobody else can have published.
		if owner && s.Term == row.Term && term != nil && term.Owner == a.CallerOwner &&
			term.First != 0 && term.First <= s.ID && s.ID <= term.Last && !a.Void {
			return nil
		}
		return conflict(ErrFenced, verb, "slot at position", s.UUID, fmt.Sprintf("nothing any more: position %d was trimmed", s.ID))
	}
	if stood.UUID != s.UUID || stood.Digest != s.Digest {
		return conflict(ErrFenced, verb, "slot at position", fmt.Sprintf("%s digest %016x", s.UUID, s.Digest), fmt.Sprintf("%s digest %016x", stood.UUID, stood.Digest))
	}
	if stood.Void && !a.Void {
		return conflict(ErrVoid, verb, "slot at position", "absorbed with its rows", "absorbed as void: its rows never entered the history")
	}
	if a.Void && !stood.Void {
		return Conflict(verb, "slot at position", "void", "absorbed with its rows")
	}
	return nil
}

// HoldsRows says whether a void slot may hold rows that somebody wants back. One
// that nobody could decode (seqs unknown) may.
func (a *Absorb) HoldsRows() bool {
	return len(a.Refs) > 0 || a.Slot.First == 0 || a.Slot.Next != a.Slot.First
}

// ValidateAbsorb checks what does not depend on the chain row.
func ValidateAbsorb(a *Absorb) error {
	const verb = "AbsorbSlot"
	s := &a.Slot
	switch {
	case s.ID == 0:
		return Invalid(verb, "no position")
	case a.Key != segment.SlotKey(s.Chain, s.ID):
		return Invalid(verb, "key %q is not that of position %d of chain %s", a.Key, s.ID, s.Chain)
	case s.UUID == segment.UUID{}:
		return Invalid(verb, "no segment UUID")
	case s.Bytes < 0:
		return Invalid(verb, "%d bytes", s.Bytes)
	case s.Void:
		return Invalid(verb, "the slot row says void: the request's Void decides")
	case a.Void:
		return nil // its refs are not looked at
	case s.Term == 0:
		return Invalid(verb, "no term")
	case s.First == 0 || s.Next < s.First || s.Next > math.MaxInt64:
		return Invalid(verb, "seqs %d to %d", s.First, s.Next)
	}
	return validateChunks(a)
}

// validateChunks: the refs account for every seq of the slot, none twice, in
// footer order.
func validateChunks(a *Absorb) error {
	const verb = "AbsorbSlot"
	s := &a.Slot
	var rows uint64
	for i := range a.Refs {
		r := &a.Refs[i]
		switch {
		case r.Kind != RefSlot || r.Revision != -1:
			return Invalid(verb, "chunk %d of kind %q, revision %d", i, string(r.Kind), r.Revision)
		case r.Stream == "":
			return Invalid(verb, "chunk %d has no stream", i)
		case r.Chain != s.Chain:
			return Invalid(verb, "chunk %d of chain %s in a slot of %s", i, r.Chain, s.Chain)
		case r.First < s.First || r.Last < r.First || r.Last >= s.Next:
			return Invalid(verb, "chunk %d has seqs %d to %d, the slot %d to %d", i, r.First, r.Last, s.First, s.Next)
		case r.Rows == 0 || r.Rows > uint64(r.Last-r.First)+1:
			return Invalid(verb, "chunk %d has %d rows from %d to %d", i, r.Rows, r.First, r.Last)
		case i > 0 && (r.Stream < a.Refs[i-1].Stream || r.Stream == a.Refs[i-1].Stream && r.First <= a.Refs[i-1].Last):
			return Invalid(verb, "chunk %d is out of (stream, seq) order", i)
		}
		rows += r.Rows
	}
	if rows != uint64(s.Next-s.First) {
		return Invalid(verb, "chunks hold %d rows, seqs %d to %d are %d", rows, s.First, s.Next, uint64(s.Next-s.First))
	}
	return nil
}
