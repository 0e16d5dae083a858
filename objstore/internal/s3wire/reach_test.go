package s3wire_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// TestReach: what is tried again, and how long at most.
func TestReach(t *testing.T) {
	away := &objstore.Error{Op: "list", Kind: objstore.ErrUnavailable}
	asked := &objstore.Error{Op: "list", Kind: objstore.ErrUnavailable, RetryAfter: time.Minute}
	denied := &objstore.Error{Op: "list", Kind: objstore.ErrDenied}
	for name, c := range map[string]struct {
		fails int
		with  error
		takes time.Duration // of each call
		calls int
		ends  error
	}{
		"one fault":           {1, away, 0, 2, nil},
		"away":                {9, away, 0, 3, away},
		"silent":              {9, away, time.Minute, 1, away},
		"asks for a minute":   {9, asked, 0, 1, asked},
		"denied is a verdict": {9, denied, 0, 1, denied},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				err := s3wire.Reach(t.Context(), func() error {
					time.Sleep(c.takes)
					if calls++; calls <= c.fails {
						return c.with
					}
					return nil
				})
				if calls != c.calls || !errors.Is(err, c.ends) {
					t.Fatalf("%d calls, %v; want %d, %v", calls, err, c.calls, c.ends)
				}
			})
		})
	}
}
