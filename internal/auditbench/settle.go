package auditbench

import (
	"context"
	"fmt"
	"time"

	"github.com/strandline/strandline/settle"
)

// segmentBytes is the default size of a segment.
const segmentBytes = 64 << 20

// settlePart settles the same slots again and again, each time in a tier of its own.
func (b *bench) settlePart(ctx context.Context, r *Report) error {
	a := newAuthor(time.Now)
	var slots []*sealed
	per := min(segmentBytes, max(b.o.RawBytes/4, lineBytes))
	for left := b.o.RawBytes; left > 0; left -= per {
		s, err := a.seal(a.source(per))
		if err != nil {
			return err
		}
		slots = append(slots, s)
	}
	out := &Settle{}
	var all []spent
	for round := range b.o.Rounds {
		b.step("settle")
		s, err := b.settleOnce(ctx, fmt.Sprintf("settle-%d", round), a, slots, out)
		if err != nil {
			return err
		}
		out.see(s)
		all = append(all, s)
	}
	seconds := median(all, func(s spent) float64 { return s.seconds })
	out.CPUSeconds = median(all, func(s spent) float64 { return s.cpuSeconds })
	out.RawMBPerSecond = float64(out.RawBytes) / 1e6 / seconds
	out.RowsPerSecond = float64(out.Rows) / seconds
	out.CPUSecondsPerRawGB = out.CPUSeconds / (float64(out.RawBytes) / 1e9)
	out.PutLike, out.Gets = all[0].requests.PutLike(), all[0].gets()
	r.Settle = out
	return nil
}

func (b *bench) settleOnce(ctx context.Context, name string, a *author, slots []*sealed, out *Settle) (s spent, err error) {
	err = b.within(ctx, name, a, func(t *tier) error {
		if err := t.publish(ctx, slots...); err != nil {
			return err
		}
		settler, err := t.settler(settle.Config{})
		if err != nil {
			return err
		}
		var sum moved
		s, err = t.measure(func() (err error) {
			sum, err = t.settle(ctx, settler)
			return err
		})
		if err == nil && sum.slots != len(slots) {
			err = fmt.Errorf("%d of %d slots were settled", sum.slots, len(slots))
		}
		out.Slots, out.RawBytes, out.StoredBytes, out.Rows, out.Outputs = sum.slots, sum.raw, sum.stored, sum.rows, sum.outputs
		return err
	})
	return s, err
}
