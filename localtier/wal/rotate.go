package wal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/strandline/strandline/segment"
)

// Rotation (03 §1): write Seal; truncate there; fdatasync; create the next file;
// header and SegmentStart; fdatasync; fsync the directory; only then frames.
// The appenders' half queues it, the committer's half does it.

// sealFrameBytes is what a Seal takes: kept free in every segment.
const sealFrameBytes = segment.FrameHeaderBytes + 24

// queueSeal seals head's segment behind what is queued.
func (l *Log) queueSeal() *run {
	r := l.tail()
	r.seal = true
	l.head.open = false
	l.head.end += sealFrameBytes
	l.stopAge()
	l.hurryUp()
	return r
}

// queueNext opens the segment after head's, as an append that needs it.
func (l *Log) queueNext() error {
	start := segment.Start{
		Chain:   l.head.start.Chain,
		ID:      l.head.start.ID + 1,
		Base:    l.head.next,
		Term:    l.head.start.Term,
		Prev:    l.head.uuid,
		Created: l.cfg.Now().UnixNano(),
	}
	if err := l.cfg.NextStart(&start); err != nil {
		return fmt.Errorf("start of segment %d: %w", start.ID, err)
	}
	_, err := l.queueOpening(start)
	return err
}

// queueOpening encodes the beginning of a segment and queues its making.
func (l *Log) queueOpening(start segment.Start) (*run, error) {
	if err := l.follows(start); err != nil {
		return nil, err
	}
	id, err := l.cfg.newUUID(l.dir)
	if err != nil {
		return nil, fmt.Errorf("segment UUID: %w", err)
	}
	b := segment.AppendHeader(nil, id)
	b, mark := segment.BeginFrame(b)
	if b, err = segment.AppendStart(b, &start); err != nil {
		return nil, err
	}
	if b, err = segment.EndFrame(b, mark, id, int64(mark), segment.KindStart, 0); err != nil {
		return nil, err
	}
	l.head = position{start: start, uuid: id, open: true, end: int64(len(b)), frames: 1, next: start.Base}
	return l.push(&run{opening: &opening{start, id, b}, uuid: id, off: int64(len(b))}), nil
}

// follows checks a SegmentStart against the sealed head.
func (l *Log) follows(s segment.Start) error {
	h := l.head
	if h.start.ID == 0 {
		return nil
	}
	if s.Chain != h.start.Chain || s.ID != h.start.ID+1 || s.Base != h.next || s.Prev != h.uuid || s.Term < h.start.Term {
		return fmt.Errorf("%w: segment %d of chain %s (base %d, term %d, after %s) cannot follow segment %d of %s (next %d, term %d, %s)",
			ErrOrder, s.ID, s.Chain, s.Base, s.Term, s.Prev, h.start.ID, h.start.Chain, h.next, h.start.Term, h.uuid)
	}
	return nil
}

// StartSegment begins a segment with what the caller says of it: the first of a
// fresh log, or the first of a new term. The open segment is sealed before, even
// one that is empty. On a log without segments an id above 1 says that the
// shared tier holds everything before it: CHECKPOINT is written for Prev. A zero
// Created is now. When it returns nil, all of it is durable.
func (l *Log) StartSegment(ctx context.Context, s segment.Start) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := l.beginsAt(s); err != nil {
		return err
	}
	r, err := l.queueStart(s)
	if err != nil {
		return err
	}
	_, err = Ticket{run: r}.Wait(ctx)
	return err
}

func (l *Log) queueStart(s segment.Start) (*run, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return nil, err
	}
	if l.stall != nil {
		return nil, l.stall
	}
	if err := l.follows(s); err != nil {
		return nil, err
	}
	if s.Created == 0 {
		s.Created = l.cfg.Now().UnixNano()
	}
	if l.head.open {
		l.queueSeal()
	}
	r, err := l.queueOpening(s)
	if err == nil {
		l.hurryUp()
	}
	return r, err
}

// Seal flushes, and seals the open segment if frames stand after its
// SegmentStart. It says whether it sealed. The next append opens a new one.
func (l *Log) Seal(ctx context.Context) (bool, error) { return l.sealNow(ctx, 2) }

// SealEmpty seals the open segment whatever it holds: a fence is a SegmentStart
// and a Seal.
func (l *Log) SealEmpty(ctx context.Context) (bool, error) { return l.sealNow(ctx, 1) }

func (l *Log) sealNow(ctx context.Context, least uint32) (bool, error) {
	l.mu.Lock()
	if err := l.usable(); err != nil {
		l.mu.Unlock()
		return false, err
	}
	if !l.head.open || l.head.frames < least {
		l.mu.Unlock()
		return false, l.Sync(ctx)
	}
	r := l.queueSeal()
	l.mu.Unlock()
	_, err := Ticket{run: r}.Wait(ctx)
	return err == nil, err
}

// armAge starts the age of head's segment: from its first frame after
// SegmentStart, acks included.
func (l *Log) armAge(after time.Duration) {
	id := l.head.start.ID
	l.stopAge()
	l.age = time.AfterFunc(after, func() { l.ageExpired(id) })
}

func (l *Log) stopAge() {
	if l.age != nil {
		l.age.Stop()
		l.age = nil
	}
}

// ageExpired seals segment id if it is still the open one.
func (l *Log) ageExpired(id segment.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.usable() == nil && l.head.open && l.head.start.ID == id && l.head.frames > 1 {
		l.queueSeal()
	}
}

// The committer's half.

// sealFrame is a Seal, and the frame that holds it.
type sealFrame struct {
	segment.Seal
	frame []byte
}

// encodeSeal encodes the Seal behind the run's frames.
func (l *Log) encodeSeal(r *run, digest uint64) (s sealFrame, err error) {
	s.Seal = segment.Seal{
		Frames: l.durable.frames + uint32(len(r.marks)),
		Next:   l.durable.next + r.rows,
		Digest: digest,
	}
	at := r.off + int64(len(r.buf))
	s.frame, err = segment.AppendFrame(nil, r.uuid, at, segment.KindSeal, uint32(l.durable.end), segment.AppendSeal(nil, s.Seal))
	return s, err
}

// writeSeal is the segment's last frame.
func (l *Log) writeSeal(s sealFrame, at int64) error {
	_, err := l.file.WriteAt(s.frame, at)
	return err
}

// truncateAtSeal cuts what a longer file has behind the Seal: a sealed segment
// ends with it.
func (l *Log) truncateAtSeal(size int64) error { return l.file.Truncate(size) }

// openSegment makes the segment's file, of a spare one if there is one (openSpare
// has the steps of that). Until its directory entry is durable no
// frame goes into it: a crash anywhere here leaves a headless or an empty newest
// file, from which nothing was acknowledged.
func (l *Log) openSegment(o *opening) error {
	path := segmentPath(l.dir, o.start.ID)
	if s, ok := l.takeSpare(); ok {
		if used, err := l.openSpare(o, s, path); used {
			return err
		}
	}
	f, err := l.createNext(path)
	if err != nil {
		return &failure{op: "create segment", path: path, err: err}
	}
	if err := writeStart(f, o.bytes); err != nil {
		return l.dropNext(f, path, err)
	}
	if err := l.syncStart(f); err != nil {
		return &failure{op: "fdatasync", path: path, err: errors.Join(err, f.Close()), final: true}
	}
	if err := l.syncDirectory(); err != nil {
		return &failure{op: "fsync directory", path: l.dir, err: errors.Join(err, f.Close()), final: true}
	}
	l.adoptNext(f, o)
	l.filled = 0
	return nil
}

func (l *Log) createNext(path string) (File, error) { return l.fs.Create(path) }

func writeStart(f File, b []byte) error {
	_, err := f.WriteAt(b, 0)
	return err
}

func (l *Log) syncStart(f File) error { return l.timedSync(f) }

func (l *Log) syncDirectory() error { return l.fs.SyncDir(filepath.Clean(l.dir)) }

// dropNext takes back a segment whose beginning could not be written. If that
// fails too, a file stands there that the log does not know: final.
func (l *Log) dropNext(f File, path string, err error) error {
	cerr := f.Close()
	rerr := l.fs.Remove(path)
	return &failure{op: "write", path: path, err: errors.Join(err, cerr, rerr), final: rerr != nil}
}

// adoptNext makes the new segment the one that frames go into.
func (l *Log) adoptNext(f File, o *opening) {
	l.file = f
	l.digest.Reset()
	hash(&l.digest, o.bytes)
	l.mu.Lock()
	l.durable = position{start: o.start, uuid: o.uuid, open: true, end: int64(len(o.bytes)), frames: 1, next: o.start.Base}
	l.prefix = prefixDigest{l.digest.Sum64(), true}
	l.carried = carriedBy(o.start)
	l.mu.Unlock()
	l.metrics.segments.Add(1)
}
