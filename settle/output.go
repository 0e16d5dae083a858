package settle

import (
	"context"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// output is an upload under way: chunks in, parts out.
type output struct {
	w      *objstore.Writer
	chunks *segment.ObjectWriter
	job    *job
	budget Budget

	ahead objstore.CopySource // a run of chunks that the store is still to copy
	sent  int64               // bytes handed to w
	parts bool                // it is an upload in parts
}

// put appends a unit's chunks.
func (o *output) put(ctx context.Context, pieces []piece) error {
	for i := range pieces {
		p := &pieces[i]
		if o.job.kind == segment.ObjPack {
			p.meta.Generation = o.job.generation
		}
		if p.copy != nil {
			// The store moves the chunk; its checksums are carried forward.
			if err := o.copy(ctx, p.copy); err != nil {
				return err
			}
			if err := o.chunks.AddCopied(p.meta); err != nil {
				return err
			}
			continue
		}
		if err := o.copyAhead(ctx); err != nil {
			return err
		}
		if err := o.spend(ctx, int64(len(p.stored))); err != nil {
			return err
		}
		if err := o.chunks.AddStored(p.meta, p.stored); err != nil {
			return err
		}
	}
	return nil
}

// copy notes a range to be copied. What follows the one before in its source goes with
// it: one request moves a run of chunks, and only the first of them may have to fill up
// a short part.
func (o *output) copy(ctx context.Context, src *objstore.CopySource) error {
	a := &o.ahead
	if a.Key == src.Key && a.ETag == src.ETag && a.Offset+a.Length == src.Offset && a.Length+src.Length <= copyRunMax {
		a.Length += src.Length
		return nil
	}
	if err := o.copyAhead(ctx); err != nil {
		return err
	}
	o.ahead = *src
	return nil
}

// copyAhead has the store copy what was noted.
func (o *output) copyAhead(ctx context.Context) error {
	if o.ahead.Length == 0 {
		return nil
	}
	src := o.ahead
	o.ahead = objstore.CopySource{}
	if err := spend(ctx, o.budget, 0, 1+o.begin()); err != nil {
		return err
	}
	return o.w.CopyRange(src)
}

// spend asks for bytes on their way to the store, and for the parts that they fill.
func (o *output) spend(ctx context.Context, n int64) error {
	size := o.w.PartSize()
	parts := int((o.sent+n)/size - o.sent/size)
	o.sent += n
	if parts > 0 {
		parts += o.begin()
	}
	return spend(ctx, o.budget, n, parts)
}

// begin is the request that begins an upload in parts: one, the first time.
func (o *output) begin() int {
	if o.parts {
		return 0
	}
	o.parts = true
	return 1
}

// finish ends the object with its footer: all but the completing request.
func (o *output) finish(ctx context.Context) (*segment.Footer, error) {
	if err := o.copyAhead(ctx); err != nil {
		return nil, err
	}
	before := o.chunks.Offset()
	f, err := o.chunks.Finish()
	if err != nil {
		return nil, err
	}
	last := 1 // a plain PUT, or the complete
	if o.parts {
		last = 2 // and what stands in the last part
	}
	return f, spend(ctx, o.budget, o.chunks.Offset()-before, last)
}
