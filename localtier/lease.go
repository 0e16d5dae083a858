package localtier

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/catalog"
)

// lease is this process's view of its lease. It is on the careful side: counted
// from before the call that renewed it, and over as soon as the monotonic clock or
// the wall clock says so (a suspended machine stops the first, an operator turns
// back the second).
type lease struct {
	life time.Duration
	now  func() time.Time

	renewed atomic.Pointer[time.Time] // nil: never; every append looks at it twice
}

// extend only ever moves the end forward.
func (l *lease) extend(asked time.Time) {
	for {
		have := l.renewed.Load()
		if have != nil && !asked.After(*have) || l.renewed.CompareAndSwap(have, &asked) {
			return
		}
	}
}

func (l *lease) end() time.Time {
	if renewed := l.renewed.Load(); renewed != nil {
		return renewed.Add(l.life)
	}
	return time.Time{}.Add(l.life)
}

func (l *lease) good() bool { return l.goodAt(l.now()) }

func (l *lease) goodAt(now time.Time) bool {
	end := l.end()
	return now.Before(end) && now.Round(0).Before(end.Round(0))
}

const renewing = "renew the lease"

// renewLoop renews three times in a lease's life, so that two failures in a row
// cost nothing, and oftener once one failed.
func (s *shardLog) renewLoop(ctx context.Context) {
	every := s.cfg.LeaseTime / 3
	for wait := every; pause(ctx, wait); {
		asked := s.now()
		row, err := s.catalog.RenewChain(ctx, s.chain, s.owner, s.term, s.cfg.LeaseTime)
		switch {
		case err == nil:
			s.lease.extend(asked)
			s.chainMoved(row)
			s.mended(renewing) // a shard without rows absorbs nothing that would
			wait = every
		case errors.Is(err, catalog.ErrFenced):
			s.stopAndTell(ctx, s.fenced(fmt.Sprintf("the lease could not be renewed: %v", err)))
			return
		default:
			if ctx.Err() == nil {
				s.note(renewing, err)
			}
			wait = max(every/10, time.Millisecond)
		}
	}
}

// pause waits; false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
