package catalog

import (
	"errors"
	"fmt"

	"github.com/strandline/strandline/segment"
)

var (
	// ErrForked: the history went on without the rows that a token stands behind.
	ErrForked = errors.New("catalog: history forked")
	// ErrNoPosition: a token that this deployment cannot have handed out.
	ErrNoPosition = errors.New("no position of this deployment")
)

// ForkedError says where. It matches ErrForked.
type ForkedError struct {
	Token  segment.Token
	Forked segment.Seq  // first seq that is not the token's history any more
	Term   segment.Term // the later term that wrote it
}

func (e *ForkedError) Error() string {
	return fmt.Sprintf("%v: position %s is behind rows of term %d that never reached the shared tier; from seq %d on the chain is term %d's: "+
		"read again from seq %d, and take back what was made of rows from there on", ErrForked, e.Token, e.Token.Term, e.Forked, e.Term, e.Forked)
}

// Unwrap makes errors.Is(err, ErrForked) true.
func (e *ForkedError) Unwrap() error { return ErrForked }

// NoPositionError says why. It matches ErrNoPosition.
type NoPositionError struct {
	Token segment.Token
	Never string // what never was, and what was
}

func (e *NoPositionError) Error() string {
	return fmt.Sprintf("%s is %v: %s; give a token as append or pull handed it out, or a bare seq", e.Token, ErrNoPosition, e.Never)
}

// Unwrap makes errors.Is(err, ErrNoPosition) true.
func (e *NoPositionError) Unwrap() error { return ErrNoPosition }

// CheckToken says whether whoever stands at tok stands in the chain's history: it is
// *ForkedError if not, and *NoPositionError if no owner of the chain had the token's term.
// terms are the chain's, in the token's epoch, in any order.
//
// AcquireChain writes the row of a term before its owner hands out a token of it, so a
// term without a row never was. A chain without any term was never acquired, and its
// positions are checked by what is read.
//
// A term begins at the first slot of it that is absorbed; until then positions are its
// predecessors'. So the history of a token ends with the last row that its own term, or
// one before it, had absorbed, and it is final once a later term has begun. Until then
// rows beyond it may still be on their way: no fork, however many terms were acquired.
// A resumed owner publishes the rows of the term before under that term, and begins its
// own after them: what it acknowledged stays history.
func CheckToken(terms []TermRow, tok segment.Token) error {
	var end segment.Seq // of the token's history
	var later *TermRow  // the earliest later term that has begun
	var newest segment.Term
	acquired := false // the token's own term
	for i := range terms {
		t := &terms[i]
		newest = max(newest, t.Term)
		acquired = acquired || t.Term == tok.Term
		switch {
		case t.First == 0: // acquired, nothing absorbed
		case t.Term <= tok.Term:
			end = max(end, t.LastSeq)
		case later == nil || t.Term < later.Term:
			later = t
		}
	}
	switch {
	case later != nil && tok.Seq > end:
		// Also of a term whose row is gone: this says from where to read again.
	case len(terms) > 0 && !acquired:
		return &NoPositionError{Token: tok, Never: fmt.Sprintf("its shard never had a term %d, the newest is %d", tok.Term, newest)}
	default:
		return nil
	}
	return &ForkedError{Token: tok, Forked: end + 1, Term: later.Term}
}
