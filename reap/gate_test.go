package reap_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/segment"
)

// Each write of a chain's head and each delete goes through the gate, one by one: a rollback
// between two of them is met by the second.
func TestHeadsAndDeletesGoThroughTheGate(t *testing.T) {
	for name, c := range map[string]struct {
		build          func(t *testing.T) *audittest.Tier
		run            func(r rooms) error
		heads, deletes bool
	}{
		"trim-check, condemns": {func(t *testing.T) *audittest.Tier { return rewritten(t, 3) }, trimPass, true, false},
		"trim-check, deletes":  {func(t *testing.T) *audittest.Tier { return condemned(t, 3) }, trimPass, false, true},
		"reap-check": {func(t *testing.T) *audittest.Tier {
			x := settled(t, "a", "b")
			confirmed(x, "a", "b")
			return x
		}, func(r rooms) error {
			r.reapOnce()
			return nil
		}, false, true},
		"reclaim": {func(t *testing.T) *audittest.Tier {
			x := packed(t, 3)
			x.Raise(2)
			return x
		}, func(r rooms) error {
			_, err := r.reclaimOnce()
			return err
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := c.build(t)
			open, heads, deletes := false, 0, 0
			f := &audittest.Faults{Hook: func(call string, after bool) {
				op, key, _ := strings.Cut(strings.TrimPrefix(call, "store "), " ")
				write := strings.HasPrefix(op, "put") && key == segment.HeadKey(x.Chain)
				drop := strings.HasPrefix(op, "delete")
				if after || !write && !drop {
					return
				}
				if write {
					heads++
				} else {
					deletes++
				}
				if !open {
					t.Errorf("%s beside the gate", call)
				}
			}}
			r := gatedRooms(x, f.Store(x), f.Catalog(x), func(ctx context.Context, act func(context.Context) error) error {
				open = true
				defer func() { open = false }()
				return act(ctx)
			})
			f.Start()
			x.Must(c.run(r))
			if (heads > 0) != c.heads || (deletes > 0) != c.deletes {
				t.Errorf("%d heads written, %d deletes: %v", heads, deletes, f.Calls())
			}
		})
	}
}

// TestShutGate: what a gate does not let through is its error, and nothing happened.
func TestShutGate(t *testing.T) {
	for name, build := range map[string]func(*testing.T, int) *audittest.Tier{"head": rewritten, "delete": condemned} {
		t.Run(name, func(t *testing.T) {
			x := build(t, 3)
			keys := x.Keys()
			shut := gatedRooms(x, x.Store, x.DB, func(context.Context, func(context.Context) error) error { return catalog.ErrRolledBack })
			if err := trimPass(shut); !errors.Is(err, catalog.ErrRolledBack) {
				t.Errorf("error %v", err)
			}
			if got := x.Keys(); !slices.Equal(got, keys) {
				t.Errorf("%v in the bucket, before %v", got, keys)
			}
		})
	}
}

func trimPass(r rooms) error {
	_, err := r.trimOnce()
	return err
}
