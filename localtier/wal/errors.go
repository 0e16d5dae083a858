package wal

import (
	"errors"
	"fmt"
	"syscall"
)

// The closed set of kinds; callers use errors.Is. Corruption is a
// *segment.CorruptionError.
var (
	// ErrLocked: another process has this directory open. See LockedError.
	ErrLocked = errors.New("shard directory is in use")
	// ErrPoisoned: an fdatasync failed, or a write that could not be rolled back.
	// Nothing is acknowledged until the directory is opened again.
	ErrPoisoned = errors.New("log is poisoned by a failed write or fsync; close it, look at the disk, and open it again")
	// ErrFull: the disk is full. Nothing was acknowledged, nothing is lost.
	ErrFull = errors.New("disk is full; free space on it, and appends go on (a start that met it: start again)")
	// ErrBackpressure: two segments' worth of bytes wait for the disk already.
	ErrBackpressure = errors.New("too many bytes wait for the disk; try again shortly")
	// ErrClosed: the log was closed.
	ErrClosed = errors.New("log is closed")
	// ErrNoSegment: the directory has no segment yet.
	ErrNoSegment = errors.New("log has no segment; start one first")
	// ErrNoIdentity: segments stand in a directory that has no IDENTITY file.
	ErrNoIdentity = errors.New("directory has segments and no IDENTITY file; restore IDENTITY from where the segments came from, or open an empty directory")
	// ErrNotFound: no such segment in this directory.
	ErrNotFound = errors.New("no such local segment; read it from the shared tier")
	// ErrOrder: a segment or checkpoint that does not follow what stands. A
	// mistake of the caller.
	ErrOrder = errors.New("does not follow what stands in the log")
)

// LockedError names who has the directory. It matches ErrLocked.
type LockedError struct {
	Path string
	PID  int // 0 if the holder has not written it yet
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is held by process %d: stop it, or use another directory", e.Path, e.PID)
}

// Unwrap makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Unwrap() error { return ErrLocked }

// classify adds ErrFull to an error of a full disk, an exhausted quota or a limit.
func classify(err error) error {
	if err == nil || errors.Is(err, ErrFull) {
		return err
	}
	// EFBIG: a limit on file sizes is a disk that ends early.
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
