package memory

import (
	"context"
	"errors"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Stream is one stream by name.
func (c *Catalog) Stream(ctx context.Context, name string) (out catalog.Stream, err error) {
	err = c.read(ctx, "Stream", func(t *tx) error {
		s, err := t.streamNamed(name)
		if err == nil {
			out = s.Stream
		}
		return err
	})
	return out, err
}

// Streams pages by name.
func (c *Catalog) Streams(ctx context.Context, after string, limit int) (out []catalog.Stream, err error) {
	err = c.read(ctx, "Streams", func(t *tx) error {
		for name, s := range t.streamName.from(after) {
			if name == after {
				continue
			}
			if len(out) == catalog.PageSize(limit) {
				break
			}
			out = append(out, s.Stream)
		}
		return nil
	})
	return out, err
}

// Plan lists the refs that serve a span of a stream.
func (c *Catalog) Plan(ctx context.Context, r catalog.PlanRequest) (p catalog.Plan, err error) {
	err = c.read(ctx, "Plan", func(t *tx) (err error) {
		p, err = t.plan(r)
		return err
	})
	return p, err
}

func (t *tx) plan(r catalog.PlanRequest) (p catalog.Plan, err error) {
	s, err := t.streamNamed(r.Stream)
	if err != nil {
		return p, err
	}
	pl, err := catalog.NewPlanner(s.Stream, r, catalog.PageSize(r.Limit), func(e segment.Epoch) (segment.Pos, error) { return t.liveIn(s, e) })
	if err != nil {
		return p, err
	}
	pl.TTL = t.settings.PlanTTL(t.now)
	for k, ref := range t.ref.from(t.holding(s.ID, pl.From)) {
		if k.stream != s.ID || pl.To.Less(ref.FirstPos()) {
			break
		}
		l, err := t.live(ref)
		if err != nil {
			return p, err
		}
		full, err := pl.Take(&l)
		if err != nil {
			return p, err
		}
		if full {
			break
		}
	}
	return pl.Done(), nil
}

// holding is where to look for the ref that holds a position: it begins at or below it.
func (t *tx) holding(stream int64, at segment.Pos) refKey {
	for k := range t.ref.below(refKey{stream, at.Epoch, at.Seq + 1}) {
		if k.stream == stream {
			return k
		}
		break
	}
	return refKey{stream: stream}
}

// liveIn is where a stream's rows live from in the chain that an epoch has for it.
func (t *tx) liveIn(s *streamRow, e segment.Epoch) (segment.Pos, error) {
	if e == s.Last.Epoch {
		return t.liveFrom(s), nil
	}
	top, ok := t.topology.get(e)
	if !ok {
		return s.LiveFrom, nil
	}
	c := segment.Chain{Epoch: e, Shard: segment.ShardOf(s.Name, top.Shards)}
	row, err := t.row(c)
	if errors.Is(err, catalog.ErrNotFound) {
		return s.LiveFrom, nil
	}
	return catalog.EffectiveLiveFrom(s.LiveFrom, c, row.WatermarkSeq), err
}

// Slots pages a chain's slot rows by position.
func (c *Catalog) Slots(ctx context.Context, ch segment.Chain, from segment.ID, limit int) (out []catalog.SlotRow, err error) {
	err = c.read(ctx, "Slots", func(t *tx) error {
		for s := range (View{t.tables}).Slots(ch, from) {
			if len(out) == catalog.PageSize(limit) {
				break
			}
			out = append(out, *s)
		}
		return nil
	})
	return out, err
}

// ChainRefs pages a chain's refs by their last row.
func (c *Catalog) ChainRefs(ctx context.Context, ch segment.Chain, from segment.Seq, limit int) (out []catalog.Ref, err error) {
	err = c.read(ctx, "ChainRefs", func(t *tx) error {
		for r := range t.chainRefs(ch, from) {
			if len(out) == catalog.PageSize(limit) {
				break
			}
			out = append(out, *r)
		}
		return nil
	})
	return out, err
}
