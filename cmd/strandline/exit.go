package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Exit codes are part of the interface.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDamage      = 3
	exitFenced      = 4 // or a lock held
	exitUnavailable = 5 // trying again may help
	exitNotOwner    = 6
)

// exitError carries a code; with a nil err everything was said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// byKind is the table from kinds to exit codes: the first that matches counts.
var byKind = []struct {
	kind error
	code int
}{
	{segment.ErrName, exitUsage},
	{catalog.ErrNoPosition, exitUsage},
	{localtier.ErrNotOwner, exitNotOwner},
	{localtier.ErrFenced, exitFenced},
	{localtier.ErrHeld, exitFenced},
	{localtier.ErrLeftover, exitFenced}, // what a fenced writer's directory meets at its next start
	{wal.ErrLocked, exitFenced},
	{catalog.ErrFenced, exitFenced},
	{coldload.ErrLost, exitDamage},
	{coldload.ErrCorrupt, exitDamage},
	{segment.ErrCorrupt, exitDamage},
	{objstore.ErrCorrupt, exitDamage},
	{catalog.ErrCorrupt, exitDamage},
	{localtier.ErrHalted, exitDamage},
	{localtier.ErrBackpressure, exitUnavailable},
	{wal.ErrFull, exitUnavailable},
	{objstore.ErrNoSpace, exitUnavailable},
	{catalog.ErrNoSpace, exitUnavailable},
	{localtier.ErrLeaseLost, exitUnavailable},
	{localtier.ErrUnpublished, exitUnavailable},
	{objstore.ErrUnavailable, exitUnavailable},
	{objstore.ErrAmbiguous, exitUnavailable},
	{objstore.ErrConflict, exitUnavailable}, // another operation was in the way
	{catalog.ErrUnavailable, exitUnavailable},
	{catalog.ErrAmbiguous, exitUnavailable},
	{context.DeadlineExceeded, exitUnavailable},
}

// interrupted says in one way what a signal cut short. Stores and catalogs call a
// cancelled call unavailable, which would send people looking at them. What has more to
// say (rows stay unpublished, a change may have been made) stays as it is.
func interrupted(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || exitCode(err) != exitUnavailable || errors.Is(err, localtier.ErrUnpublished) || ambiguous(err) || errors.Is(err, client.ErrUnknown) {
		return err
	}
	var told *exitError // by a client of another process: it knows what became of the call
	if errors.As(err, &told) || !errors.Is(err, context.Canceled) && !errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return &exitError{code: exitFailed, err: fmt.Errorf("interrupted before it was done: %w", context.Cause(ctx))}
}

// ambiguous says that something may have happened: whoever reads it has to look.
func ambiguous(err error) bool {
	return errors.Is(err, objstore.ErrAmbiguous) || errors.Is(err, catalog.ErrAmbiguous)
}

func exitCode(err error) int {
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	if code, ok := exitOfClient(err); ok {
		return code
	}
	for _, k := range byKind {
		if errors.Is(err, k.kind) {
			return k.code
		}
	}
	return exitFailed
}
