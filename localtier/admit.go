package localtier

import (
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

const (
	// retryFlush is about the time of a few group commits.
	retryFlush = 50 * time.Millisecond
	// retryPublish is about the time in which a bucket takes a slot.
	retryPublish = 2 * time.Second
	// retryDisk: somebody has to free space.
	retryDisk = 10 * time.Second
	// stallPause is how long appends stay away from a disk that refused a write.
	stallPause = time.Second
)

// refusal says why the shard takes no rows at all, or nil.
func (s *shardLog) refusal() error {
	if err := s.progress.refusal(); err != nil {
		return err
	}
	if err := s.wal.Err(); err != nil {
		return s.poisoned(err)
	}
	return s.leaseRefusal()
}

// refusal says why the shard's service is over, or nil.
func (p *progress) refusal() error {
	if !p.over.Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.epoch != nil && (p.stopped == nil || errors.Is(p.stopped, ErrClosed)):
		return p.epoch
	case p.stopped != nil:
		return p.stopped
	case p.closing:
		return ErrClosed
	}
	return nil
}

func (s *shardLog) poisoned(err error) error {
	return &ShardError{
		Chain: s.chain, Dir: s.dir, Doing: "append", Err: err,
		Next: "nothing is acknowledged until the writer is started again: look at the disk first",
	}
}

// leaseRefusal: a local acknowledgement is a promise about this disk only, and by
// the lease's end another disk may be the chain's.
func (s *shardLog) leaseRefusal() error { return s.leaseRefusalAt(s.now()) }

func (s *shardLog) leaseRefusalAt(now time.Time) error {
	if s.cfg.AckAfterLease || s.lease.goodAt(now) {
		return nil
	}
	return &ShardError{
		Chain: s.chain, Dir: s.dir, Doing: "acknowledge", Kind: ErrLeaseLost,
		Next: fmt.Sprintf("it ended at %s; appends go on once the catalog answers a renewal", s.lease.end().Format(time.RFC3339)),
	}
}

// admit checks an append before anything is written, and cuts its rows into frames,
// which it appends to `to`.
func (s *shardLog) admit(to [][]segment.Row, stream string, rows []segment.Row) ([][]segment.Row, int64, error) {
	if err := s.progress.refusal(); err != nil {
		return nil, 0, err
	}
	frames, size, err := s.admitRows(to, stream, rows)
	if err != nil {
		// A poisoned log comes before any other reason. If there is none, it says so
		// itself when it is given the frames.
		if poison := s.wal.Err(); poison != nil {
			err = s.poisoned(poison)
		}
		return nil, 0, err
	}
	return frames, size, nil
}

func (s *shardLog) admitRows(to [][]segment.Row, stream string, rows []segment.Row) ([][]segment.Row, int64, error) {
	now := s.now()
	if err := s.leaseRefusalAt(now); err != nil {
		return nil, 0, err
	}
	if len(rows) == 0 {
		return nil, 0, fmt.Errorf("%w: an append without rows", ErrInvalid)
	}
	for i := range rows {
		if rows[i].Time == 0 {
			rows[i].Time = now.UnixNano()
		}
	}
	frames, size, err := cutFrames(to, stream, rows)
	if err != nil {
		return nil, 0, err
	}
	if limit := 2 * s.segmentBytes(); size > limit {
		return nil, 0, fmt.Errorf("%w: one append of %d bytes, at most %d: append fewer rows at once", ErrTooLarge, size, limit)
	}
	return frames, size, s.pressure(now, size)
}

// openMost bounds what unpublished counts beside the sealed segments, in segments: the
// log queues two at most, and the open one is no longer than two (a frame of the largest
// size may follow a SegmentStart of the largest size, and both fit two of the least
// segments).
const openMost = 4

// pressure holds an append against the caps.
func (s *shardLog) pressure(now time.Time, size int64) error {
	full := func(retry time.Duration, format string, args ...any) error {
		return &BackpressureError{Chain: s.chain, Reason: fmt.Sprintf(format, args...), RetryAfter: retry}
	}
	// Far below the cap the log is not asked.
	if s.progress.sealedBytes.Load()+openMost*s.segmentBytes() > s.cfg.MaxUnpublished-size {
		if _, bytes := s.unpublished(); bytes+size > s.cfg.MaxUnpublished {
			return full(retryPublish, "%d bytes wait to be published, the cap is %d", bytes, s.cfg.MaxUnpublished)
		}
	}
	free, err := s.disk.leftAt(now)
	if err != nil {
		return fmt.Errorf("ask for free disk space: %w", err)
	}
	if free < s.cfg.MinFreeDisk {
		return &BackpressureError{
			Chain: s.chain, Full: true, RetryAfter: retryDisk,
			Reason: fmt.Sprintf("%d bytes are free on the disk of %s, and --min-free-disk keeps %d", free, s.dir, s.cfg.MinFreeDisk),
		}
	}
	return nil
}

func (s *shardLog) segmentBytes() int64 {
	if s.cfg.WAL.SegmentBytes != 0 {
		return s.cfg.WAL.SegmentBytes
	}
	return wal.DefaultSegmentBytes
}

// refusedByLog turns what the log says of a full queue or disk into backpressure.
func (s *shardLog) refusedByLog(err error) error {
	switch {
	case errors.Is(err, wal.ErrBackpressure):
		return &BackpressureError{Chain: s.chain, Reason: err.Error(), RetryAfter: retryFlush}
	case errors.Is(err, wal.ErrPoisoned):
		return s.poisoned(err)
	case errors.Is(err, wal.ErrFull):
		return &BackpressureError{Chain: s.chain, Reason: fmt.Sprintf("%s: %v", s.dir, err), RetryAfter: retryDisk, Full: true}
	case errors.Is(err, wal.ErrClosed):
		return ErrClosed
	}
	return err
}

// rowBytes bounds what a row takes in a frame: three varints and its bytes.
func rowBytes(r *segment.Row) int { return 3*10 + len(r.Txn) + len(r.Payload) }

// headBytes bounds what a batch takes before its rows.
const headBytes = 1 + segment.MaxStreamName + 3*10

// cutFrames splits rows into runs that each fit a frame, and appends them to frames; a
// row never spans two. size bounds what they take in the log.
func cutFrames(frames [][]segment.Row, stream string, rows []segment.Row) (_ [][]segment.Row, size int64, err error) {
	begin, used := 0, headBytes
	for i := range rows {
		n := rowBytes(&rows[i])
		if headBytes+n > segment.MaxFrameBytes {
			return nil, 0, fmt.Errorf("%w: row %d of the append to %q has %d bytes, at most %d", ErrTooLarge, i, stream,
				len(rows[i].Payload)+len(rows[i].Txn), segment.MaxFrameBytes-headBytes-3*10)
		}
		if used+n > segment.MaxFrameBytes {
			frames = append(frames, rows[begin:i])
			size += int64(used + segment.FrameHeaderBytes)
			begin, used = i, headBytes
		}
		used += n
	}
	return append(frames, rows[begin:]), size + int64(used+segment.FrameHeaderBytes), nil
}
