package settings

import (
	"errors"
	"fmt"
	"time"
)

// Margins are the safety margins of a deployment. Two are set; the others follow from them,
// so that no set of them can contradict itself:
//
//	read grace ──/2──> plan TTL ──=──> a cached footer's life
//	orphan grace ──/2──> a job's deadline
type Margins struct {
	ReadGrace   time.Duration // nothing is deleted sooner after its death (I4)
	OrphanGrace time.Duration // an intent is judged when it is so old
}

// PlanTTL is how long a reader may rely on a plan: what it names stands twice as long.
func (m Margins) PlanTTL() time.Duration { return m.ReadGrace / 2 }

// FooterLife is how long a reader keeps a footer: no longer than the plan that named it.
func (m Margins) FooterLife() time.Duration { return m.PlanTTL() }

// JobDeadline is how long a mover may work from its announce: it has given up long before
// the judge comes for its output.
func (m Margins) JobDeadline() time.Duration { return m.OrphanGrace / 2 }

// The least that margins make sense with.
const (
	LeastReadGrace   = time.Second
	LeastOrphanGrace = 5 * time.Second
)

// Validate reports all faults at once.
func (m Margins) Validate() error {
	var errs []error
	if m.ReadGrace < LeastReadGrace {
		errs = append(errs, fmt.Errorf("--auditor-read-grace %v: give %v or more", m.ReadGrace, LeastReadGrace))
	}
	if m.OrphanGrace < LeastOrphanGrace {
		errs = append(errs, fmt.Errorf("--auditor-orphan-grace %v: give %v or more", m.OrphanGrace, LeastOrphanGrace))
	}
	if m.OrphanGrace < m.ReadGrace {
		errs = append(errs, fmt.Errorf("--auditor-orphan-grace %v: give at least the read grace, %v: an output is readable by plans that long", m.OrphanGrace, m.ReadGrace))
	}
	return errors.Join(errs...)
}

// usualSlot is a slot of a segment of the default size, which is what a job has to move.
const usualSlot = 64 << 20

// passes: a byte goes into the process and out of it.
const passes = 2

// LeastBudget is the bytes a second that one auditor needs to move a usual slot within a
// job's deadline; below it every job would give up, for ever.
func (m Margins) LeastBudget() int64 {
	return (passes*usualSlot*int64(time.Second) + int64(m.JobDeadline()) - 1) / int64(m.JobDeadline())
}

// LeastOrphanGraceFor is the orphan grace with which a budget will do.
func LeastOrphanGraceFor(budget int64) time.Duration {
	d := time.Duration(2 * passes * usualSlot / float64(budget) * float64(time.Second))
	return (d + time.Second - 1).Truncate(time.Second)
}

// CheckBudget refuses a budget, in bytes a second for all auditors, that a job cannot live
// on. 0 is no bound.
func (m Margins) CheckBudget(bytes int64) error {
	if bytes == 0 || bytes >= m.LeastBudget() {
		return nil
	}
	mib := int64(1 << 20)
	return fmt.Errorf("--budget-bytes %d: with an orphan grace of %v a job has %v, and a slot of 64MiB passes through an auditor twice: give --budget-bytes %dMiB or more, or an orphan grace of %v or more",
		bytes, m.OrphanGrace, m.JobDeadline(), (m.LeastBudget()+mib-1)/mib, LeastOrphanGraceFor(bytes))
}
