package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/objstore"
)

// foundingPatience is how long an auditor waits for a deployment: it is often started
// together with the first writer, which has to prove the bucket before it founds anything.
// A path that is wrong ends in the same error, only later, and the log says so at once.
const (
	foundingPatience = 30 * time.Second
	foundingEvery    = 250 * time.Millisecond
)

// whenFounded opens a deployment that somebody else is founding at this moment.
func whenFounded(open func(context.Context) (*tier, error), log *slog.Logger) func(context.Context) (*tier, error) {
	return func(ctx context.Context) (*tier, error) {
		said := false
		for end := time.Now().Add(foundingPatience); ; {
			t, err := open(ctx)
			if err == nil || !notFounded(err) || time.Now().After(end) {
				return t, err
			}
			if !said {
				log.Warn("no deployment here yet: waiting for a writer to found it", "error", err, "at_most", foundingPatience.String())
				said = true
			}
			select {
			case <-time.After(foundingEvery):
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
	}
}

// notFounded says that a deployment's catalog, bucket or stamp is not there (yet).
func notFounded(err error) bool {
	var unstamped *check.UnstampedError
	return errors.Is(err, check.ErrNoDeployment) || errors.Is(err, objstore.ErrNotFound) || errors.As(err, &unstamped)
}
