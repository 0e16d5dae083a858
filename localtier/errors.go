package localtier

import (
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// The kinds of this package; callers use errors.Is, or errors.As for the structs.
var (
	// ErrNotOwner: the stream's shard is not served here. Nothing was written.
	ErrNotOwner = errors.New("not the owner of this shard")
	// ErrBackpressure: a cap is reached; the same append may be made again later.
	// Nothing was written.
	ErrBackpressure = errors.New("backpressure")
	// ErrDiskFull: a BackpressureError for want of disk. Nothing was written; appends go on by
	// themselves once there is room again.
	ErrDiskFull = errors.New("disk full")
	// ErrPartial: a PartialError. The first rows of the append are durable, the rest is refused
	// with one of the kinds above, which is then true of the rest.
	ErrPartial = errors.New("a part of the append was taken")
	// ErrTooLarge: a row that no frame can hold. Nothing was written.
	ErrTooLarge = errors.New("row too large")
	// ErrInvalid: a request that cannot be right. Nothing was written.
	ErrInvalid = errors.New("invalid request")
	// ErrFenced: the chain belongs to another owner by now. Appends and local reads
	// stop; the local segments stay.
	ErrFenced = errors.New("fenced")
	// ErrLeaseLost: the lease ran out and could not be renewed; another process may
	// own the chain. Appends go on once the catalog answers.
	ErrLeaseLost = errors.New("lease ran out")
	// ErrHalted: the shard stopped on damage; a person has to look.
	ErrHalted = errors.New("shard halted")
	// ErrClosed: the writer is closing or closed.
	ErrClosed = errors.New("writer closed")
	// ErrHeld: another owner's lease on the chain lives.
	ErrHeld = errors.New("chain is owned by another writer")
	// ErrChainClosed: the chain's epoch has ended.
	ErrChainClosed = errors.New("chain is closed")
	// ErrRolledBack: the catalog is older than the bucket says.
	ErrRolledBack = errors.New("catalog was rolled back")
	// ErrLeftover: the directory holds segments, and the catalog knows nothing of a writer
	// that may have made them.
	ErrLeftover = errors.New("directory is of no writer that the catalog knows")
	// ErrUnpublished: closed with segments that the shared tier does not hold.
	ErrUnpublished = errors.New("segments left unpublished")
	// ErrNotLocal: rows below what this directory still has: read them from the bucket.
	ErrNotLocal = errors.New("rows are not local any more")
	// ErrSequence: a producer's sequence that is not its next. Nothing was written.
	ErrSequence = errors.New("not the producer's next sequence")
	// ErrNoConsumer: the shard has no such durable consumer.
	ErrNoConsumer = errors.New("no such consumer")
	// ErrQuarantine: more lies in quarantine than Config.QuarantineMax.
	ErrQuarantine = errors.New("quarantine is over its cap")
	// ErrUnjudged: it is not known yet which rows of a quarantined directory the chain has.
	ErrUnjudged = errors.New("not judged yet")
	// ErrTooManyConsumers: the shard has as many as a segment can carry.
	ErrTooManyConsumers = errors.New("too many consumers")
)

// NotOwnerError says who owns the stream's shard, as far as the catalog knows.
type NotOwnerError struct {
	Stream string // empty: the shard itself was asked for
	Shard  segment.Shard
	Owner  string // address; empty if unknown
	Nobody bool   // it is known that no process has taken the shard yet
}

func (e *NotOwnerError) Error() string {
	what := fmt.Sprintf("shard %d", e.Shard)
	if e.Stream != "" {
		what = fmt.Sprintf("stream %q belongs to shard %d, which", e.Stream, e.Shard)
	}
	switch {
	case e.Owner != "":
		return fmt.Sprintf("%s is not served here; its owner is %s", what, e.Owner)
	case e.Nobody:
		return fmt.Sprintf("%s is taken by no process yet: start one that takes it, `strandline writer --shards %d`", what, e.Shard)
	}
	return what + " is not served here; its owner is unknown: ask the catalog with `strandline status`"
}

func (e *NotOwnerError) Unwrap() error { return ErrNotOwner }

// BackpressureError says which cap was met and when to come again.
type BackpressureError struct {
	Chain      segment.Chain
	Reason     string
	RetryAfter time.Duration
	Full       bool // the disk is what lacks; it matches ErrDiskFull, too
}

func (e *BackpressureError) Error() string {
	if e.Full {
		return fmt.Sprintf("chain %s takes no rows for now: %s; free space there (`du -sh` shows what fills it, `strandline quarantine ls` what was set aside): "+
			"appends go on by themselves then, reads and publishing go on meanwhile, and nothing acknowledged is lost", e.Chain, e.Reason)
	}
	return fmt.Sprintf("chain %s takes no rows for now: %s; try again in %v", e.Chain, e.Reason, e.RetryAfter)
}

// Unwrap lets errors.Is find the kinds.
func (e *BackpressureError) Unwrap() []error {
	if e.Full {
		return []error{ErrBackpressure, ErrDiskFull}
	}
	return []error{ErrBackpressure}
}

// FencedError says who took the chain and what stays here.
type FencedError struct {
	Chain  segment.Chain
	Term   segment.Term // of this owner
	Reason string
	Dir    string
	Left   int   // segments that the shared tier does not hold
	Bytes  int64 // in them
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("chain %s: fenced in term %d: %s; %d segments (%d bytes) that were not published stay in %s: "+
		"start this writer again: it sets them aside, and `strandline salvage` appends their rows anew", e.Chain, e.Term, e.Reason, e.Left, e.Bytes, e.Dir)
}

func (e *FencedError) Unwrap() error { return ErrFenced }

// ShardError is what opening or running one shard ended in.
type ShardError struct {
	Chain segment.Chain
	Dir   string
	Doing string
	Kind  error // one of the kinds above; nil if the cause says it all
	Err   error
	Next  string // what to do
}

func (e *ShardError) Error() string {
	s := fmt.Sprintf("chain %s (%s): %s", e.Chain, e.Dir, e.Doing)
	if e.Kind != nil {
		s += ": " + e.Kind.Error()
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Next != "" {
		s += "; " + e.Next
	}
	return s
}

// Unwrap lets errors.Is find the kind and the cause.
func (e *ShardError) Unwrap() []error {
	var out []error
	if e.Kind != nil {
		out = append(out, e.Kind)
	}
	if e.Err != nil {
		out = append(out, e.Err)
	}
	return out
}

// LeftError is what a Close could not get into the shared tier.
type LeftError struct {
	Chain    segment.Chain
	Dir      string
	Segments int
	Bytes    int64
	Cause    error
}

func (e *LeftError) Error() string {
	what := "segments"
	if e.Segments == 1 {
		what = "segment"
	}
	s := fmt.Sprintf("chain %s: rows stay unpublished in %s: %d %s, %d bytes (%v)", e.Chain, e.Dir, e.Segments, what, e.Bytes, e.Cause)
	if errors.Is(e.Cause, ErrFenced) {
		return s // which says what to do, and it is not this
	}
	return s + "; start the writer on this directory again"
}

// Unwrap lets errors.Is find the kind and the cause.
func (e *LeftError) Unwrap() []error { return []error{ErrUnpublished, e.Cause} }

// NotLocalError says from where on this directory has the chain's rows.
type NotLocalError struct {
	Chain segment.Chain
	First segment.Seq
}

func (e *NotLocalError) Error() string {
	return fmt.Sprintf("chain %s: local rows begin at seq %d; read what is before it from the bucket", e.Chain, e.First)
}

func (e *NotLocalError) Unwrap() error { return ErrNotLocal }

// SequenceError says which sequence the shard expects of a producer next.
type SequenceError struct {
	Chain    segment.Chain
	Producer string
	Sequence uint64
	Expect   uint64
	// Others: the sequence was taken by other rows than those said with it now.
	Others bool
}

// Taken says that the sequence was used before; if not, sequences are missing.
func (e *SequenceError) Taken() bool { return e.Sequence < e.Expect }

func (e *SequenceError) Error() string {
	// Whoever numbers over all of its streams meets this at the second shard.
	const perShard = "numbers count per shard: who appends to streams of several shards numbers each shard's appends by itself"
	if e.Others {
		return fmt.Sprintf("chain %s has other rows of producer %q under sequence %d, and none of these: a number belongs to its rows for ever; begin a new producer with them (%s)",
			e.Chain, e.Producer, e.Sequence, perShard)
	}
	if e.Taken() {
		return fmt.Sprintf("chain %s has appends of producer %q up to sequence %d: %d was taken before, and where its rows are is forgotten; go on with %d (%s)",
			e.Chain, e.Producer, e.Expect-1, e.Sequence, e.Expect, perShard)
	}
	return fmt.Sprintf("chain %s has appends of producer %q up to sequence %d, not the ones before %d: append again from %d on (%s)",
		e.Chain, e.Producer, e.Expect-1, e.Sequence, e.Expect, perShard)
}

func (e *SequenceError) Unwrap() error { return ErrSequence }

// EpochError: the epoch is ending, and its chains take no more rows. The same append
// may be made again on the next epoch's owner. It matches ErrBackpressure. Nothing was
// written.
type EpochError struct {
	Epoch      segment.Epoch
	State      catalog.TopologyState
	RetryAfter time.Duration
}

func (e *EpochError) Error() string {
	return fmt.Sprintf("epoch %d is %s and takes no more rows: append again in %v, on the epoch that follows it", e.Epoch, e.State, e.RetryAfter)
}

func (e *EpochError) Unwrap() error { return ErrBackpressure }

// QuarantineError says how much was set aside. It matches ErrQuarantine.
type QuarantineError struct {
	Dir   string
	Bytes int64
	Max   int64
}

func (e *QuarantineError) Error() string {
	return fmt.Sprintf("%d bytes lie in %s, the cap is %d: rows that never entered the history; append them again with `strandline salvage`, or give them up with `strandline quarantine rm`",
		e.Bytes, e.Dir, e.Max)
}

func (e *QuarantineError) Unwrap() error { return ErrQuarantine }
