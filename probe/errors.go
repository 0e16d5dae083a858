package probe

import (
	"errors"
	"fmt"
)

// ErrDamage: refs and object contradict each other. Nothing of the object is
// deleted; fsck says which rows are concerned.
var ErrDamage = errors.New("probe: refs and object contradict each other")

// RefsError is a fault in reading or understanding the refs. It says nothing of
// the object, and it ends the pass of whoever deletes: what is true of this key's
// refs may be true of all (K14, K16).
type RefsError struct {
	Key string
	Err error
}

func (e *RefsError) Error() string {
	return fmt.Sprintf("refs of %s: %v: no delete follows in this pass", e.Key, e.Err)
}

func (e *RefsError) Unwrap() error { return e.Err }

// DamageError says how refs and object contradict each other.
type DamageError struct {
	Key    string
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%v: %s: %s: run fsck", ErrDamage, e.Key, e.Reason)
}

func (e *DamageError) Unwrap() error { return ErrDamage }
