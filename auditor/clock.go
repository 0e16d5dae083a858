package auditor

import (
	"fmt"
	"time"
)

// clockLimit is the step or skew from which a clock is not trusted with deletes.
const clockLimit = 5 * time.Minute

// storeResolution is what a store's Modified may be off by: S3 gives whole seconds.
const storeResolution = time.Second

// reading is one look at the database's clock, between two of the process's.
type reading struct {
	database      time.Time
	before, after time.Time // monotonic
}

// clockState is what is remembered between deleting passes. Its zero value has
// seen nothing.
type clockState struct {
	last      reading
	heldUntil time.Time // by the process's clock; zero: not held
	why       string
}

// judgeClock holds database time against the process's monotonic clock since the
// last pass. Every age is judged by the database's clock, so one that stepped
// ahead would end graces early, and one that was stopped or set back may yet be
// corrected by a jump: after either, no delete for one grace. It is pure; a why
// that is not empty forbids deletes.
func judgeClock(s clockState, r reading, grace time.Duration) (clockState, string) {
	if !s.last.database.IsZero() {
		passed := r.database.Sub(s.last.database)
		// The database was read somewhere between before and after, both times.
		least, most := r.before.Sub(s.last.after), r.after.Sub(s.last.before)
		step := max(passed-most, least-passed, 0)
		if step > clockTolerance(grace) {
			s.heldUntil = r.after.Add(grace)
			s.why = fmt.Sprintf("the database's clock passed %v while this process saw %v to %v", passed, least, most)
		}
	}
	s.last = r
	return s.verdict(r.after)
}

// write is the time that the store gave a write, and the database's around it.
type write struct{ store, before, after time.Time }

// judgeStore holds the store's clock against the database's. It is pure.
func judgeStore(s clockState, w write, now time.Time, grace time.Duration) (clockState, string) {
	if skew := max(w.store.Sub(w.after), w.before.Sub(w.store)); skew > clockTolerance(grace)+storeResolution {
		s.heldUntil = now.Add(grace)
		s.why = fmt.Sprintf("the store's clock says %s, the database's %s", w.store.UTC().Format(time.RFC3339), w.after.UTC().Format(time.RFC3339))
	}
	return s.verdict(now)
}

func (s clockState) verdict(now time.Time) (clockState, string) {
	if s.heldUntil.IsZero() || !now.Before(s.heldUntil) {
		s.heldUntil, s.why = time.Time{}, ""
		return s, ""
	}
	return s, s.why
}

// clockTolerance is 5 minutes, or half the grace if that is less.
func clockTolerance(grace time.Duration) time.Duration { return min(clockLimit, grace/2) }
