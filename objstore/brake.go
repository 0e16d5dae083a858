package objstore

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// maxBrake caps the doubling of the brake's window, as a pause's.
	maxBrake = 10
	// longestHold is how long one attempt is held back in all, however often the
	// brake is pulled meanwhile: an ask of the greatest length with its jitter.
	longestHold = MaxRetryAfter + MaxBackoff
)

// brake holds back all calls of a Store once the store has said that it is
// overloaded. Without it each of many callers would have to be refused by itself,
// and again after each of its own pauses.
//
//	refusal    until = now + window, doubled by each further refusal
//	attempt    begins at until + jitter over the window, and looks again then
//	success    changes nothing: one lucky answer is no proof of room
//	quiet      each window that passes without a refusal halves the next
//
// So a few attempts at a time find out whether there is room again, and the others
// wait for what these hear.
type brake struct {
	backoff time.Duration // of Config

	mu     sync.Mutex
	until  time.Time // no attempt begins before
	pulled time.Time // when the last refusal came that was news
	level  int       // doublings of the window
}

// heed pulls the brake if err is a refusal for load, or names a time. began is when
// the refused request was sent: one that was under way when the brake was pulled
// says nothing new, and a burst of 64 refusals is one. It tells whether err was one.
func (b *brake) heed(began time.Time, err error) (throttled bool) {
	ask, throttled := asked(err)
	if !throttled && ask == 0 {
		return false
	}
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if began.After(b.pulled) {
		if quiet := now.Sub(b.until); quiet > 0 && b.level > 0 {
			b.level = max(0, b.level-int(quiet/b.window()))
		}
		b.level = min(b.level+1, maxBrake)
		b.pulled = now
		b.push(now.Add(b.window()))
	}
	// An ask of an hour must not close the Store for an hour: whoever met it comes back
	// as late as it says, and the others find out for themselves after the longest
	// pause that a call may make.
	b.push(now.Add(min(ask, MaxRetryAfter)))
	return throttled
}

// push moves until, never back. b.mu is held.
func (b *brake) push(t time.Time) {
	if t.After(b.until) {
		b.until = t
	}
}

// window is b.mu's.
func (b *brake) window() time.Duration { return min(b.backoff<<b.level, MaxBackoff) }

// next is when an attempt may begin, and the window to spread attempts over.
func (b *brake) next() (until time.Time, window time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until, b.window()
}

// unbraked returns when the brake lets an attempt begin. An attempt that would be
// held too long, or beyond its ctx's deadline, is refused at once in the store's
// place: nothing was sent.
func (s *Store) unbraked(ctx context.Context, op Op, key string) error {
	var waitedFor time.Time // not the clock decides but what was waited for: Sleep may be a test's
	for left := longestHold; ; {
		until, window := s.brake.next()
		now := time.Now()
		if !until.After(waitedFor) || !until.After(now) {
			return nil
		}
		if waitedFor.IsZero() {
			s.stats.held.Add(1)
		}
		d := until.Sub(now) + s.cfg.Jitter(window)
		if end, ok := ctx.Deadline(); d > left || ok && end.Sub(now) < d {
			return &Error{
				Op: string(op), Key: key, Kind: ErrUnavailable, RetryAfter: until.Sub(now), Throttled: true,
				Err: errors.New("the store is overloaded, so that this was not sent: try again later, or send less at once"),
			}
		}
		if err := s.cfg.Sleep(ctx, d); err != nil {
			return notStarted(ctx, op, key)
		}
		left -= d
		waitedFor = until
	}
}
