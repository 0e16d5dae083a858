package s3wire

import (
	"context"
	"errors"
	"time"

	"github.com/strandline/strandline/objstore"
)

const (
	// reachTries, with the pauses between them, make a wrong port known in under half a second.
	reachTries = 3
	reachPause = 100 * time.Millisecond
	// reachTime: a store that was silent for so long is away, and is not waited for again.
	reachTime = 2 * time.Second
)

// Reach makes the first call to a store, the one of Open. A single fault on the way must not
// end a command whose every other call is tried again: who does that, objstore.Store, is not
// there yet.
func Reach(ctx context.Context, call func() error) error {
	begun := time.Now()
	for try := 1; ; try++ {
		err := call()
		pause := max(time.Duration(try)*reachPause, objstore.RetryAfter(err))
		if !errors.Is(err, objstore.ErrUnavailable) || try == reachTries || time.Since(begun)+pause > reachTime {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}
