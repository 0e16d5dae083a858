package localtier

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// flush seals what is open and waits until all of it is absorbed.
func (s *shardLog) flush(ctx context.Context) error {
	if err := s.stoppedBy(); err != nil {
		return err
	}
	if _, err := s.wal.Seal(ctx); err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	return s.drain(ctx)
}

// drain waits until what is sealed by now is absorbed; rows that arrive meanwhile do
// not hold it up.
func (s *shardLog) drain(ctx context.Context) error {
	p := &s.progress
	p.mu.Lock()
	through := p.absorbed
	if n := len(p.sealed); n > 0 {
		through = p.sealed[n-1].ID
	}
	p.mu.Unlock()
	for {
		p.mu.Lock()
		done, stopped, changed, last := p.absorbed >= through, p.stopped, p.changed, p.lastErr
		p.mu.Unlock()
		switch {
		case done:
			return nil
		case stopped != nil:
			return stopped
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last)
		}
	}
}

// close is SIGTERM: seal, publish, absorb, release.
func (s *shardLog) close(ctx context.Context) error {
	s.closed.Do(func() {
		s.shut(ErrClosed)
		p := &s.progress
		p.mu.Lock()
		p.closing = true
		p.over.Store(true)
		p.mu.Unlock()
		s.closeBy = s.shutDown(ctx)
	})
	return s.closeBy
}

// giveBack ends a shard that never served, because another of its writer could not be
// opened: nothing is published on the way out, so that it takes no longer than it must.
func (s *shardLog) giveBack(ctx context.Context) error {
	s.closed.Do(func() { s.closeBy = s.leave(ctx, nil) })
	var left *LeftError
	if errors.As(s.closeBy, &left) {
		return nil // as it was found
	}
	return s.closeBy
}

func (s *shardLog) shutDown(ctx context.Context) error {
	return s.leave(ctx, s.flush(ctx))
}

// leave stops the goroutines, releases the lease if nothing is left here, and closes
// the log.
func (s *shardLog) leave(ctx context.Context, cause error) error {
	s.end()
	s.hydrating.Wait()
	s.running.Wait()
	left, bytes := s.unpublished()
	var err error
	switch {
	case left > 0:
		// The lease is not released: it keeps others away from rows that are only here.
		err = &LeftError{Chain: s.chain, Dir: s.dir, Segments: left, Bytes: bytes, Cause: orUnknown(cause)}
	case cause == nil:
		// A crash before this leaves a lease that ends by itself.
		err = s.notReleased(s.catalog.ReleaseChain(ctx, s.chain, s.owner, s.term))
	default:
		err = cause
	}
	err = errors.Join(err, s.wal.Close())
	s.retire()
	return err
}

// notReleased says what a lease that could not be given up is good for.
func (s *shardLog) notReleased(err error) error {
	if err == nil {
		return nil
	}
	return &ShardError{
		Chain: s.chain, Dir: s.dir, Doing: "give up the lease (all rows are published)", Err: err,
		Next: fmt.Sprintf("it ends by itself at %s; another writer can have the chain then, and a start on this directory has it at once", s.lease.end().Format(time.RFC3339)),
	}
}

func orUnknown(err error) error {
	if err == nil {
		return errors.New("rows arrived while it was closing")
	}
	return err
}
