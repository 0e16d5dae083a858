package wal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/strandline/strandline/segment"
)

// Open opens the log of a directory, making the directory if it is missing, and
// takes its lock. It recovers, delivers every surviving frame to sink in order,
// and returns with all that it delivered durable. With a nil sink, and an
// index.json that matches the newest segment exactly, it reads no segment
// through.
//
// ErrLocked: another process has it. ErrNoIdentity: somebody else's segments.
// *segment.CorruptionError: nothing was changed, and nothing is appended until a
// person decides. ErrFull: recovery needs room for a copy of one segment.
func Open(ctx context.Context, dir string, cfg Config, sink Sink) (*Log, error) {
	if err := checkOpen(cfg); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if err := cfg.FS.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("make shard directory: %w", classify(err))
	}
	lock, err := cfg.FS.Lock(filepath.Join(dir, segment.LockFile))
	if err != nil {
		return nil, err
	}
	l, err := openLocked(ctx, dir, cfg, sink)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open log %s: %w", dir, err), lock.Close())
	}
	l.lock = lock
	l.start()
	return l, nil
}

func checkOpen(cfg Config) error {
	err := cfg.Validate()
	if cfg.NextStart == nil {
		err = errors.Join(err, errors.New("wal.Config.NextStart is missing: a segment that begins without the consumers would forget them"))
	}
	return err
}

func openLocked(ctx context.Context, dir string, cfg Config, sink Sink) (*Log, error) {
	begin := cfg.Now()
	ls, err := list(cfg.FS, dir)
	if err != nil {
		return nil, err
	}
	identity, err := ensureIdentity(&cfg, dir, ls)
	if err != nil {
		return nil, err
	}
	r := &recovery{fs: cfg.FS, dir: dir, cfg: cfg, sink: sink}
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	l := &Log{
		dir: dir, cfg: cfg, fs: cfg.FS, identity: identity,
		stopped: make(chan struct{}), hurry: make(chan struct{}, 1),
		head: r.end, durable: r.end, sealed: r.sealedList(), carried: r.carried,
		reclaimed: r.side.reclaim, adopting: map[segment.ID]struct{}{}, readers: map[segment.ID]int{},
	}
	l.work = sync.NewCond(&l.mu)
	l.checkpoint, l.hasCheck = r.checkpointOffset()
	l.vouchedBy(r)
	// Everything was judged; from here on the directory is changed.
	if err := l.repair(r, ls); err != nil {
		return nil, err
	}
	l.metrics.recoveryNanos.Store(int64(cfg.Now().Sub(begin)))
	return l, nil
}

// vouchedBy takes over what index.json says of bytes that were not read.
func (l *Log) vouchedBy(r *recovery) {
	x := r.side.index
	if x != nil && x.UUID == r.end.uuid && x.Bytes == r.end.end {
		l.vouched = x.Digest
		sum, err := strconv.ParseUint(x.Digest, 16, 64)
		l.prefix = prefixDigest{sum, err == nil} // it is "" if it was not known
	}
}

// repair brings the directory to the state that recovery found it to mean. Every
// step may be cut: the next open finds the same, or the step done.
func (l *Log) repair(r *recovery, ls listing) error {
	if err := l.removeUnfinished(ls); err != nil {
		return err
	}
	if err := l.removeLeftovers(r.leftovers); err != nil {
		return err
	}
	if err := l.loadSpares(ls.spares); err != nil {
		return err
	}
	if r.headless != nil {
		if err := l.moveHeadlessAside(r, *r.headless); err != nil {
			return err
		}
	}
	if r.tail.Torn {
		if err := l.cutTail(r.tail); err != nil {
			return err
		}
	}
	if r.newest == nil || r.durableAlready() || (r.trusted && r.end.open) {
		return nil
	}
	if err := l.adoptNewest(r.end); err != nil {
		return err
	}
	return l.closeIfSealed()
}

func (l *Log) removeUnfinished(ls listing) error {
	for _, name := range ls.tmp {
		if err := l.fs.Remove(filepath.Join(l.dir, name)); err != nil && !vanished(err) {
			return fmt.Errorf("remove an unfinished file: %w", err)
		}
	}
	return nil
}

// removeLeftovers unlinks what reclaim.json has given up already.
func (l *Log) removeLeftovers(ids []segment.ID) error {
	for _, id := range ids {
		if err := l.fs.Remove(segmentPath(l.dir, id)); err != nil && !vanished(err) {
			return fmt.Errorf("unlink a reclaimed segment: %w", err)
		}
	}
	if len(ids) > 0 {
		l.cfg.Logger.Info("unlinked reclaimed segments", "segments", len(ids), "dir", l.dir)
	}
	return nil
}

// moveHeadlessAside takes a newest file that never became a segment out of the
// way. Its bytes are kept first; a crash in between keeps them twice.
func (l *Log) moveHeadlessAside(r *recovery, s standing) error {
	var b []byte
	err := r.withFile(s.path, func(f File) error {
		b = make([]byte, min(s.info.Size, segment.TornKeepMax))
		if n, err := f.ReadAt(b, 0); n < len(b) {
			return fmt.Errorf("read %s: %w", s.path, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(trimZeros(b)) > 0 {
		if err := keepTorn(l.fs, l.dir, s.id, trimZeros(b)); err != nil {
			return err
		}
	}
	if err := l.fs.Remove(s.path); err != nil {
		return fmt.Errorf("take a headless segment away: %w", err)
	}
	l.cfg.Logger.Warn("newest segment file had no beginning and was moved aside",
		"segment", s.id, "bytes", s.info.Size, "reason", s.head, "dir", l.dir)
	return l.fs.SyncDir(l.dir)
}

// cutTail keeps the torn tail aside; adoption leaves it out of the new file.
func (l *Log) cutTail(t segment.Tail) error {
	if len(t.Kept) == 0 {
		l.cfg.Logger.Info("log was not closed: its file goes on behind the last frame, with nothing of it",
			"segment", l.durable.start.ID, "offset", t.End, "bytes", t.Cut, "dir", l.dir)
		return nil
	}
	l.cfg.Logger.Warn("torn tail cut: an interrupted write that was never acknowledged",
		"segment", l.durable.start.ID, "offset", t.End, "bytes", t.Cut, "kept", len(t.Kept), "dir", l.dir)
	return keepTorn(l.fs, l.dir, l.durable.start.ID, t.Kept)
}

// closeIfSealed: a sealed segment needed only to become durable.
func (l *Log) closeIfSealed() error {
	if l.durable.open {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// start begins the log's own work. The age of a segment that was open before does
// not run yet: it goes on with the next append, so that nothing is sealed under a
// caller who still looks at what the log holds.
func (l *Log) start() {
	if l.durable.start.ID != 0 {
		l.writeIndex()
	}
	go l.commitLoop()
}

// Close flushes what is queued, writes index.json, and gives the directory back.
// It does not seal. The first failure of a poisoned log is returned: not all
// that was appended is durable.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		<-l.stopped
		return ErrClosed
	}
	l.closing = true
	l.stopAge()
	l.hurryUp()
	l.work.Broadcast()
	l.mu.Unlock()
	<-l.stopped

	// Who is at a sidecar or at the end of an Adopt ends it before the directory is
	// given back; who comes later finds the log closed.
	l.side.Lock()
	defer l.side.Unlock()
	l.stopIndex()
	l.writeIndex()
	err := l.Err()
	if l.file != nil {
		if err == nil { // nobody knows what the file of a poisoned log holds
			err = l.trim()
		}
		err = errors.Join(err, l.file.Close())
		l.file = nil
	}
	return errors.Join(err, l.lock.Close())
}

// trim ends the open file where the log ends, so that the next open finds what
// index.json says exactly and need not look behind it. That is not made durable:
// what it leaves after a power cut is what a log that was not closed leaves.
func (l *Log) trim() error {
	if l.filled <= l.durable.end {
		return nil
	}
	return l.file.Truncate(l.durable.end)
}

func trimZeros(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return b
}
