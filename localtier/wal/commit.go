package wal

import (
	"context"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/strandline/strandline/segment"
)

const (
	// spareBuffers is a double buffer: one fills while the other is written.
	spareBuffers = 2
	// spareBytes caps a buffer that is kept, and spareSmall one that is kept for ever: a
	// larger one goes once spareIdle groups in a row had no use for a quarter of it, so
	// that a burst's memory is given back and a steady load of large rows does not grow
	// its buffers anew for each group.
	spareBytes = 32 << 20
	spareSmall = 4 << 20
	spareIdle  = 64
	// hashAside is from how many bytes on a group is digested beside its write and
	// fdatasync, not before them.
	hashAside = 256 << 10
)

// commitLoop is the log's one writer: it takes all that is queued, writes and
// fsyncs it run by run, and wakes the callers in order. What arrives meanwhile
// is the next group.
func (l *Log) commitLoop() {
	defer close(l.stopped)
	for {
		runs, ok := l.take()
		if !ok {
			return
		}
		l.siblings.group(runs)
		for i, r := range runs {
			if err := l.commit(r); err != nil {
				l.fail(runs[i:], err)
				break
			}
		}
	}
}

// take waits for work, and on purpose for more of it within the batch window.
// It says false once the log closes and nothing is left to write.
func (l *Log) take() ([]*run, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gather()
	for len(l.queue) == 0 && !l.closing {
		l.work.Wait()
	}
	if len(l.queue) == 0 {
		return nil, false
	}
	if l.cfg.BatchWindow > 0 && !l.urgent && l.unflushed < l.cfg.SegmentBytes {
		l.mu.Unlock()
		l.linger()
		l.mu.Lock()
	}
	l.calm()
	runs := l.queue
	l.queue = nil
	l.queued.Store(0)
	l.inflight = runs[len(runs)-1]
	return runs, true
}

// linger waits for the batch window, or until somebody needs the disk now.
func (l *Log) linger() {
	t := time.NewTimer(l.cfg.BatchWindow)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.hurry:
	}
}

// hurryUp cuts a batch window short: a flush, a Seal or a close waits for it.
// Under mu.
func (l *Log) hurryUp() {
	l.urgent = true
	select {
	case l.hurry <- struct{}{}:
	default:
	}
}

// calm ends the hurry: all that was queued is being written. Under mu.
func (l *Log) calm() {
	l.urgent = false
	select {
	case <-l.hurry:
	default:
	}
}

// commit makes one run durable, or says why not. Nothing is acknowledged before
// the fdatasync that covers it has returned nil.
func (l *Log) commit(r *run) error {
	if r.opening != nil {
		if err := l.openSegment(r.opening); err != nil {
			return err
		}
	}
	if len(r.marks) == 0 && !r.seal {
		l.done(r)
		return nil
	}
	if err := l.ensureAdopted(); err != nil {
		return err
	}
	l.placeFrames(r)
	l.next = l.digest
	aside := l.digestRun(r)
	end, seal, err := l.writeRun(r)
	if err == nil {
		// A crash before this line loses the run, which nobody was told of.
		err = l.syncRun()
	}
	if aside != nil {
		<-aside
	}
	if err != nil {
		return err
	}
	// A crash after it loses only the acknowledgement: the callers ask again.
	l.digest = l.next
	if r.seal {
		hash(&l.digest, seal.frame)
	}
	l.advance(r, end)
	if !r.seal {
		l.done(r)
		return nil
	}
	return l.finishSegment(r, seal.Seal)
}

// digestRun takes the run into next: at once, if it is small or its Seal has to tell the
// digest; else on another core, and next is whole once aside is closed.
func (l *Log) digestRun(r *run) (aside <-chan struct{}) {
	if r.seal || len(r.buf) < hashAside {
		hash(&l.next, r.buf)
		return nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		hash(&l.next, r.buf)
	}()
	return done
}

// syncRun makes what was written durable.
func (l *Log) syncRun() error {
	begin := time.Now()
	if err := l.timedSync(l.file); err != nil {
		return &failure{op: "fdatasync", path: segmentPath(l.dir, l.durable.start.ID), err: err, final: true}
	}
	l.siblings.lastSync = time.Since(begin)
	return nil
}

// advance moves the durable end over the run.
func (l *Log) advance(r *run, end int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.durable.end = end
	l.durable.frames += uint32(len(r.marks))
	l.durable.next += r.rows
	l.durable.open = !r.seal
	l.prefix = prefixDigest{l.digest.Sum64(), true}
	l.unflushed -= int64(len(r.buf))
	for _, c := range r.consumers {
		segment.ApplyConsumer(l.carried.consumers, c.kind, c.Consumer)
	}
	for _, p := range r.producers {
		segment.ApplyProducer(l.carried.producers, p)
	}
	l.scheduleIndex()
}

// done wakes the run's callers, in the order in which they wait, and takes its
// buffer back.
func (l *Log) done(r *run) {
	l.mu.Lock()
	l.recycle(r)
	l.mu.Unlock()
	close(r.done)
}

// recycle keeps the buffer for a later run. Under mu.
func (l *Log) recycle(r *run) {
	if c := cap(r.buf); c > 0 && c <= spareBytes && len(l.spare) < spareBuffers && l.wanted(r.buf) {
		l.spare = append(l.spare, r.buf[:0])
	}
	if cap(r.marks) > 0 && len(l.spareMarks) < spareBuffers {
		l.spareMarks = append(l.spareMarks, r.marks[:0])
	}
	r.buf, r.marks, r.consumers, r.producers, r.opening = nil, nil, nil, nil, nil
	if l.inflight == r {
		l.inflight = nil
	}
}

// wanted says whether a buffer is worth its memory. Under mu.
func (l *Log) wanted(buf []byte) bool {
	switch {
	case cap(buf) <= spareSmall:
		return true
	case len(buf) >= cap(buf)/4:
		l.idleGroups = 0
		return true
	}
	l.idleGroups++
	return l.idleGroups < spareIdle
}

// finishSegment closes the sealed file, tells who waits, and leaves index.json
// as the witness that the Seal is durable.
func (l *Log) finishSegment(r *run, seal segment.Seal) error {
	cerr := l.file.Close()
	l.file = nil
	l.mu.Lock()
	d := l.durable
	s := SealedSegment{
		ID: d.start.ID, UUID: d.uuid, Prev: d.start.Prev, Chain: d.start.Chain,
		Base: d.start.Base, Next: d.next, Term: d.start.Term,
		Frames: seal.Frames, Bytes: d.end, Digest: seal.Digest,
		SealedAt: l.cfg.Now(), Path: segmentPath(l.dir, d.start.ID),
	}
	l.sealed = append(l.sealed, s)
	l.mu.Unlock()
	l.metrics.seals.Add(1)
	// Before the waiters: who goes on from a seal finds that OnSealed knew of it.
	if l.cfg.OnSealed != nil {
		l.cfg.OnSealed(s)
	}
	l.done(r)
	l.writeIndex()
	if cerr != nil {
		// The bytes are fsynced, the descriptor is gone either way.
		l.cfg.Logger.Warn("close of a sealed segment failed", "path", s.Path, "err", cerr)
	}
	return nil
}

// timedSync is fdatasync, counted and timed.
func (l *Log) timedSync(f File) error {
	begin := time.Now() // a duration of the disk, not a time of the log
	err := f.Sync()
	l.metrics.synced(time.Since(begin))
	return err
}

// Sync returns once every append so far is durable, or says why one is not.
func (l *Log) Sync(ctx context.Context) error {
	l.mu.Lock()
	last := l.inflight
	if n := len(l.queue); n > 0 {
		last = l.queue[n-1]
	}
	err := l.usable()
	if err == nil && l.stall != nil {
		err = l.stall
	}
	if err == nil && last != nil {
		l.hurryUp()
	}
	l.mu.Unlock()
	if err != nil || last == nil {
		return err
	}
	_, err = Ticket{run: last}.Wait(ctx)
	return err
}

// hash feeds a digest, whose Write is documented to return no error.
func hash(d *xxhash.Digest, b []byte) { _, _ = d.Write(b) }
