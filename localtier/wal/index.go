package wal

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/strandline/strandline/segment"
)

// indexEvery is how often index.json is written at most. It is a cache and a
// witness: a second of age costs a restart a little reading, and damage in that
// second's frames is told by the frames after them.
const indexEvery = time.Second

// scheduleIndex has index.json written soon, off the committer's path. Under mu.
func (l *Log) scheduleIndex() {
	if l.indexTimer == nil && !l.closing {
		l.indexTimer = time.AfterFunc(indexEvery, l.indexDue)
	}
}

// stopIndex waits for a write that is under way: after it none begins.
func (l *Log) stopIndex() {
	l.mu.Lock()
	if l.indexTimer != nil {
		l.indexTimer.Stop()
		l.indexTimer = nil
	}
	l.mu.Unlock()
	l.index.Lock()
	defer l.index.Unlock()
}

// indexDue is the timer's. One that fired right before stopIndex stopped it comes by here
// after the directory was given back: it may be another log's by then.
func (l *Log) indexDue() {
	l.index.Lock()
	defer l.index.Unlock()
	l.mu.Lock()
	closing := l.closing // which writes the last one itself
	l.mu.Unlock()
	if !closing {
		l.writeIndexHeld()
	}
}

// writeIndex writes what is durable now to index.json. It comes after the fsync
// of those bytes and has none of its own; a poisoned log leaves it alone. A failure costs the next open a scan,
// so it is counted and logged and fails nobody.
func (l *Log) writeIndex() {
	l.index.Lock()
	defer l.index.Unlock()
	l.writeIndexHeld()
}

// writeIndexHeld holds index.
func (l *Log) writeIndexHeld() {
	l.mu.Lock()
	l.indexTimer = nil
	final := l.poison != nil
	x := segment.Index{
		NextSeq: l.durable.next, Segment: l.durable.start.ID, UUID: l.durable.uuid,
		Term: l.durable.start.Term, Bytes: l.durable.end, Frames: l.durable.frames,
		Sealed: !l.durable.open, Digest: l.prefix.String(),
	}
	x.Consumers, x.Producers = l.carried.lists()
	l.mu.Unlock()
	if final || x.Segment == 0 {
		return
	}
	if err := l.replaceIndex(&x); err != nil {
		l.metrics.indexFailures.Add(1)
		l.cfg.Logger.Warn("index.json not written; the next open reads the newest segment instead", "err", err, "dir", l.dir)
		return
	}
	l.metrics.indexWrites.Add(1)
}

func (l *Log) replaceIndex(x *segment.Index) error {
	b, err := segment.EncodeIndex(x)
	if err != nil {
		return err
	}
	path := filepath.Join(l.dir, segment.IndexFile)
	if err := writeAside(l.fs, path, b, false); err != nil {
		return err
	}
	if err := l.fs.Rename(path+tmpSuffix, path); err != nil {
		return errors.Join(err, dropAside(l.fs, path, nil))
	}
	return nil
}
