package catalog

import (
	"errors"
	"fmt"

	"github.com/strandline/strandline/segment"
)

// The closed set of kinds.
var (
	// ErrConflict: a guard failed; nothing changed. Read again before deciding.
	ErrConflict = errors.New("catalog: conflict")
	// ErrFenced: the chain belongs to a higher term, or another slot stood at this
	// position. Stop; nothing of the caller's is acknowledged.
	ErrFenced = errors.New("catalog: fenced")
	// ErrVoid: this slot was absorbed as void; its rows never entered the history.
	ErrVoid = errors.New("catalog: slot is void")
	// ErrNotFound: no such stream, chain, topology or marker.
	ErrNotFound = errors.New("catalog: not found")
	// ErrBeyondTip: a trim above the stream's last row.
	ErrBeyondTip = errors.New("catalog: beyond the stream's tip")
	// ErrUnavailable: the database did not answer, or is busy; nothing happened.
	ErrUnavailable = errors.New("catalog: unavailable")
	// ErrAmbiguous: the commit's answer was lost. Call the verb again.
	ErrAmbiguous = errors.New("catalog: outcome unknown")
	// ErrCorrupt: a row does not decode or breaks a rule of the model.
	ErrCorrupt = errors.New("catalog: corrupt")
	// ErrInvalid: the request cannot be right.
	ErrInvalid = errors.New("catalog: invalid request")
	// ErrReadOnly: a mutation on a catalog opened for reading.
	ErrReadOnly = errors.New("catalog: opened read-only")
	// ErrNewer: a newer build changed the schema since this process opened the catalog. It is
	// ErrUnavailable, too: whoever waits for a catalog that is away waits for this one as well.
	ErrNewer = errors.New("catalog: the schema is newer than this build")
	// ErrNoSpace: the disk under the database is full; nothing happened.
	ErrNoSpace = errors.New("catalog: no space left")
)

// KindOf is the one of these kinds that an error is of; nil: none.
func KindOf(err error) error {
	for _, k := range []error{
		ErrFenced, ErrVoid, ErrConflict, ErrNotFound, ErrBeyondTip,
		ErrNewer, ErrUnavailable, ErrAmbiguous, ErrCorrupt, ErrInvalid, ErrReadOnly, ErrNoSpace,
	} {
		if errors.Is(err, k) {
			return k
		}
	}
	return nil
}

// NewerSchema is what an implementation answers once a newer build has changed the schema
// under it. what names the catalog.
func NewerSchema(what string, have, known int64) error {
	return fmt.Errorf("%w: %w: %s has version %d since a newer strandline migrated it, this build knows %d: it reads and changes nothing any more; end this process and start the newer version",
		ErrUnavailable, ErrNewer, what, have, known)
}

// NoTopology is what an implementation answers where an epoch has chains and no row of its
// own.
func NoTopology(e segment.Epoch) error {
	return fmt.Errorf("%w: epoch %d has chains and no topology; run fsck", ErrCorrupt, e)
}

// ConflictError is a failed guard with what stood instead.
type ConflictError struct {
	Verb  string
	Guard string // which guard, in words: "absorbed_end", "ref unchanged" …
	Want  string
	Have  string
	Kind  error // ErrConflict, ErrFenced or ErrVoid
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: %s: %s: want %s, stands %s", e.Kind, e.Verb, e.Guard, e.Want, e.Have)
}

func (e *ConflictError) Unwrap() error { return e.Kind }
