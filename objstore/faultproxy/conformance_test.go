//go:build unix

package faultproxy

import (
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/storetest"
)

// TestConformance: through a proxy that does nothing, drivers and Stores keep every
// promise: Host, signatures, early refusals and bodies pass as they are.
func TestConformance(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		open := func(*testing.T) objstore.Driver { return c.through }
		t.Run("Driver", func(t *testing.T) { storetest.Run(t, open) })
		t.Run("Store", func(t *testing.T) { storetest.RunStore(t, open) })
	})
}

// ownFaults are keys of cases that leave no room for more faults: the first counts its
// puts, the second cuts two bodies of three by itself, the third wants "lost" where an
// unknown attempt before it makes "unknown" the right answer.
var ownFaults = []string{"/k13/put", "/reads", "/cas"}

// TestConformanceUnderFaults: with one request in five struck, Stores keep every
// promise all the same. What drivers promise is about one attempt, whose right answer
// to a fault is an error: their suite has no place here.
func TestConformanceUnderFaults(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		c.proxy.SetStreak(3) // of the Store's five attempts
		rules := share(1, 4)
		for _, r := range rules {
			r.Key = func(key string) bool {
				return !slices.ContainsFunc(ownFaults, func(end string) bool { return strings.HasSuffix(key, end) })
			}
		}
		c.proxy.Add(rules...)
		for range 2 {
			storetest.RunStoreOver(t, func(*testing.T) (over, steady objstore.Driver) { return c.through, c.direct })
		}
		c.struck(t, rules, 15)
	})
}

// struck says how many requests met a fault, and fails if they were fewer than least or
// a third of the rules never struck.
func (c *cell) struck(t *testing.T, rules []*Rule, least int) {
	t.Helper()
	hits := 0
	for _, r := range rules {
		hits += c.proxy.Hits(r)
	}
	unhit := c.proxy.Unhit()
	t.Logf("%d of %d requests struck; never: %q", hits, c.proxy.Total(), unhit)
	if hits < least || len(unhit) > len(rules)/3 {
		t.Errorf("too few faults to prove anything")
	}
}
