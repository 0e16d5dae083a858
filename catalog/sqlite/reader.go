package sqlite

import (
	"context"
	"errors"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// pageMax bounds every page of rows, whatever was asked.
const pageMax = 10_000

func page(limit int) int {
	if limit <= 0 || limit > pageMax {
		return pageMax
	}
	return limit
}

// Stream is one stream by name.
func (d *DB) Stream(ctx context.Context, name string) (s catalog.Stream, err error) {
	err = d.read(ctx, "Stream", func(t *tx) (err error) {
		s, _, err = t.streamBy("s.name = ?", name)
		return err
	})
	return s, err
}

// Streams pages by name.
func (d *DB) Streams(ctx context.Context, after string, limit int) (out []catalog.Stream, err error) {
	err = d.read(ctx, "Streams", func(t *tx) error {
		return t.query("SELECT "+streamCols+" FROM stream s WHERE s.name > ? ORDER BY s.name LIMIT ?", func(scan scanFunc) error {
			s, err := scanStream(scan)
			out = append(out, s)
			return err
		}, after, page(limit))
	})
	return out, err
}

// Plan lists the refs that serve a span of a stream.
func (d *DB) Plan(ctx context.Context, r catalog.PlanRequest) (p catalog.Plan, err error) {
	err = d.read(ctx, "Plan", func(t *tx) (err error) {
		p, err = t.plan(r)
		return err
	})
	return p, err
}

func (t *tx) plan(r catalog.PlanRequest) (p catalog.Plan, err error) {
	settings, err := t.settings()
	if err != nil {
		return p, err
	}
	p.TTL = settings.PlanTTL(t.now)
	if p.Stream, p.LiveFrom, err = t.streamBy("s.name = ?", r.Stream); err != nil {
		return p, err
	}
	from, to := r.From, r.To
	if from.Less(p.LiveFrom) {
		from = p.LiveFrom
	}
	if to == (segment.Pos{}) {
		to = p.Stream.Last
	}
	// The ref that holds `from` begins at or below it.
	var epoch, first int64
	if _, err := t.one("SELECT epoch, first FROM ref WHERE stream = ? AND (epoch, first) <= (?, ?) ORDER BY epoch DESC, first DESC LIMIT 1",
		[]any{p.Stream.ID, int64(from.Epoch), int64(from.Seq)}, &epoch, &first); err != nil {
		return p, err
	}
	limit := page(r.Limit)
	last := from // of the ref before, or what the first one may begin behind
	err = t.query(selectRefs+"WHERE r.stream = ? AND (r.epoch, r.first) >= (?, ?) AND (r.epoch, r.first) <= (?, ?) ORDER BY r.epoch, r.first", func(scan scanFunc) error {
		l, err := scanRef(scan)
		if err != nil {
			return err
		}
		if l.LastPos().Less(from) || l.Dead(l.LiveFrom) {
			return nil // the head of the first, or what an older chain's watermark gave up
		}
		if !l.Follows(last, len(p.Refs) == 0) {
			given, err := t.givenUp(&p.Stream, l.PrevLast)
			if err != nil {
				return err
			}
			if p.LiveFrom.Less(given) { // reading begins behind it
				p.LiveFrom, p.Refs = given, nil
			}
		}
		if len(p.Refs) == limit {
			p.More = true
			return errStop
		}
		if len(p.Refs) == 0 && p.LiveFrom.Less(l.LiveFrom) {
			p.LiveFrom = l.LiveFrom
		}
		p.Refs = append(p.Refs, l.Ref)
		last = l.LastPos()
		return nil
	}, p.Stream.ID, epoch, first, int64(to.Epoch), int64(to.Seq))
	return p, err
}

// givenUp looks whether the stream's rows up to prev, which no ref serves, are at or
// below the watermark of the chain that they lay in, an older epoch's for instance. If
// so it is where that chain's rows live from; the zero Pos if not: then rows are missing.
func (t *tx) givenUp(s *catalog.Stream, prev segment.Pos) (segment.Pos, error) {
	top, err := t.topology(prev.Epoch)
	if errors.Is(err, catalog.ErrNotFound) {
		return segment.Pos{}, nil
	}
	if err != nil {
		return segment.Pos{}, err
	}
	c := segment.Chain{Epoch: prev.Epoch, Shard: segment.ShardOf(s.Name, top.Shards)}
	row, err := t.chain(c)
	if err != nil || row.WatermarkSeq < prev.Seq {
		return segment.Pos{}, err
	}
	return catalog.EffectiveLiveFrom(s.LiveFrom, c, row.WatermarkSeq), nil
}

// Slots pages a chain's slot rows by position.
func (d *DB) Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) (out []catalog.SlotRow, err error) {
	err = d.read(ctx, "Slots", func(t *tx) (err error) {
		out, err = t.slots("SELECT "+slotCols+" FROM slot s WHERE epoch = ? AND shard = ? AND id >= ? ORDER BY id LIMIT ?",
			c.Epoch, c.Shard, int64(from), page(limit))
		return err
	})
	return out, err
}

// ChainRefs pages a chain's refs by their last row.
func (d *DB) ChainRefs(ctx context.Context, c segment.Chain, from segment.Seq, limit int) (out []catalog.Ref, err error) {
	err = d.read(ctx, "ChainRefs", func(t *tx) error {
		live, err := t.refs(selectRefs+"WHERE r.epoch = ? AND r.shard = ? AND r.last >= ? ORDER BY r.last LIMIT ?",
			c.Epoch, c.Shard, int64(from), page(limit))
		out = plainRefs(live)
		return err
	})
	return out, err
}

func plainRefs(live []catalog.LiveRef) []catalog.Ref {
	out := make([]catalog.Ref, len(live))
	for i := range live {
		out[i] = live[i].Ref
	}
	return out
}
