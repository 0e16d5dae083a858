package settle

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// assembled is an output that only the completing request is missing from.
type assembled struct {
	w      *objstore.Writer
	footer *segment.Footer
	failed []failure // members that are not in it
}

// errNothing: every member failed; there is nothing to publish.
var errNothing = errors.New("no member of this output could be read")

// assemble is step 3: one upload, its chunks in the order of the table. A pack
// goes on without a member that cannot be read; a stream object is its one member.
func (m *mover) assemble(ctx context.Context, a *announced) (*assembled, error) {
	w := m.dest.NewWriter(ctx, a.key, m.upload(ctx, a))
	out := &output{w: w, job: a.job, budget: m.Budget, chunks: segment.NewObjectWriter(w, &segment.Footer{
		Kind: a.job.kind, Object: m.NewUUID(), Created: m.Clock().UnixNano(), Writer: m.cfg.Writer,
	})}
	b := &assembled{w: w}
	err := m.encodeAll(ctx, m.units(a.job), func(e *encoded) error {
		if err := a.alive(m.Clock()); err != nil {
			return err
		}
		if e.err != nil {
			if a.job.kind != segment.ObjPack || ctx.Err() != nil {
				return e.err
			}
			m.note(ctx, a.key, e.err)
			b.failed = append(b.failed, failure{e.unit.member, e.err})
			return nil
		}
		return out.put(ctx, e.pieces)
	})
	if err == nil && len(b.failed) == len(a.job.members) {
		err = fmt.Errorf("%w: %w", errNothing, b.failed[0].err)
	}
	if err == nil {
		b.footer, err = out.finish(ctx)
	}
	if err != nil {
		m.note(ctx, a.key, err)
		return nil, giveUp(w, err)
	}
	return b, nil
}

// giveUp aborts an upload; its error is told and changes no verdict.
func giveUp(w *objstore.Writer, err error) error {
	if aerr := w.Abort(); aerr != nil {
		return fmt.Errorf("%w (its upload stands for the judge: %s)", err, aerr.Error())
	}
	return err
}
