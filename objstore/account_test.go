package objstore

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestTally holds the detail against the sums: every attempt is in one bucket, every
// failure under one kind.
func TestTally(t *testing.T) {
	var c tally
	for _, took := range []time.Duration{0, time.Millisecond, time.Millisecond + 1, 30 * time.Second, 31 * time.Second} {
		c.requests.Add(1)
		c.took(took, nil)
	}
	for _, err := range []error{
		&Error{Op: "put", Kind: ErrExists}, fmt.Errorf("around: %w", ErrExists), errors.New("of no kind"),
	} {
		c.requests.Add(1)
		c.took(2*time.Second, err)
	}
	a := c.account()
	if want := []int64{2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 1, 1}; !slices.Equal(a.Buckets, want) {
		t.Errorf("buckets %v, want %v", a.Buckets, want)
	}
	if len(a.Failed) != 2 || a.Failed["exists"] != 2 || a.Failed[errorOther] != 1 || c.errors.Load() != 3 {
		t.Errorf("failed %v of %d", a.Failed, c.errors.Load())
	}
	if want := 61.002000001 + 6; a.Seconds < want-1e-6 || a.Seconds > want+1e-6 {
		t.Errorf("%v s, want %v", a.Seconds, want)
	}
}

// TestAccountAdd sums the Stores around one bucket, and leaves what it adds alone.
func TestAccountAdd(t *testing.T) {
	one := Account{Ops: map[Op]OpAccount{OpGet: {Requests: 2, Failed: map[string]int64{"short": 1}, Buckets: []int64{2, 0}}}, Retries: 1, Braked: time.Second}
	var sum Account
	sum.Add(one)
	sum.Add(one)
	if g := sum.Ops[OpGet]; g.Requests != 4 || g.Failed["short"] != 2 || g.Buckets[0] != 4 || sum.Retries != 2 || sum.Braked != time.Second {
		t.Errorf("sum %+v", sum)
	}
	if g := one.Ops[OpGet]; g.Failed["short"] != 1 || g.Buckets[0] != 2 {
		t.Errorf("what was added changed: %+v", g)
	}
}
