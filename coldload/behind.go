package coldload

import (
	"context"
	"errors"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// accepted is what a read of a ref ends in that an operator gave up as lost.
func accepted(ref *catalog.Ref, from segment.Seq) error {
	return &ReadError{
		Stream: ref.Stream, At: segment.Pos{Epoch: ref.Epoch, Seq: max(ref.First, from)}, First: ref.LastPos().Next(),
		Kind: ErrLost, Detail: "accepted as lost by an operator",
	}
}

// behind names where a read goes on behind rows that were accepted as lost: one span may
// follow another. Any other error stays as it is. If the catalog does not answer, the end of
// the first span is named, which is right but for what follows it.
func (r *Reader) behind(ctx context.Context, err error) error {
	var lost *ReadError
	if !errors.As(err, &lost) || !lost.Accepted() {
		return err
	}
	for more := true; more; {
		p, planErr := r.catalog.Plan(ctx, catalog.PlanRequest{Stream: lost.Stream, From: lost.First, Limit: r.cfg.PlanRefs})
		if planErr != nil {
			return err
		}
		lost.First = later(lost.First, p.LiveFrom)
		for i := range p.Refs {
			if p.Refs[i].Kind != catalog.RefLost {
				return err
			}
			lost.First = p.Refs[i].LastPos().Next()
		}
		more = p.More && len(p.Refs) > 0
	}
	return err
}
