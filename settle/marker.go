package settle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
)

// Why a marker had nothing to move.
const (
	IdleDead    = "no ref names the object alive: its reap-check takes over"
	IdleTail    = "the object is no tail to fill: nothing settled follows it, too little does, or it has its size"
	IdlePacks   = "no two packs of this generation, one after the other, fit a batch"
	IdleTrimmed = "a trim took all of it meanwhile"
)

// debt is what a marker owes, as its policy's plan says.
type debt struct {
	jobs []*job
	idle string // why there are no jobs
}

// order is what every plan of a marker goes by.
type order struct {
	holder catalog.Holder
	bound  int64 // stored bytes of a batch
	cfg    *Config
}

// RunMarker serves a marker of the policies gc, tail-fill and pack-merge as owner:
// it moves what the marker owes, commits, and resolves the marker at its version.
// With Report.Idle the marker was resolved, or its lease is another's (IdleLease), and
// nothing was moved. After an error, or with Report.Failures, the marker stands, and the
// caller postpones it.
func (s *Settler) RunMarker(ctx context.Context, m catalog.Marker, owner string) (Report, error) {
	holder := catalog.Holder{Duty: m.Duty, ID: m.ID, Owner: owner}
	lease := &lease{cat: s.Catalog, holder: holder, length: s.cfg.Lease, clock: s.Clock}
	if err := lease.take(ctx); err != nil {
		if errors.Is(err, errLeaseLost) {
			return Report{Idle: IdleLease}, nil
		}
		return Report{}, fmt.Errorf("%s %s: take the lease: %w", m.Duty, m.ID, err)
	}
	rep, err := s.pay(ctx, m, lease)
	if err != nil {
		err = fmt.Errorf("%s %s: %w", m.Duty, m.ID, err)
	}
	// A crash before the release leaves the marker to nobody for one lease.
	return rep, errors.Join(err, lease.release(ctx))
}

// Explain says what a marker's run would do now. It changes nothing.
func (s *Settler) Explain(ctx context.Context, m catalog.Marker) (string, error) {
	deadline, err := s.jobDeadline(ctx)
	if err != nil {
		return "", err
	}
	d, err := s.owed(ctx, m, order{catalog.Holder{Duty: m.Duty, ID: m.ID}, s.bound(deadline), &s.cfg})
	if err != nil || d.idle != "" {
		return d.idle, err
	}
	refs, stored := 0, int64(0)
	for _, j := range d.jobs {
		j.each(func(r *catalog.Ref) { refs, stored = refs+1, stored+r.Stored })
	}
	return fmt.Sprintf("%d bytes of %d refs would move into %d objects, %s the first", stored, refs, len(d.jobs), d.jobs[0].key(d.jobs[0].revision)), nil
}

// pay runs one batch of a marker under its lease.
func (s *Settler) pay(ctx context.Context, m catalog.Marker, lease *lease) (Report, error) {
	before := s.counters()
	deadline, err := s.jobDeadline(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("read the safety margins: %w", err)
	}
	d, err := s.owed(ctx, m, order{lease.holder, s.bound(deadline), &s.cfg})
	if err != nil {
		return Report{}, err
	}
	if d.idle != "" {
		return s.idle(ctx, m, d.idle)
	}
	var rep Report
	outs, err := s.move(ctx, batch{jobs: d.jobs}, deadline, lease)
	for _, o := range outs {
		rep.add(o)
	}
	rep.Requests = s.counters().Sub(before)
	if err != nil {
		return rep, err
	}
	s.Logger.Info("served a marker", "duty", string(m.Duty), "id", m.ID, "rows", rep.Rows, "outputs", rep.Outputs,
		"through", rep.Through, "server_side", rep.ServerSide, "members_failed", len(rep.Failures))
	if len(rep.Failures) > 0 {
		return rep, nil // it stands, with the reason that its caller gives it
	}
	if rep.Outputs == 0 {
		rep.Idle = IdleTrimmed
	}
	// A crash here leaves the marker due: the re-run finds nothing owed, and resolves.
	return rep, s.discharge(ctx, m, &rep)
}

// owed asks the marker's policy.
func (s *Settler) owed(ctx context.Context, m catalog.Marker, o order) (debt, error) {
	switch m.Duty {
	case catalog.DutyGC:
		return s.owedGC(ctx, m.ID, o)
	case catalog.DutyTailFill:
		return s.owedTail(ctx, m.ID, o)
	case catalog.DutyPackMerge:
		return s.owedMerge(ctx, m, o)
	}
	return debt{}, fmt.Errorf("%w: no policy of the mover serves duty %q", catalog.ErrInvalid, string(m.Duty))
}

// idle resolves a marker that owes nothing. An object that nothing keeps alive has to be
// watched, whoever looked last: its reap-check is armed first, as after any last ref.
func (s *Settler) idle(ctx context.Context, m catalog.Marker, why string) (Report, error) {
	if why == IdleDead {
		grace, err := s.readGrace(ctx)
		if err != nil {
			return Report{}, fmt.Errorf("read the safety margins: %w", err)
		}
		err = again(ctx, func() error { return s.Catalog.Arm(ctx, catalog.DutyReapCheck, m.ID, m.Class, grace) })
		if err != nil {
			return Report{}, fmt.Errorf("arm the reap-check: %w", err)
		}
		// A crash here leaves both markers: the second arm collapses onto the first.
	}
	rep := Report{Idle: why}
	return rep, s.discharge(ctx, m, &rep)
}

// discharge ends a marker at its version: one that was armed during the run stays due
// (03 §6). A batch that described another job's object may have moved less than it
// owed: its marker is due at once.
func (s *Settler) discharge(ctx context.Context, m catalog.Marker, rep *Report) error {
	err := again(ctx, func() error {
		if rep.Lost > 0 {
			return s.Catalog.Postpone(ctx, m.MarkerRef, 0, "")
		}
		return s.Catalog.Resolve(ctx, m.MarkerRef)
	})
	if err != nil {
		return fmt.Errorf("resolve the marker: %w", err)
	}
	if rep.Lost == 0 {
		rep.Resolved = 1
	}
	return nil
}

// readGrace is how long a reader may still want what just died (I4).
func (s *Settler) readGrace(ctx context.Context) (time.Duration, error) {
	settings, err := s.Catalog.Settings(ctx)
	if err != nil {
		return 0, err
	}
	now, err := s.Catalog.Now(ctx)
	return settings.ReadGrace.Deleting(now, catalog.DefaultReadGrace), err
}
