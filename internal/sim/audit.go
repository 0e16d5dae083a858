package sim

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/settle"
)

// newAuditor wires the real duties of a process.
func (p *process) newAuditor(sweep bool) (*auditor.Auditor, error) {
	p.audits = true
	id := fmt.Sprintf("%s-%d", p.name, p.life)
	set, err := settle.New(settle.Deps{
		Catalog: p.catalog, Classes: p.classes, Clock: p.now, Logger: p.log(),
		NewNonce: func() string { return fmt.Sprintf("%s-%d", id, p.nonces.Add(1)) }, NewUUID: uuid.New,
	}, settle.Config{
		SettleAge: 3 * time.Second, SettleBytes: 4 << 10, StreamObjectMin: 600, BatchMax: 6 << 10, TailTarget: 6 << 10, PackFan: 3,
		Lease: 12 * time.Second, Backoff: time.Second, BackoffMax: 30 * time.Second, Workers: 1, Outputs: 4, Fetches: 16,
	})
	if err != nil {
		return nil, err
	}
	return auditor.New(auditor.Deps{
		ID: id, Catalog: p.catalog, Classes: p.classes, Settler: set, Logger: p.log(), Clock: p.now,
	}, auditor.Config{
		Interval: 5 * time.Second, Lease: 10 * time.Second, Concurrency: 1, Backoff: time.Second, BackoffMax: 30 * time.Second,
		SweepEvery: 2 * time.Minute, AbsorbEvery: 10 * time.Second, RetentionEvery: 20 * time.Second, Sweep: sweep, GCLeast: 300,
	})
}

// runAuditor runs what is due, rests, and so on. One thing at a time: which of two loops
// of a process comes first would be the Go scheduler's to say, and what they may do to each
// other two auditors do as well.
func (p *process) runAuditor() {
	defer p.sim.auditing.Done()
	a, err := p.newAuditor(false)
	if err != nil {
		p.sim.check.violated("start", "%s: %v", p.name, err)
		return
	}
	var sum auditor.Summary
	for p.pause(p.ctx, 3*time.Second+p.jitter(6*time.Second)) && !p.sim.ending() {
		_, err := a.Once(p.ctx, auditor.OnceOptions{})
		p.hit("auditor once " + kindOf(err))
		if p.alive() {
			sum = a.Summary()
		}
	}
	p.sim.summed(sum)
}

// ending says that auditors begin no other pass.
func (s *Sim) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.terms["auditors"]
}

// summed takes a summary's outcomes into the coverage.
func (s *Sim) summed(sum auditor.Summary) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for duty, d := range sum.Duties {
		for outcome, n := range d.Outcomes {
			s.cover["duty "+duty+": "+outcome] += n
		}
		for reason, n := range d.Kept {
			s.cover["kept "+duty+": "+reason] += n
		}
	}
}
