package child

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// FatalError ends a Poll: what it waits for will not come.
type FatalError struct{ Cause error }

func (e FatalError) Error() string { return e.Cause.Error() }

func (e FatalError) Unwrap() error { return e.Cause }

// Poll asks until it is so, at most for this long.
func Poll(ctx context.Context, within time.Duration, what string, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		ok, err := so()
		var fatal FatalError
		switch {
		case errors.As(err, &fatal):
			return fatal.Cause
		case ok:
			return nil
		case err != nil:
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %v: %w", what, within, errors.Join(context.Cause(ctx), last))
		case <-tick.C:
		}
	}
}

// Pause lets time pass between acts, so that acts do not follow at once. It is pace and
// waits for nothing; false: the context ended.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
