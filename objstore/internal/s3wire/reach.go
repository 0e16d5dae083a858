package s3wire

import (
	"context"
	"errors"
	"net"
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

// awayHint is what to do about a request that found no connection. Nothing is to be done
// about one that was given up.
func awayHint(err error) string {
	var (
		name *net.DNSError
		dial *net.OpError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return ""
	case errors.As(err, &name):
		return "correct the host in the store's URL, or look at this machine's name service"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &dial):
		return "no connection was had: check that the store runs, and its URL's host and port"
	}
	return ""
}
