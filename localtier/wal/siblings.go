package wal

import (
	"runtime"
	"time"
)

// The sibling wait. In a closed loop the producers that one fdatasync released
// come back within microseconds, and the next fdatasync would begin with the
// first of them: then two halves of the producers take turns, and each waits for
// the other's sync. So after a group the committer waits a moment for as many
// frames as were in flight. It is worth it only if they do come, so every wait
// that did not fill makes the next one rarer.
const (
	// siblingBytes is above what a group costs more in bytes than in its sync.
	siblingBytes = 256 << 10
	// siblingSyncMin: a faster sync is not worth waiting for.
	siblingSyncMin = 20 * time.Microsecond
	// siblingSkipMax is how many groups go without a wait after waits in vain: at
	// open-loop loads it costs less than one per cent of a core.
	siblingSkipMax = 255
	// siblingYields bounds a wait whatever the clock says.
	siblingYields = 4096
)

// siblings is what the committer learned of its producers. Only it may touch it.
type siblings struct {
	released int   // frames of the last group
	bytes    int64 // of the last group
	lastSync time.Duration
	penalty  int // groups to skip after the next wait in vain
	skip     int // groups still to skip
}

// group notes what is about to be made durable.
func (s *siblings) group(runs []*run) {
	s.released, s.bytes = 0, 0
	for _, r := range runs {
		s.released += len(r.marks)
		s.bytes += int64(len(r.buf))
	}
}

// target is how many queued frames the next group should hold before it is
// written; 0 is not to wait. queued are there already.
func (s *siblings) target(queued int) int {
	n := queued + s.released
	switch {
	case s.released == 0 || n < 2 || s.bytes > siblingBytes || s.lastSync < siblingSyncMin:
		return 0
	case s.skip > 0:
		s.skip--
		return 0
	}
	return n
}

// learn takes in whether a wait filled.
func (s *siblings) learn(filled bool) {
	if filled {
		s.penalty, s.skip = 0, 0
		return
	}
	s.penalty = min(2*s.penalty+1, siblingSkipMax)
	s.skip = s.penalty
}

// gather waits for the released producers, at most half of what the last sync
// took. It yields and does not sleep: a timer of this kernel may be a millisecond
// late. mu is held, and let go meanwhile.
func (l *Log) gather() {
	if l.cfg.BatchWindow > 0 || l.urgent || l.closing {
		return
	}
	n := l.siblings.target(int(l.queued.Load()))
	l.siblings.released = 0
	if n == 0 {
		return
	}
	l.mu.Unlock()
	filled := l.yieldUntil(n, l.siblings.lastSync/2)
	l.siblings.learn(filled)
	l.metrics.waited(filled)
	l.mu.Lock()
}

// yieldUntil says whether n frames were queued in time.
func (l *Log) yieldUntil(n int, limit time.Duration) bool {
	begin := time.Now() // a duration of this moment, not a time of the log
	for range siblingYields {
		if int(l.queued.Load()) >= n {
			return true
		}
		if len(l.hurry) > 0 || time.Since(begin) > limit {
			return false
		}
		runtime.Gosched()
	}
	return false
}
