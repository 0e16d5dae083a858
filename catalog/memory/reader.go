package memory

import (
	"context"

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
			if len(out) == page(limit) {
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
	p.TTL = t.settings.PlanTTL(t.now)
	s, err := t.streamNamed(r.Stream)
	if err != nil {
		return p, err
	}
	p.Stream, p.LiveFrom = s.Stream, t.liveFrom(s)
	from, to := r.From, r.To
	if from.Less(p.LiveFrom) {
		from = p.LiveFrom
	}
	if to == (segment.Pos{}) {
		to = s.Last
	}
	last := from // of the ref before, or what the first one may begin behind
	for k, ref := range t.ref.from(t.holding(s.ID, from)) {
		if k.stream != s.ID || to.Less(ref.FirstPos()) {
			break
		}
		l, err := t.live(ref)
		if err != nil {
			return p, err
		}
		if l.LastPos().Less(from) || l.Dead(l.LiveFrom) {
			continue // the head of the first, or what an older chain's watermark gave up
		}
		if !l.Follows(last, len(p.Refs) == 0) {
			given, err := t.givenUp(s, l.PrevLast)
			if err != nil {
				return p, err
			}
			if p.LiveFrom.Less(given) { // reading begins behind it
				p.LiveFrom, p.Refs = given, nil
			}
		}
		if p.More = len(p.Refs) == page(r.Limit); p.More {
			break
		}
		if len(p.Refs) == 0 && p.LiveFrom.Less(l.LiveFrom) {
			p.LiveFrom = l.LiveFrom
		}
		p.Refs = append(p.Refs, l.Ref)
		last = l.LastPos()
	}
	return p, nil
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

// givenUp looks whether the stream's rows up to prev, which no ref serves, are at or
// below the watermark of the chain that they lay in, an older epoch's for instance. If
// so it is where that chain's rows live from; the zero Pos if not: then rows are missing.
func (t *tx) givenUp(s *streamRow, prev segment.Pos) (segment.Pos, error) {
	top, ok := t.topology.get(prev.Epoch)
	if !ok {
		return segment.Pos{}, nil
	}
	c := segment.Chain{Epoch: prev.Epoch, Shard: segment.ShardOf(s.Name, top.Shards)}
	row, err := t.row(c)
	if err != nil || row.WatermarkSeq < prev.Seq {
		return segment.Pos{}, err
	}
	return catalog.EffectiveLiveFrom(s.LiveFrom, c, row.WatermarkSeq), nil
}

// Slots pages a chain's slot rows by position.
func (c *Catalog) Slots(ctx context.Context, ch segment.Chain, from segment.ID, limit int) (out []catalog.SlotRow, err error) {
	err = c.read(ctx, "Slots", func(t *tx) error {
		for s := range (View{t.tables}).Slots(ch, from) {
			if len(out) == page(limit) {
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
			if len(out) == page(limit) {
				break
			}
			out = append(out, *r)
		}
		return nil
	})
	return out, err
}
