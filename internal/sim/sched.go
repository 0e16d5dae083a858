package sim

import (
	"context"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/objstore"
)

// call is a step: a request to the bucket, a verb of the catalog or an fdatasync, made
// by a process and not answered yet.
type call struct {
	p       *process
	what    string // "store put", "cat AbsorbSlot", "disk sync"
	key     string
	object  string // the key of a store call
	site    uint64 // who called, by the functions on the stack
	nth     int    // among the process's calls of that identity
	mutates bool
	op      objstore.Op // of a store call
	bucket  *bucket     // likewise
	made    time.Time
	before  bool // it was under way when the catalog was rolled back; Sim.applying
	// apply lets the call happen; it fills in what the caller is given.
	apply   func(fate)
	fate    chan fate
	expired bool // Sim.mu; the caller's ctx ended
	// seen, Sim.mu: the call was parked when all was at rest. One whose caller's ctx ended
	// before that may as well not have been made: which came first is nobody's to say.
	seen bool
	// inline: decided on at once, on the caller's goroutine.
	inline bool
}

func (c *call) store() bool { return c.op != "" }

// order is by what a call is, never by when it came: goroutines that wake together park
// in any order.
func (c *call) compare(d *call) int {
	for _, by := range []int{
		strings.Compare(c.p.name, d.p.name), strings.Compare(c.what, d.what), strings.Compare(c.key, d.key),
		compareUint(c.site, d.site), c.nth - d.nth,
	} {
		if by != 0 {
			return by
		}
	}
	return 0
}

func compareUint(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// park waits until the scheduler decides on the call. A caller whose ctx ends first
// goes away; what it asked for may still happen.
func (s *Sim) park(ctx context.Context, c *call) fate {
	c.fate, c.made = make(chan fate, 1), time.Now()
	s.mu.Lock()
	if c.p.dead {
		s.mu.Unlock()
		return fate{kind: FaultDead}
	}
	if s.direct {
		s.mu.Unlock()
		s.perform(c, fate{})
		return fate{}
	}
	var inline bool
	c.site, inline = caller()
	if inline {
		c.inline = true
		id := c.number()
		f := s.inlineFate(c, id)
		s.mu.Unlock()
		s.settle(c, f)
		return <-c.fate
	}
	s.parked = append(s.parked, c)
	s.mu.Unlock()
	s.poke()
	select {
	case f := <-c.fate:
		return f
	case <-ctx.Done():
	}
	// Several calls may have one deadline: they are told one after the other.
	s.mu.Lock()
	c.expired = true
	s.mu.Unlock()
	s.poke()
	return <-c.fate
}

// poke wakes an idle scheduler.
func (s *Sim) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// unpark is s.mu's.
func (s *Sim) unpark(c *call) {
	s.parked = slices.DeleteFunc(s.parked, func(o *call) bool { return o == c })
}

// schedule runs the world until its time or its steps are over, or a rule is broken.
func (s *Sim) schedule() {
	for {
		// Behind it nobody else of the bubble runs, until this goroutine waits.
		synctest.Wait()
		if s.check.broken() || s.steps >= s.cfg.Steps || !time.Now().Before(s.end) {
			return
		}
		if s.look() || s.crashes() || s.event() {
			continue
		}
		calls := s.ready()
		if len(calls) == 0 {
			s.idle()
			continue
		}
		if c := s.expired(calls); c != nil {
			s.decide(c, fate{kind: FaultTimeout})
			continue
		}
		switch n := s.rng.IntN(1000); {
		case n < s.cfg.Rates.Wait:
			s.wait(time.Duration(s.rng.Int64N(int64(2 * time.Second))))
		case n < s.cfg.Rates.Wait+s.cfg.Rates.Late && len(s.late) > 0:
			s.applyLate(s.rng.IntN(len(s.late)))
		default:
			c := calls[s.rng.IntN(len(calls))]
			f := s.fateOf(c)
			for _, twin := range twins(c, calls) {
				s.decide(twin, f)
			}
		}
	}
}

// calmly runs the end of a run: its calls happen one after the other, and nothing befalls
// them.
func (s *Sim) calmly(do func() error) error {
	var err error
	over := make(chan struct{})
	go func() {
		defer close(over)
		err = do()
	}()
	for {
		synctest.Wait()
		if s.look() {
			continue
		}
		if calls := s.ready(); len(calls) > 0 {
			s.decide(calls[0], fate{})
			continue
		}
		select {
		case <-s.wake:
		case <-over:
			return err
		}
	}
}

func (s *Sim) decide(c *call, f fate) {
	s.mu.Lock()
	s.unpark(c)
	s.mu.Unlock()
	s.settle(c, f)
}

// settle lets a call have its fate.
func (s *Sim) settle(c *call, f fate) {
	s.took(c, f)
	switch {
	case f.kind == FaultCrashBefore:
		s.kill(c.p, "before "+c.what)
	case f.kind.applies():
		s.perform(c, f)
		if f.kind == FaultCrashAfter {
			s.kill(c.p, "after "+c.what)
		}
	case (f.kind == FaultLate || f.kind == FaultTimeout) && c.mutates:
		s.mu.Lock()
		s.late = append(s.late, c)
		s.mu.Unlock()
	}
	c.fate <- f
}

// took accounts for a step.
func (s *Sim) took(c *call, f fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps++
	s.trace.add(c, f)
	s.count(f, c)
	if c.p.audits && c.store() {
		s.bill.request(c)
	}
}

// perform lets the call happen, and checks the rules after it.
func (s *Sim) perform(c *call, f fate) {
	s.applying.Lock()
	defer s.applying.Unlock()
	f.made, f.before = c.made, c.before
	c.apply(f)
	s.check.after(c)
}

// applyLate lets the nth call happen that its caller has given up, or drops it.
func (s *Sim) applyLate(n int) {
	s.mu.Lock()
	slices.SortStableFunc(s.late, (*call).compare)
	c := s.late[n]
	s.late = slices.Delete(s.late, n, n+1)
	s.mu.Unlock()
	f := fate{kind: FaultLateApplied}
	if s.rng.IntN(3) == 0 {
		f.kind = FaultDropped
	}
	s.took(c, f)
	if f.kind == FaultLateApplied {
		s.perform(c, f)
	}
}

// idle lets time pass to the next event, or until a timer has somebody make a call.
func (s *Sim) idle() {
	d := time.Until(s.end)
	if len(s.events) > 0 {
		d = min(d, time.Until(s.events[0].at))
	}
	if wake := s.nextWaking(); wake > 0 {
		d = min(d, wake)
	}
	t := time.NewTimer(max(d, time.Nanosecond))
	defer t.Stop()
	select {
	case <-s.wake:
	case <-t.C:
	}
}

// nextWaking is the time until a stalled process with a parked call goes on.
func (s *Sim) nextWaking() (d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.parked {
		if left := time.Until(c.p.stalledUntil); left > 0 && (d == 0 || left < d) {
			d = left
		}
	}
	return d
}

// wait lets time pass while calls are under way.
func (s *Sim) wait(d time.Duration) {
	s.mu.Lock()
	s.steps++
	s.mu.Unlock()
	time.Sleep(d + time.Nanosecond)
}
