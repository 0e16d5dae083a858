package faultproxy

import (
	"math/rand/v2"
	"slices"

	"github.com/strandline/strandline/objstore"
)

// Fault is what happens to a request that a Rule picked. One value may strike many
// requests at once. The set is closed: the types of this package.
type Fault interface {
	strike(x *exchange)
}

// Rule sends some requests into a fault. All conditions must hold; zero ones do.
type Rule struct {
	Name   string // for Unhit
	Ops    []objstore.Op
	Method string
	Key    func(key string) bool
	When   When // which of the requests that match; nil: every one
	Times  int  // strikes at most; 0: without end
	Fault  Fault

	seen, hits int // of the proxy, under its mutex
}

// When picks requests by their number among those that match a Rule, from 1.
type When func(seen int) bool

// Nth picks the n-th alone.
func Nth(n int) When { return func(seen int) bool { return seen == n } }

// First picks the first n.
func First(n int) When { return func(seen int) bool { return seen <= n } }

// EveryNth picks the n-th, the 2n-th and so on.
func EveryNth(n int) When { return func(seen int) bool { return seen%n == 0 } }

// Share picks one in n at random, the same ones for the same seed and order.
func Share(seed uint64, n int) When {
	src := rand.New(rand.NewPCG(seed, uint64(n)))
	return func(int) bool { return src.IntN(n) == 0 }
}

// matches counts the call if it is one of the rule's, and says whether to strike.
func (r *Rule) matches(c Call) bool {
	switch {
	case len(r.Ops) > 0 && !slices.Contains(r.Ops, c.Op):
		return false
	case r.Method != "" && r.Method != c.Method:
		return false
	case r.Key != nil && !r.Key(c.Key):
		return false
	}
	r.seen++
	return (r.Times == 0 || r.hits < r.Times) && (r.When == nil || r.When(r.seen))
}
