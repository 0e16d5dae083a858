package sqlite

import (
	"context"
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/strandline/strandline/catalog"
)

// kindOf maps a driver's error to one of catalog's kinds, nil if it is none of
// SQLite's.
func kindOf(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return nil
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_FULL:
		return catalog.ErrNoSpace
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_MISMATCH, lib.SQLITE_CONSTRAINT:
		return catalog.ErrCorrupt
	case lib.SQLITE_READONLY:
		return catalog.ErrReadOnly
	case lib.SQLITE_ERROR, lib.SQLITE_MISUSE, lib.SQLITE_RANGE, lib.SQLITE_TOOBIG:
		return nil // a statement of ours is wrong, or too much was asked
	}
	return catalog.ErrUnavailable // busy, locked, I/O, interrupted, no memory, cannot open
}

// mapError gives a statement's error its kind, once, with what was being done.
// Nothing happened: whoever gets it rolls back.
func mapError(doing string, err error) error {
	if err == nil || catalog.KindOf(err) != nil {
		return err
	}
	if ctxErr(err) {
		return fmt.Errorf("%w: %s: %w", catalog.ErrUnavailable, doing, err)
	}
	switch kind := kindOf(err); {
	case kind == nil:
		return fmt.Errorf("catalog: %s: %w", doing, err)
	case errors.Is(kind, catalog.ErrCorrupt):
		return fmt.Errorf("%w: %s: %w; stop all processes, keep the file, restore it or run rebuild", kind, doing, err)
	case errors.Is(kind, catalog.ErrNoSpace):
		return fmt.Errorf("%w: %s: %w; make room on the disk of the catalog", kind, doing, err)
	default:
		return fmt.Errorf("%w: %s: %w", kind, doing, err)
	}
}

// mapCommit gives the error of a COMMIT its kind. ambiguous: the commit record may
// have reached the log.
func mapCommit(err error) (mapped error, ambiguous bool) {
	switch kind := kindOf(err); {
	case errors.Is(kind, catalog.ErrNoSpace), errors.Is(kind, catalog.ErrReadOnly):
		return mapError("commit", err), false
	case errors.Is(kind, catalog.ErrUnavailable):
		var e *driver.Error
		if errors.As(err, &e) && (e.Code()&0xff == lib.SQLITE_BUSY || e.Code()&0xff == lib.SQLITE_LOCKED) {
			return mapError("commit", err), false
		}
	}
	return fmt.Errorf("%w: commit: %w", catalog.ErrAmbiguous, err), true
}

func ctxErr(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
