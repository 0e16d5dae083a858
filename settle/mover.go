package settle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// mover moves the jobs of one batch. What its jobs share is here; what one job
// knows is in announced.
type mover struct {
	Deps
	cfg      Config
	lease    *lease
	dest     *objstore.Store
	sources  *sources
	work     *semaphore.Weighted // raw bytes being encoded, over all jobs
	deadline time.Duration       // a job's, from its announce

	spare  sync.Pool // *[]byte: room for raw bytes
	packed sync.Pool // *[]byte: room for compressed ones
}

// outcome is what became of a job.
type outcome struct {
	moved               []catalog.Ref // refs that name the output now
	size                int64
	lost                bool // another job's object was described
	through, serverSide int64
	failed              []failure
}

type failure struct {
	member *member
	err    error
}

// fail leaves every member of j out.
func (o *outcome) fail(j *job, err error) {
	for _, mem := range j.members {
		o.failed = append(o.failed, failure{mem, err})
	}
}

// move runs the jobs of a batch side by side over one fetch of their sources.
func (s *Settler) move(ctx context.Context, b batch, deadline time.Duration, lease *lease) (outs []*outcome, err error) {
	m, err := s.newMover(deadline, lease)
	if err != nil {
		return nil, err
	}
	if err := m.read(ctx, b.jobs); err != nil { // 2
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { lease.hold(ctx, cancel) })
	beside.Go(func() { m.sources.fetchAll(ctx, m.cfg.Fetches) })
	defer func() {
		cancel(nil)
		beside.Wait()
		err = errors.Join(err, m.sources.close())
	}()
	outs = make([]*outcome, len(b.jobs))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(m.cfg.Outputs)
	for i, j := range b.jobs {
		outs[i] = &outcome{}
		if len(j.members) > 0 {
			g.Go(func() error { return m.run(gctx, j, outs[i]) })
		}
	}
	err = g.Wait()
	for i, j := range b.jobs {
		outs[i].failed = append(outs[i].failed, j.unread...)
	}
	if err != nil {
		return outs, errors.Join(err, lostLease(ctx))
	}
	return outs, nil
}

// lostLease is the reason why the batch ended, if that was it.
func lostLease(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, errLeaseLost) {
		return err
	}
	return nil
}

func (s *Settler) newMover(deadline time.Duration, lease *lease) (*mover, error) {
	set, err := s.Classes.Set(string(segment.ClassStandard))
	if err != nil {
		return nil, err
	}
	return &mover{
		Deps: s.Deps, cfg: s.cfg, lease: lease, dest: set.First(),
		sources: newSources(&s.Deps, &s.cfg), work: semaphore.NewWeighted(s.cfg.WorkBytes), deadline: deadline,
	}, nil
}

// run moves one job. It returns only what ends the batch; what fails the job, or a
// member of it, is in o.
func (m *mover) run(ctx context.Context, j *job, o *outcome) error {
	for n := uint32(0); n < maxRevisions; n++ {
		err := m.traced(ctx, j, j.revision+n, o)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errKeyRefused):
			m.Logger.Debug("deriving the next revision", "key", j.key(j.revision+n), "cause", err)
			continue
		case ends(ctx, err):
			return err
		}
		*o = outcome{through: o.through, serverSide: o.serverSide}
		o.fail(j, err)
		return nil
	}
	o.fail(j, fmt.Errorf("%w: %d revisions from %s on are taken: see `strandline explain`", errKeyRefused, maxRevisions, j.key(j.revision)))
	return nil
}

// try is the rewrite commit protocol for one key, a step a line.
func (m *mover) try(ctx context.Context, j *job, revision uint32, o *outcome) error {
	a, err := m.announce(ctx, j, revision) // 1; 2, read, is shared by the batch
	if err != nil {
		return err
	}
	// The clock of the hooks decides; this one ends waits, and retries of the store.
	jctx, cancel := context.WithTimeoutCause(ctx, m.deadline, errDeadline)
	defer cancel()
	d, err := m.publish(jctx, a, o) // 3, assemble, and 4
	if err == nil {
		err = m.commit(jctx, a, d, o) // 5
	}
	if err != nil {
		m.drop(ctx, a)
		if jctx.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", context.Cause(jctx), err)
		}
	}
	return err
}

// ends says that the batch cannot go on: its ctx is over, the lease is lost, or the
// catalog cannot answer. What stands then is found by the next pass.
func ends(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, errLeaseLost) {
		return true
	}
	for _, kind := range []error{catalog.ErrUnavailable, catalog.ErrAmbiguous, catalog.ErrCorrupt, catalog.ErrReadOnly, catalog.ErrNoSpace} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
