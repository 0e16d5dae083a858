package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/strandline/strandline/objstore"
)

// awayPatience is how long a cold read waits for a bucket that others stand beside. One
// that answers at all does so in milliseconds.
const awayPatience = 10 * time.Second

var errAway = fmt.Errorf("no answer within %v", awayPatience)

// away stands for a bucket of a set that did not answer when a cold read began: the others
// may have all the rows (03 §10). A row that only it has is then unavailable, not lost.
type away struct {
	objstore.Driver // nil: cold reads only get
	name            string
	err             error
}

func (a away) Name() string                        { return a.name }
func (a away) Capabilities() objstore.Capabilities { return objstore.Capabilities{} }
func (a away) Close() error                        { return nil }

func (a away) Get(context.Context, string, objstore.Range, string) (io.ReadCloser, objstore.Info, error) {
	return nil, objstore.Info{}, a.err
}

func isAway(s *objstore.Store) bool {
	_, is := s.Driver().(away)
	return is
}

// openOrAway is openDriver for one of several buckets that a cold read may use.
func openOrAway(ctx context.Context, t *tier, raw string) (objstore.Driver, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	// Not before: a driver may renew its credentials under the context it was opened with.
	t.closers = append(t.closers, func() error { cancel(nil); return nil })
	patience := time.AfterFunc(awayPatience, func() { cancel(errAway) })
	defer patience.Stop()
	driver, err := openDriver(ctx, raw, modeCold)
	if errors.Is(err, objstore.ErrUnavailable) {
		return away{name: objstore.Shown(raw), err: err}, nil
	}
	return driver, err
}

// answering are the buckets that answered. A class without one is an error.
func answering(classes objstore.Classes) (objstore.Classes, error) {
	out := objstore.Classes{}
	for class, set := range classes {
		var errs []error
		for _, s := range set {
			if a, is := s.Driver().(away); is {
				errs = append(errs, a.err)
				continue
			}
			out[class] = append(out[class], s)
		}
		if len(out[class]) == 0 {
			return nil, errors.Join(errs...)
		}
	}
	return out, nil
}
