package wal

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/segment"
)

// ReadOnly is a directory looked at without its lock. It has no method that
// writes; it repairs nothing and truncates nothing, and may stand beside a live
// writer, of which it shows one moment.
type ReadOnly struct {
	dir      string
	fs       FS
	identity segment.Identity
	r        *recovery
	sealed   []SealedSegment
}

// OpenReadOnly judges a directory as Open does, delivers what survives, and
// changes nothing. A missing directory matches fs.ErrNotExist. Of cfg only FS
// and Logger count.
func OpenReadOnly(ctx context.Context, dir string, cfg Config, sink Sink) (*ReadOnly, error) {
	cfg = cfg.withDefaults()
	for try := 0; ; try++ {
		ro, err := openReadOnly(ctx, dir, cfg, sink)
		// A live writer may unlink what was just listed, or go on between two looks,
		// so that they do not fit together. Before the first frame was delivered
		// that is no more than a reason to look again.
		moved := vanished(err) || errors.Is(err, segment.ErrCorrupt) || cameShort(err)
		if err == nil || !moved || ro.r == nil || ro.r.delivered || try == liveRetries {
			if err != nil {
				return nil, fmt.Errorf("open log %s for reading: %w", dir, err)
			}
			return ro, nil
		}
	}
}

func openReadOnly(ctx context.Context, dir string, cfg Config, sink Sink) (*ReadOnly, error) {
	ro := &ReadOnly{dir: dir, fs: cfg.FS}
	ls, err := list(cfg.FS, dir)
	if err != nil {
		return ro, err
	}
	if ls.identity {
		if ro.identity, err = readIdentity(cfg.FS, dir); err != nil {
			return ro, err
		}
	} else if len(ls.segments) > 0 {
		return ro, ErrNoIdentity
	}
	ro.r = &recovery{fs: cfg.FS, dir: dir, cfg: cfg, sink: sink, readOnly: true}
	if err := ro.r.run(ctx); err != nil {
		return ro, err
	}
	ro.sealed = ro.r.sealedList()
	return ro, nil
}

// Identity is the directory's writer UUID; zero if it has none yet.
func (ro *ReadOnly) Identity() segment.Identity { return ro.identity }

// State says where the log stood.
func (ro *ReadOnly) State() State { return stateOf(ro.r.end, ro.r.end) }

// Sealed lists the sealed segments, in order.
func (ro *ReadOnly) Sealed() []SealedSegment { return append([]SealedSegment(nil), ro.sealed...) }

// Tail says what a repair would cut off the newest segment.
func (ro *ReadOnly) Tail() segment.Tail { return ro.r.tail }

// LastCheckpoint is what the shared tier is known to hold.
func (ro *ReadOnly) LastCheckpoint() (Offset, bool) { return ro.r.checkpointOffset() }

// OpenSegment opens a segment's valid bytes.
func (ro *ReadOnly) OpenSegment(id segment.ID) (*SegmentReader, error) {
	u, size := findSegment(ro.sealed, ro.r.end, id)
	return openSegment(ro.fs, segmentPath(ro.dir, id), id, u, size)
}
