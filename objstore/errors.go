package objstore

import (
	"errors"
	"fmt"
	"time"
)

// The closed set of kinds. A driver decides the kind once; callers use
// errors.Is. An error of none of these kinds is a bug in a driver.
var (
	// ErrNotFound: the bucket answered that no object (or no upload) stands there.
	ErrNotFound = errors.New("not found")
	// ErrExists: a create-once write met an object that is not this call's own.
	ErrExists = errors.New("exists already")
	// ErrPrecondition: an If-Match did not hold.
	ErrPrecondition = errors.New("precondition failed")
	// ErrConflict: a concurrent operation was in the way (HTTP 409). It is not
	// "exists": the same call may be made again.
	ErrConflict = errors.New("conflicting operation")
	// ErrUnavailable: throttled, 5xx, or unreachable, and known not to be applied
	// (reads; writes refused by an answer). Trying again may help.
	ErrUnavailable = errors.New("unavailable")
	// ErrAmbiguous: a mutation may or may not have happened. The caller reads
	// back before it decides anything.
	ErrAmbiguous = errors.New("outcome unknown")
	// ErrDenied: credentials, permissions or clock skew.
	ErrDenied = errors.New("denied")
	// ErrRange: the range does not lie within the object.
	ErrRange = errors.New("range not satisfiable")
	// ErrShort: a body ended before the promised number of bytes. Never a verdict
	// about the object: read again.
	ErrShort = errors.New("body cut short")
	// ErrInvalid: the request cannot be right (key, size, part number).
	ErrInvalid = errors.New("invalid request")
	// ErrUnsupported: the store cannot do this (see Capabilities).
	ErrUnsupported = errors.New("not supported by this store")
	// ErrCorrupt: the store's own record of an object does not validate.
	ErrCorrupt = errors.New("corrupt")
	// ErrNoSpace: the store is full.
	ErrNoSpace = errors.New("no space left")
)

// Error is the one context of this layer.
type Error struct {
	Op   string // "put", "get", "list" …
	Key  string
	Kind error // one of the kinds above
	Err  error // what the client or the system said; may be nil
	// RetryAfter is how long the store asked to be left alone; 0: it did not ask.
	RetryAfter time.Duration
	// Throttled: the store refused because it is overloaded (SlowDown, 429, a 503 in
	// its own words). It concerns every call of the Store, not only this one.
	Throttled bool
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s %s: %v", e.Op, e.Key, e.Kind)
	if e.Key == "" { // a list of everything
		s = fmt.Sprintf("%s: %v", e.Op, e.Kind)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap lets errors.Is find both the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// RetryAfter is the longest time that a store asked to be left alone, anywhere in
// err; 0: it did not ask. A schedule that takes a failed call up again waits for it.
func RetryAfter(err error) time.Duration {
	after, _ := asked(err)
	return after
}

// asked reads what the store said of its load out of the whole tree of err: the
// error that a caller gets may wrap the store's own.
func asked(err error) (after time.Duration, throttled bool) {
	if e, ok := err.(*Error); ok { //nolint:errorlint // each node is looked at
		after, throttled = e.RetryAfter, e.Throttled
	}
	var causes []error
	switch u := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		causes = []error{u.Unwrap()}
	case interface{ Unwrap() []error }:
		causes = u.Unwrap()
	}
	for _, cause := range causes {
		a, t := asked(cause)
		after, throttled = max(after, a), throttled || t
	}
	return after, throttled
}
