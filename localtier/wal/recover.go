package wal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/strandline/strandline/segment"
)

// Replayed is one surviving frame.
type Replayed struct {
	Offset Offset         // right after the frame
	Start  *segment.Start // of its segment
	Frame  segment.Frame  // payload valid during the call only
}

// Sink takes the replay, frame by frame, SegmentStart and Seal included. An
// error ends the open, and is returned.
type Sink func(Replayed) error

// recovery is the reading half of Open: it judges, and changes nothing.
type recovery struct {
	fs       FS
	dir      string
	cfg      Config
	sink     Sink // nil: nothing is delivered, and as little as can be is read
	readOnly bool // a live writer may move what is read

	side      sidecars
	leftovers []segment.ID
	older     []standing
	newest    *standing // nil: no segment, or only a headless one
	headless  *standing // newest file without whole header and SegmentStart
	tail      segment.Tail
	end       position // of the newest segment
	delivered bool
	carried   carried
	trusted   bool // index.json was believed: the newest was not read
}

// run judges the directory and delivers what survives.
func (r *recovery) run(ctx context.Context) error {
	// In this order, for a live writer: its index.json must not be newer than what
	// is then found of its segments, and its CHECKPOINT not older than what its
	// housekeeping has unlinked by then.
	if err := r.side.readIndex(r.fs, r.dir); err != nil {
		return err
	}
	ls, err := list(r.fs, r.dir)
	if err != nil {
		return err
	}
	if err := r.side.readTruths(r.fs, r.dir); err != nil {
		return err
	}
	all, leftovers, err := survey(r.fs, r.dir, ls.segments, r.side.reclaim.Segment)
	if err != nil {
		return err
	}
	r.leftovers = leftovers
	if err := r.split(all); err != nil {
		return err
	}
	if err := checkChain(r.older, r.newest, r.side); err != nil {
		return err
	}
	if err := r.checkNewestKnown(); err != nil {
		return err
	}
	err = r.replay(ctx)
	var refused *sinkError
	if errors.As(err, &refused) {
		return fmt.Errorf("replay: %w", refused.err)
	}
	return err
}

// split tells the newest segment from the older ones. A newest file without
// header and SegmentStart is no segment: then all others were sealed before it
// was made.
func (r *recovery) split(all []standing) error {
	for i, s := range all {
		switch {
		case i < len(all)-1 && s.head != nil:
			return structural(s, s.head)
		case i < len(all)-1:
			r.older = append(r.older, s)
		case s.head == nil:
			r.newest = &s
		default:
			if err := r.judgeHeadless(s); err != nil {
				return err
			}
			r.headless = &s
		}
	}
	return nil
}

func (r *recovery) judgeHeadless(s standing) error {
	return r.withFile(s.path, func(f File) error {
		err := segment.JudgeHeadless(f, s.info.Size)
		if err == nil && r.side.index != nil && r.side.index.Segment == s.id {
			// The witness: this segment had its SegmentStart fsynced once.
			return damage(s, 0, "no whole SegmentStart, yet index.json knows segment %d to be %d bytes long", s.id, r.side.index.Bytes)
		}
		return segment.InFile(err, s.path, s.id)
	})
}

func (r *recovery) replay(ctx context.Context) error {
	for _, s := range r.older {
		if r.sink == nil {
			break
		}
		if err := r.replayOlder(ctx, s); err != nil {
			return err
		}
	}
	if r.newest == nil {
		return r.endAtOlder(ctx)
	}
	if r.sink == nil && r.trustIndex() {
		return nil
	}
	return r.replayNewest(ctx)
}

// endAtOlder ends the log at the last sealed segment: there is none, or only a
// headless one, behind it.
func (r *recovery) endAtOlder(ctx context.Context) error {
	n := len(r.older)
	if n == 0 {
		return nil
	}
	r.end = endOf(r.older[n-1])
	if r.sink != nil {
		return nil
	}
	return r.replayOlder(ctx, r.older[n-1]) // for what it carries
}

// endOf is the log's end at a sealed segment.
func endOf(s standing) position {
	return position{start: s.start, uuid: s.uuid, end: s.info.Size, frames: s.seal.Frames, next: s.seal.Next}
}

// replayOlder delivers a segment that must be whole and sealed.
func (r *recovery) replayOlder(ctx context.Context, s standing) error {
	return r.withFile(s.path, func(f File) error {
		sc, err := r.scan(ctx, f, s, 0)
		if err != nil && r.housekept(s) {
			return fmt.Errorf("segment %d was housekept while it was read, look again: %w", s.id, fs.ErrNotExist)
		}
		if err != nil {
			return structural(s, err)
		}
		if sc.Sealed() == nil {
			return damage(s, sc.Offset(), "an older segment does not end in a Seal")
		}
		return nil
	})
}

// housekept says that a live writer has taken the file's name away: then what is
// read of it may be written over already, and is no finding.
func (r *recovery) housekept(s standing) bool {
	if !r.readOnly {
		return false
	}
	return vanished(r.withFile(s.path, func(File) error { return nil }))
}

// scan delivers frames that begin at from or behind, up to the end of the file.
// The scanner is returned with every error, to say how far it came.
func (r *recovery) scan(ctx context.Context, f File, s standing, from int64) (*segment.Scanner, error) {
	sc, err := segment.NewScanner(f, s.info.Size)
	if err != nil {
		return nil, err
	}
	if sc.UUID() != s.uuid {
		// A live writer wrote the next segment over it since its ends were read.
		return sc, damage(s, 0, "the file is segment %s now, %s was expected", sc.UUID(), s.uuid)
	}
	got := Replayed{Offset: Offset{Segment: s.id, UUID: s.uuid}, Start: &s.start}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return sc, context.Cause(ctx)
		}
		err := sc.NextInto(&got.Frame)
		if errors.Is(err, io.EOF) {
			return sc, nil
		}
		if err != nil {
			return sc, err
		}
		r.carried.follow(&got.Frame, got.Start)
		if r.sink == nil || got.Frame.Offset < from {
			continue
		}
		r.delivered = true
		got.Offset.Byte = sc.Offset()
		if err := r.sink(got); err != nil {
			return sc, &sinkError{err}
		}
	}
}

// sinkError keeps a sink's error from being taken for a verdict on the bytes:
// it hides what it wraps until run hands it out.
type sinkError struct{ err error }

func (e *sinkError) Error() string { return "replay: " + e.err.Error() }

// sealedList is what Sealed() will say.
func (r *recovery) sealedList() []SealedSegment {
	var out []SealedSegment
	for _, s := range r.older {
		out = append(out, s.sealed(s.info.Size))
	}
	if r.newest != nil && !r.end.open {
		out = append(out, r.newest.sealed(r.end.end))
	}
	return out
}

// withFile opens a file for the length of fn.
func (r *recovery) withFile(path string, fn func(File) error) (err error) {
	f, err := r.fs.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return fn(f)
}

// structural makes a finding about bytes that were read whole a
// *segment.CorruptionError of this file. An error of reading stays one.
func structural(s standing, err error) error {
	var invalid *segment.InvalidFrameError
	if errors.As(err, &invalid) {
		err = invalid.Corruption(s.uuid, s.id)
	}
	return segment.InFile(err, s.path, s.id)
}

// checkpointOffset places CHECKPOINT among the segments.
func (r *recovery) checkpointOffset() (Offset, bool) {
	cp := r.side.checkpoint
	if cp == nil {
		return Offset{}, false
	}
	all := append([]standing(nil), r.older...)
	if r.newest != nil {
		all = append(all, *r.newest)
	}
	return Offset{checkpointSegment(all, cp), cp.UUID, cp.Offset}, true
}
