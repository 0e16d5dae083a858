package sim

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/strandline/strandline/objstore"
)

// Fault is what becomes of a call.
type Fault string

// The fates. The empty one is none: the call happens and is answered.
const (
	FaultNone        Fault = ""
	FaultRefused     Fault = "refused"      // 500, or the catalog unreachable: not applied
	FaultThrottled   Fault = "throttled"    // 503 with Retry-After: not applied
	FaultLost        Fault = "answer lost"  // applied, the caller sees an error
	FaultLate        Fault = "late"         // the caller sees an error; it is applied later, or never
	FaultTimeout     Fault = "timed out"    // the caller's ctx ended first; as late
	FaultConflict    Fault = "409"          // not applied
	FaultShort       Fault = "short body"   // of a GET
	FaultTruncated   Fault = "truncated"    // a listing's page, with an error
	FaultSome        Fault = "some keys"    // a bulk delete: some fail, some have no answer
	FaultAway        Fault = "away"         // during an outage of bucket or catalog
	FaultCrashBefore Fault = "crash before" // the process dies, the call does not happen
	FaultCrashAfter  Fault = "crash after"  // it happens, and the process dies
	FaultDead        Fault = "dead"         // the process had died
	FaultLateApplied Fault = "applied late"
	FaultDropped     Fault = "dropped"
	faultUnmade      Fault = "not made" // its caller's ctx ended before it was
)

// applies says that the call happens at once.
func (f Fault) applies() bool {
	switch f {
	case FaultNone, FaultLost, FaultShort, FaultTruncated, FaultSome, FaultCrashAfter:
		return true
	}
	return false
}

type fate struct {
	kind Fault
	arg  uint64 // how short, which keys
	ask  time.Duration
	// Filled in as it happens: when the call was made, and that it was under way when the
	// catalog was rolled back.
	made   time.Time
	before bool
}

// Rates are chances in a thousand steps.
type Rates struct {
	Wait, Late     int // time passes with calls under way; a late call happens
	Refused        int
	Throttled      int
	Lost           int
	Delayed        int
	Conflict       int
	Short          int
	Truncated      int
	Some           int
	Crash          int // of the process that makes the call, before or after it
	CutStep        int // a crash point by name stops the process
	InlineRefused  int
	AwayCatalogMax time.Duration // an outage at most
	AwayStoreMax   time.Duration
}

// DefaultRates make about one call in fifteen go wrong.
func DefaultRates() Rates {
	return Rates{
		Wait: 60, Late: 20, Refused: 15, Throttled: 4, Lost: 15, Delayed: 10, Conflict: 8, Short: 15, Truncated: 30,
		Some: 150, Crash: 2, CutStep: 8, InlineRefused: 30,
		AwayCatalogMax: 100 * time.Second, AwayStoreMax: 100 * time.Second,
	}
}

// scaled makes some seeds calm, so that protocols come to their ends, and some wild.
func (r Rates) scaled(seed uint64) Rates {
	times := []float64{1, 0.3, 1, 2, 0.1}[seed%5]
	for _, rate := range []*int{&r.Refused, &r.Throttled, &r.Lost, &r.Delayed, &r.Conflict, &r.Short, &r.Truncated, &r.Crash, &r.CutStep, &r.InlineRefused} {
		*rate = int(float64(*rate)*times + 0.5)
	}
	if times < 1 {
		r.AwayCatalogMax, r.AwayStoreMax = r.AwayCatalogMax/4, r.AwayStoreMax/4
	}
	return r
}

// fateOf draws a call's fate.
func (s *Sim) fateOf(c *call) fate {
	f := s.draw(c, s.rng)
	if f.kind == FaultNone && s.away(c) {
		f.kind = FaultAway
	}
	return f
}

func (s *Sim) draw(c *call, rng *rand.Rand) fate {
	r := s.cfg.Rates
	arg := rng.Uint64()
	n := rng.IntN(1000)
	hit := func(rate int, ok bool) bool {
		if !ok {
			return false
		}
		n -= rate
		return n < 0
	}
	sync := c.what == "disk sync"
	switch {
	case c.p.immune:
		return fate{}
	case hit(r.Crash, true):
		return fate{kind: []Fault{FaultCrashBefore, FaultCrashAfter}[arg%2]}
	case sync:
		return fate{}
	case hit(r.Refused, true):
		return fate{kind: FaultRefused}
	case hit(r.Lost, true):
		return fate{kind: FaultLost}
	case hit(r.Delayed, c.mutates):
		return fate{kind: FaultLate}
	case hit(r.Throttled, c.store()):
		return fate{kind: FaultThrottled, ask: time.Duration(arg % uint64(40*time.Second))}
	case hit(r.Conflict, c.store() && c.mutates):
		return fate{kind: FaultConflict}
	case hit(r.Short, c.op == objstore.OpGet):
		return fate{kind: FaultShort, arg: arg}
	case hit(r.Truncated, c.op == objstore.OpList):
		return fate{kind: FaultTruncated, arg: arg}
	case hit(r.Some, c.op == objstore.OpDelete):
		return fate{kind: FaultSome, arg: arg}
	}
	return fate{}
}

// away says that the call falls into an outage.
func (s *Sim) away(c *call) bool {
	if c.p.immune {
		return false
	}
	now := time.Now()
	return c.store() && now.Before(c.bucket.away) || c.what != "disk sync" && !c.store() && now.Before(s.catalogAway)
}

// inlineFate is that of a call that does not park: drawn from what it is, since nobody
// knows in which order such calls come.
func (s *Sim) inlineFate(c *call, id string) fate {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %s %d", c.p.name, id, c.nth)
	rng := rand.New(rand.NewPCG(s.cfg.Seed, h.Sum64()))
	if rng.IntN(1000) < s.cfg.Rates.InlineRefused && !c.p.immune {
		return fate{kind: []Fault{FaultRefused, FaultLost}[rng.IntN(2)]}
	}
	if s.away(c) {
		return fate{kind: FaultAway}
	}
	return fate{}
}

// errInjected is the cause of every fault.
var errInjected = errors.New("injected fault")
