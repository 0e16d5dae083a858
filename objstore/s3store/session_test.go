//go:build unix

package s3store

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3express"
)

// TestSessionOfManyCalls: calls that begin together share one session.
func TestSessionOfManyCalls(t *testing.T) {
	s := newExpress(s3express.Options{})
	d := dialExpress(t, serve(t, s), expressURL("tier"), nil)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			if _, err := d.Head(t.Context(), "k"); !errors.Is(err, objstore.ErrNotFound) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.Sessions(); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// TestSessionRenewalFails: in the last fifth of its life a session is renewed; while that
// fails the old one is used, as long as it lasts, and then the call says why.
func TestSessionRenewalFails(t *testing.T) {
	var refuse atomic.Bool
	server := newExpress(s3express.Options{})
	d := openExpress(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse.Load() && r.URL.Query().Has("session") {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("<Error><Code>SlowDown</Code></Error>"))
			return
		}
		server.ServeHTTP(w, r)
	}), "tier")
	ours := newClock(time.Now())
	d.sessions.clock = ours.now
	head := func() error {
		_, err := d.Head(t.Context(), "k")
		return err
	}
	refuse.Store(true)
	for _, step := range []struct {
		by   time.Duration // of 300 s
		want error
	}{
		{200 * time.Second, objstore.ErrNotFound},
		{60 * time.Second, objstore.ErrNotFound},    // due for renewal, which fails
		{40 * time.Second, objstore.ErrUnavailable}, // over
	} {
		ours.advance(step.by)
		if err := head(); !errors.Is(err, step.want) {
			t.Errorf("after %v more: %v, want %v", step.by, err, step.want)
		}
	}
	refuse.Store(false)
	if err := head(); !errors.Is(err, objstore.ErrNotFound) || server.Sessions() != 2 {
		t.Errorf("%v with %d sessions", err, server.Sessions())
	}
}

// TestSessionWaitEnds: a call that waits for another's renewal ends with its context.
func TestSessionWaitEnds(t *testing.T) {
	s := newSessions(expressBucket)
	<-s.renews // somebody is at it
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Retrieve(ctx, expressBucket); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
