//go:build unix

package faultproxy

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// TestStorm: writers compete for keys while one request in two is struck and some land
// late, at any later moment. Of each key one body stands for good; whoever was told that
// it won wrote it, whoever was told that it lost did not, and if nobody won, one of those
// who were told "unknown" did.
func TestStorm(t *testing.T) {
	const keys, contestants = 24, 4
	cells(t, func(t *testing.T, c *cell) {
		late := &ApplyLate{}
		// A store that says "slow down" and applies the request all the same is not in it:
		// its word is taken for "not applied" once the attempts are used up.
		rules := slices.DeleteFunc(share(11, 2), func(r *Rule) bool { return r.Name == "503 after" })
		rules = append(rules, &Rule{Name: "late", Ops: []objstore.Op{objstore.OpPut, objstore.OpComplete}, When: Share(12, 4), Fault: late})
		c.proxy.Add(rules...)
		told := make([][contestants]error, keys)
		var wg sync.WaitGroup
		for w := range contestants {
			s := c.store(t, func() { c.release(t, late, -1) }) // whoever waits lets others' late ones land
			wg.Go(func() {
				for k := range keys {
					told[k][w] = stormMutation(k).do(t.Context(), s, stormKey(k), "", stormBody(k, w))
				}
			})
		}
		wg.Wait()
		c.struck(t, rules, 50)
		c.proxy.Clear()
		c.release(t, late, -1)
		outcomes := make(map[string]int)
		for k := range keys {
			c.fair(t, k, told[k][:], outcomes)
		}
		t.Logf("%v", outcomes)
		c.calm(t, keys)
	})
}

func stormKey(k int) string { return fmt.Sprintf("storm/%d/x", k) }

// stormMutation makes every eighth key's object of parts.
func stormMutation(k int) mutation {
	if k%8 == 7 {
		return commit
	}
	return putOnce
}

func stormBody(k, w int) []byte { return stormMutation(k).body(byte(k*8 + w)) }

// fair holds one key's object to what its writers were told.
func (c *cell) fair(t *testing.T, k int, told []error, outcomes map[string]int) {
	t.Helper()
	got := c.stands(t, stormKey(k))
	writer := -1
	for w := range told {
		if bytes.Equal(got, stormBody(k, w)) {
			writer = w
		}
	}
	if got != nil && writer < 0 {
		t.Fatalf("key %d: %d bytes of nobody", k, len(got))
	}
	for w, err := range told {
		switch {
		case err == nil:
			outcomes["won"]++
			if w != writer {
				t.Errorf("key %d: writer %d was told that it won, and %d stands", k, w, writer)
			}
		case errors.Is(err, objstore.ErrAmbiguous):
			outcomes["unknown"]++
		default:
			outcomes["lost or failed"]++
			if w == writer {
				t.Errorf("key %d: writer %d stands and was told %v", k, w, err)
			}
		}
	}
}

// calm deletes everything while requests are struck. What the Store calls gone is gone.
func (c *cell) calm(t *testing.T, keys int) {
	t.Helper()
	c.proxy.SetStreak(4)
	c.proxy.Add(share(13, 3)...)
	s := c.store(t, nil)
	for k := range keys {
		if err := remove.do(t.Context(), s, stormKey(k), "", nil); err != nil {
			t.Fatal(err)
		}
		c.holds(t, stormKey(k), nil)
	}
}
