package auditor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/reap"
)

// Why deletes are held, as Summary.Holds names it.
const (
	HoldClock      = "clock"           // a clock stepped, or is off: for one grace
	HoldNotOurs    = "bucket-not-ours" // a bucket has no stamp of this deployment
	HoldRolledBack = "rolled-back"     // a chain's row is behind its head
	HoldUnread     = "unread"          // a clock, a stamp or a head could not be read
)

// Holds are all of them.
func Holds() []string { return []string{HoldClock, HoldNotOurs, HoldRolledBack, HoldUnread} }

// Garbage that is known, as Summary.Garbage names it.
const (
	GarbageGrace = "grace" // whole objects, and slots, that only wait for their grace
	GarbageInner = "inner" // dead bytes in objects that have live ones, too
)

// maxGarbage bounds the objects whose dead bytes are remembered; what is beyond is not
// in the sum.
const maxGarbage = 20_000

// garbageLife is how long a find is believed: another auditor may have deleted it since.
const garbageLife = 24 * time.Hour

// find is an object with dead bytes, as it was looked at.
type find struct {
	state string
	bytes int64
	at    time.Time
}

// watched is what the ledger keeps only for those who watch. The ledger's mu is held.
type watched struct {
	live    int                  // auditors
	holds   map[string]time.Time // reason: noted
	garbage map[string]find      // by key
}

// holdFor notes why deletes are held, or that they are not for that reason.
func (l *ledger) holdFor(reason string, held bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held {
		l.watched.holds[reason] = now
	} else {
		delete(l.watched.holds, reason)
	}
}

// dead notes how many dead bytes are known of a key; none forgets it.
func (l *ledger) dead(key string, f find) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.watched.garbage[key]
	switch {
	case f.bytes == 0:
		delete(l.watched.garbage, key)
	case known || len(l.watched.garbage) < maxGarbage:
		l.watched.garbage[key] = f
	}
}

// show adds to a snapshot what is watched. l.mu is held.
func (l *ledger) show(s *Summary, now time.Time, holdLife time.Duration) {
	s.Auditors = l.watched.live
	for reason, at := range l.watched.holds {
		// A chain that was rolled back is met again with its marker's back-off.
		if now.Sub(at) <= holdLife {
			s.Holds = append(s.Holds, reason)
		}
	}
	slices.Sort(s.Holds)
	s.Garbage = map[string]int64{GarbageGrace: 0, GarbageInner: 0}
	for key, f := range l.watched.garbage {
		if now.Sub(f.at) > garbageLife {
			delete(l.watched.garbage, key)
			continue
		}
		s.Garbage[f.state] += f.bytes
	}
}

// noteHold enters what the guard said before a pass.
func (a *Auditor) noteHold(why string, err error) {
	now := a.Clock()
	a.ledger.holdFor(HoldNotOurs, errors.Is(err, ErrNotOurs), now)
	a.ledger.holdFor(HoldUnread, err != nil && !errors.Is(err, ErrNotOurs), now)
	if err == nil {
		a.ledger.holdFor(HoldClock, why != "", now)
	}
}

// still is asked right before each request that deletes: have the clocks stepped since the
// pass began?
func (a *Auditor) still(ctx context.Context) error {
	err := a.guard.still(ctx)
	if errors.Is(err, errHeld) { // the next pass that deletes may be a while away
		a.ledger.hold(err.Error())
	}
	return err
}

// noteHeads enters, and tells of, what the gate said.
func (a *Auditor) noteHeads(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	a.ledger.holdFor(HoldRolledBack, errors.Is(err, catalog.ErrRolledBack), a.Clock())
	a.ledger.holdFor(HoldUnread, err != nil && !errors.Is(err, catalog.ErrRolledBack), a.Clock())
	a.tellRolledBack(ctx, err)
}

// reaped notes what a reap-check knows of an object's dead bytes.
func (a *Auditor) reaped(r *reap.Result) {
	f := find{at: a.Clock(), bytes: r.Tally.DeadBytes}
	switch r.Outcome {
	case reap.Confirmed:
		f.state = GarbageGrace
	case reap.Stands, reap.ArmedGC:
		f.state = GarbageInner
	case reap.Reaped, reap.GoneBefore, reap.GoneAlone:
		f.bytes = 0
	default:
		return
	}
	a.ledger.dead(r.Marker.ID, f)
}

// condemnedSlots asks how many bytes wait for a chain's grace, which a trim-check does not
// look at. Only those who watch pay for that verb; that it fails says nothing.
func (a *Auditor) condemnedSlots(ctx context.Context, m catalog.Marker, r *reap.TrimReport) {
	f := find{state: GarbageGrace, at: a.Clock()}
	if a.Around == nil {
		return
	}
	if r.Outcome == reap.TrimCondemned {
		plan, err := a.Catalog.DueSlots(ctx, r.Chain.Chain, slotsLooked)
		if err != nil {
			return
		}
		for i := range plan.Slots {
			f.bytes += plan.Slots[i].Bytes
		}
	}
	if r.Outcome != reap.TrimWaits {
		a.ledger.dead(m.ID, f)
	}
}

// slotsLooked bounds that look; a chain with more says less than it has.
const slotsLooked = 1000
