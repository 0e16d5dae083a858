package auditbench

import (
	"context"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/settle"
)

// slotStreams is how many streams seal a segment.
const slotStreams = 50_000

// streamsPart settles batches of equal size, of few and of many streams.
func (b *bench) streamsPart(ctx context.Context, r *Report) error {
	for _, n := range b.o.Streams {
		out := Streams{Streams: n, Batches: b.o.Batches}
		a := newAuthor(time.Now)
		err := b.within(ctx, fmt.Sprintf("streams-%d", n), a, func(t *tier) error { return b.settleStreams(ctx, t, a, &out) })
		if err != nil {
			return fmt.Errorf("%d streams: %w", n, err)
		}
		r.Streams = append(r.Streams, out)
	}
	return nil
}

func (b *bench) settleStreams(ctx context.Context, t *tier, a *author, out *Streams) error {
	// The last batch arms the merge of all. Fewer packs a merge than the default is dearer:
	// what is measured here is no less than what many batches would take.
	settler, err := t.settler(settle.Config{PackFan: min(max(b.o.Batches, 2), settle.DefaultPackFan)})
	if err != nil {
		return err
	}
	return b.settleStreamsBy(ctx, t, a, settler, out)
}

func (b *bench) settleStreamsBy(ctx context.Context, t *tier, a *author, settler *settle.Settler, out *Streams) (err error) {
	var whole spent
	for range b.o.Batches {
		b.step("settle %d streams", out.Streams)
		if err := b.publishEven(ctx, t, a, out.Streams); err != nil {
			return err
		}
		for _, s := range []struct {
			run  func() (moved, error)
			tell func(moved, spent)
		}{
			{func() (moved, error) { return t.settle(ctx, settler) }, out.settled},
			{func() (moved, error) { return t.markers(ctx, settler, catalog.DutyTailFill) }, out.filled},
			{func() (moved, error) { return t.markers(ctx, settler, catalog.DutyPackMerge) }, out.merged},
		} {
			var sum moved
			took, err := t.measure(func() (err error) {
				sum, err = s.run()
				return err
			})
			if err != nil {
				return err
			}
			s.tell(sum, took)
			whole = whole.plus(took)
		}
	}
	out.sum(whole)
	out.Objects, err = t.named(ctx)
	return err
}

// publishEven puts one batch of slots.
func (b *bench) publishEven(ctx context.Context, t *tier, a *author, streams int) error {
	slots := (streams + slotStreams - 1) / slotStreams
	for i := range slots {
		s, err := a.seal(a.even(i*streams/slots, (i+1)*streams/slots, b.o.Batch/int64(slots)))
		if err != nil {
			return err
		}
		if err := t.publish(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (o *Streams) settled(m moved, _ spent) {
	o.RawBytes += m.raw
	o.StoredBytes += m.stored
}

func (o *Streams) filled(m moved, s spent) {
	o.TailFills += m.runs
	o.FillPutLike += s.requests.PutLike()
	o.FillGets += s.gets()
}

func (o *Streams) merged(m moved, s spent) {
	o.PackMerges += m.runs
	o.MergePutLike += s.requests.PutLike()
	o.MergeGets += s.gets()
}

func (o *Streams) sum(s spent) {
	o.see(s)
	o.PutLike, o.Gets = s.requests.PutLike(), s.gets()
	gb := float64(o.RawBytes) / 1e9
	o.PutLikePerGB, o.GetsPerGB = float64(o.PutLike)/gb, float64(o.Gets)/gb
	o.RequestsPerGB = float64(s.requests.Total()) / gb
	o.RawMBPerSecond = float64(o.RawBytes) / 1e6 / s.seconds
}

// named is how many objects refs name.
func (t *tier) named(ctx context.Context) (n int, err error) {
	const page = 10_000
	last := ""
	for after := (*catalog.Ref)(nil); ; {
		refs, err := t.db.RefsByKey(ctx, after, page)
		if err != nil || len(refs) == 0 {
			return n, err
		}
		for i := range refs {
			if refs[i].Key != last {
				n, last = n+1, refs[i].Key
			}
		}
		after = &refs[len(refs)-1].Ref
	}
}
