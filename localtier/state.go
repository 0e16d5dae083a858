package localtier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// progress is what a shard knows of its chain. Appends, publisher, lease and
// status share it. Whoever waits takes `changed` under mu. The log is never called
// with mu held: its committer takes mu in sealedNow.
type progress struct {
	mu          sync.Mutex
	row         catalog.ChainRow    // as last read or returned by a verb
	sealed      []wal.SealedSegment // not absorbed yet, in order
	sealedBytes atomic.Int64        // in them; changed under mu
	absorbed    segment.ID          // last local segment that is absorbed
	stopped     error               // *FencedError, *ShardError or ErrClosed: sticky
	closing     bool
	epoch       *EpochError   // the epoch is over: no more rows
	over        atomic.Bool   // stopped, closing or epoch is set; changed under mu with them
	changed     chan struct{} // closed and replaced on every change

	lastErr      error
	lastErrAt    time.Time
	lastDoing    string // what failed with it
	lastAbsorbed time.Time
}

// broadcast wakes all who wait; mu is held. Appends look at over alone: they hear of a
// stop no later than by taking mu.
func (p *progress) broadcast() {
	p.over.Store(p.stopped != nil || p.closing || p.epoch != nil)
	close(p.changed)
	p.changed = make(chan struct{})
}

// sealedNow takes in a segment whose Seal is durable. It is the log's OnSealed, called
// before the log wakes anybody: who goes on from a seal finds it in sealed.
func (s *shardLog) sealedNow(seg wal.SealedSegment) {
	p := &s.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addSealed(seg)
	p.broadcast()
}

// addSealed appends a segment unless it is known or absorbed; mu is held.
func (p *progress) addSealed(seg wal.SealedSegment) {
	if n := len(p.sealed); seg.ID <= p.absorbed || (n > 0 && seg.ID <= p.sealed[n-1].ID) {
		return
	}
	p.sealed = append(p.sealed, seg)
	p.sealedBytes.Add(seg.Bytes)
}

// begin sets what stands when the chain is taken: everything up to `absorbed` is in
// the shared tier, the rest of local is not.
func (s *shardLog) begin(row catalog.ChainRow, absorbed segment.ID, local []wal.SealedSegment) {
	p := &s.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	early := p.sealed // sealed by age since the log was opened; maybe not in local
	p.row, p.absorbed, p.sealed = row, absorbed, nil
	p.sealedBytes.Store(0)
	for _, seg := range local {
		p.addSealed(seg)
	}
	for _, seg := range early {
		p.addSealed(seg)
	}
}

// stop ends the shard's service for good: the first reason stays.
func (s *shardLog) stop(err error) {
	p := &s.progress
	p.mu.Lock()
	first := p.stopped == nil
	if first {
		p.stopped = err
		p.broadcast()
	}
	p.mu.Unlock()
	if first {
		s.log.Error("shard stopped", "chain", s.chain.String(), "term", s.term, "error", err)
	}
}

// stopAndTell stops the service and records why where everybody looks.
func (s *shardLog) stopAndTell(ctx context.Context, err error) {
	s.stop(err)
	s.auditStop(ctx, err)
}

// retire ends the service after a close.
func (s *shardLog) retire() {
	p := &s.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped == nil {
		p.stopped = ErrClosed
	}
	p.broadcast()
}

// stoppedBy is the sticky reason, or nil.
func (s *shardLog) stoppedBy() error {
	if !s.progress.over.Load() {
		return nil
	}
	s.progress.mu.Lock()
	defer s.progress.mu.Unlock()
	return s.progress.stopped
}

// note remembers a failure that will be tried again.
func (s *shardLog) note(doing string, err error) {
	err = fmt.Errorf("%s: %w", doing, err)
	p := &s.progress
	p.mu.Lock()
	p.lastErr, p.lastErrAt, p.lastDoing = err, s.now(), doing
	p.broadcast()
	p.mu.Unlock()
	s.log.Warn("shard will try again", "chain", s.chain.String(), "error", err)
}

// mended takes the last failure back if it was of this.
func (s *shardLog) mended(doing string) {
	p := &s.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lastErr != nil && p.lastDoing == doing {
		p.lastErr = nil
	}
}

// fenced makes the error of a lost chain, with what stays here.
func (s *shardLog) fenced(reason string) *FencedError {
	n, bytes := s.unpublished()
	return &FencedError{Chain: s.chain, Term: s.term, Reason: reason, Dir: s.dir, Left: n, Bytes: bytes}
}

// halted makes the error of a shard that a person has to look at.
func (s *shardLog) halted(doing string, err error) *ShardError {
	return &ShardError{
		Chain: s.chain, Dir: s.dir, Doing: doing, Kind: ErrHalted, Err: err,
		Next: "no rows are taken and nothing local was changed: find the cause, then start the writer again",
	}
}

// chainMoved takes in a chain row that the catalog returned. Rows come from several
// goroutines and may arrive out of order: within a term, cursors only grow.
func (s *shardLog) chainMoved(row catalog.ChainRow) {
	p := &s.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if row.AbsorbedEnd < p.row.AbsorbedEnd {
		return
	}
	if row.WatermarkSeq < p.row.WatermarkSeq {
		row.WatermarkSeq, row.WatermarkSegment = p.row.WatermarkSeq, p.row.WatermarkSegment
	}
	p.row = row
	p.broadcast()
}

// chainRow is the row as last seen.
func (s *shardLog) chainRow() catalog.ChainRow {
	s.progress.mu.Lock()
	defer s.progress.mu.Unlock()
	return s.progress.row
}

// unpublished counts the segments that hold frames and are not absorbed, the open
// one included, and their bytes.
func (s *shardLog) unpublished() (segments int, bytes int64) {
	st := s.wal.State()
	queued := s.wal.Unflushed()
	p := &s.progress
	p.mu.Lock()
	segments, bytes = len(p.sealed), p.sealedBytes.Load()+queued
	p.mu.Unlock()
	if st.Open && (st.Frames > 1 || queued > 0) {
		segments++
		if st.Durable.Segment == st.Segment {
			bytes += st.Durable.Byte
		}
	}
	return segments, bytes
}

// isFatal says that trying again cannot help.
func isFatal(err error) bool {
	return errors.Is(err, ErrFenced) || errors.Is(err, ErrHalted)
}
