package settle

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// commit is step 5: all runs of the output in one transaction, validate or
// abandon. Members whose rows the object does not prove to hold stay out.
func (m *mover) commit(ctx context.Context, a *announced, d *durable, o *outcome) error {
	runs, failed := m.runs(ctx, a, d)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if len(runs) == 0 {
		return nothing(failed)
	}
	req := catalog.Rewrite{
		Key: a.key, Nonce: a.nonce, Runs: runs, UploadsGone: a.uploadsGone(),
		Next: catalog.Next{TailTarget: m.cfg.TailTarget, PackFan: m.cfg.PackFan},
	}
	var done catalog.Rewritten
	// A lost answer is asked for again: refs that name the key are the proof (K13).
	err := again(ctx, func() (err error) {
		done, err = m.Catalog.CommitRewrite(ctx, req)
		return err
	})
	if err != nil {
		// A conflict abandons: another job, or a trim, was here first. The output stays
		// under its intent.
		return fmt.Errorf("commit %s: %w", a.key, err)
	}
	// A crash here leaves the slots' markers: the re-run finds no ref that names them
	// and resolves.
	o.moved, o.size, o.lost, o.failed = done.Committed, d.size, !d.ours, append(failed, d.failed...)
	return nil
}

// runs describes every run of every member that is in the output.
func (m *mover) runs(ctx context.Context, a *announced, d *durable) ([]catalog.Run, []failure) {
	out := make(map[*member]bool, len(d.failed))
	for _, f := range d.failed {
		out[f.member] = true
	}
	var runs []catalog.Run
	var failed []failure
	for _, mem := range a.job.members {
		if out[mem] {
			continue
		}
		mine, err := m.runsOf(ctx, a, d, mem)
		if err != nil {
			m.note(ctx, a.key, err)
			failed = append(failed, failure{mem, err})
			continue
		}
		runs = append(runs, mine...)
	}
	return runs, failed
}

// runsOf describes one member: all of its runs that the object holds, or an error.
// Rows that a winner does not hold are the next pass's, and no failure.
func (m *mover) runsOf(ctx context.Context, a *announced, d *durable, mem *member) ([]catalog.Run, error) {
	var runs []catalog.Run
	for _, r := range mem.runs {
		run, err := m.describe(ctx, a, d, mem, r)
		if errors.Is(err, errUncovered) && !d.ours {
			continue
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// nothing decides about an object that no run can use: a key whose object is
// somebody's, sound and of no use is passed over for the next revision.
func nothing(failed []failure) error {
	if len(failed) > 0 {
		return failed[0].err
	}
	return fmt.Errorf("%w: %w", errKeyRefused, errUncovered)
}

// note records corruption where an operator looks. Transient faults are not news.
func (m *mover) note(ctx context.Context, key string, err error) {
	damaged := segment.IsStructural(err) || errors.Is(err, objstore.ErrCorrupt)
	if ctx.Err() != nil || !damaged || errors.Is(err, objstore.ErrAmbiguous) {
		return
	}
	m.Logger.Error("settle met corruption; nothing was swapped", "key", key, "error", err)
	if aerr := m.Catalog.Audit(ctx, "corruption", key, err.Error()); aerr != nil {
		m.Logger.Error("the corruption is not in the audit table", "key", key, "error", aerr)
	}
}
