package objstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// known says that a driver kept to the closed set.
func known(err error) bool { return kindOf(err) < len(kindNames) }

// attempt makes one driver call under its own deadline and counts it. An error
// outside the closed set is taken at its worst: a mutation may have happened.
func (s *Store) attempt(ctx context.Context, op Op, key string, call func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return notStarted(ctx, op, key)
	}
	if err := s.unbraked(ctx, op, key); err != nil {
		return err
	}
	t := s.stats.of(op)
	t.requests.Add(1)
	ctx, cancel := context.WithTimeout(ctx, s.timeout(op))
	defer cancel()
	began := time.Now()
	err := call(ctx)
	t.took(time.Since(began), err)
	if err == nil {
		return nil
	}
	if s.brake.heed(began, err) {
		s.stats.throttled.Add(1)
	}
	if known(err) {
		return err
	}
	kind := ErrUnavailable
	if op.Mutation() {
		kind = ErrAmbiguous
	}
	return &Error{Op: string(op), Key: key, Kind: kind, Err: err}
}

// timeout gives the calls in which the store itself moves gigabytes more time: AWS
// holds a complete for minutes, and a copied part may be 5 GiB.
func (s *Store) timeout(op Op) time.Duration {
	if op == OpComplete || op == OpCopyPart {
		return 5 * s.cfg.CallTimeout
	}
	return s.cfg.CallTimeout
}

// notStarted is the answer of a call that a finished context kept from starting.
func notStarted(ctx context.Context, op Op, key string) error {
	return &Error{Op: string(op), Key: key, Kind: ErrUnavailable, Err: context.Cause(ctx)}
}

// bounded gives a call of the Store its overall deadline. A call within a call (a
// read-back) stays within the outer one's.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.cfg.TotalTimeout, s.late)
}

// retry repeats an idempotent call while again(err) holds, pausing in between.
func (s *Store) retry(ctx context.Context, op Op, key string, call func(context.Context) error) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	for n := 0; ; n++ {
		err := s.attempt(ctx, op, key, call)
		if err == nil || !again(op, err) || n+1 >= s.cfg.Attempts || s.pause(ctx, n, RetryAfter(err)) != nil {
			return err
		}
	}
}

// again says whether the same call may succeed if made once more. Only calls
// that are idempotent come here; create-once writes go through publish.
func again(op Op, err error) bool {
	switch {
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrAmbiguous), errors.Is(err, ErrShort):
		return true
	case errors.Is(err, ErrConflict):
		// A 409 is no verdict (K32). On a complete it means a new upload, which is
		// the caller's to start; completes do not come through here.
		return op.Mutation()
	}
	return false
}

// errAsked ends a loop whose store asked for more time than the loop may take.
var errAsked = errors.New("the store asks for a longer pause than a call may make")

// pause sleeps before attempt n+1: full jitter over a doubling window, so that
// clients throttled together do not come back together, behind what the store asked
// for. Its error ends the loop.
func (s *Store) pause(ctx context.Context, n int, asked time.Duration) error {
	if asked > MaxRetryAfter {
		return errAsked
	}
	window := min(s.cfg.Backoff<<min(n, 10), MaxBackoff)
	d := asked + s.cfg.Jitter(window)
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return context.DeadlineExceeded // the pause would outlast the caller
	}
	s.stats.retries.Add(1)
	return s.cfg.Sleep(ctx, d)
}

// jitter is a random part of a window, all of it included.
func jitter(window time.Duration) time.Duration {
	if window <= 0 {
		return 0
	}
	return time.Duration(rand.Int64N(int64(window) + 1))
}
