package objstore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestHoldEnds: an attempt behind a brake that others pull again and again is not held
// for ever: it is refused, and was not sent.
func TestHoldEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := &Error{Op: "head", Key: "k", Kind: ErrUnavailable, RetryAfter: 9 * time.Second, Throttled: true}
		s := &Store{cfg: Config{}.withDefaults(), brake: brake{backoff: DefaultBackoff}}
		s.cfg.Sleep = func(ctx context.Context, d time.Duration) error {
			time.Sleep(d)
			s.brake.heed(time.Now(), refusal) // another caller's attempt went first
			return nil
		}
		s.brake.heed(time.Now(), refusal)
		start := time.Now()
		err := s.unbraked(t.Context(), OpHead, "k")
		if !errors.Is(err, ErrUnavailable) || RetryAfter(err) == 0 {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took > longestHold || took < longestHold/2 {
			t.Errorf("held for %v, the most is %v", took, longestHold)
		}
	})
}
