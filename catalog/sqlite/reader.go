package sqlite

import (
	"context"
	"errors"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

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
		return t.query("SELECT "+column.Streams+" FROM stream s WHERE s.name > ? ORDER BY s.name LIMIT ?", func(scan column.Scan) error {
			s, err := scanStream(scan)
			out = append(out, s)
			return err
		}, after, catalog.PageSize(limit))
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
	s, newest, err := t.streamBy("s.name = ?", r.Stream)
	if err != nil {
		return p, err
	}
	pl, err := catalog.NewPlanner(s, r, catalog.PageSize(r.Limit), func(e segment.Epoch) (segment.Pos, error) {
		if e == s.Last.Epoch {
			return newest, nil
		}
		return t.liveIn(&s, e)
	})
	if err != nil {
		return p, err
	}
	pl.TTL = settings.PlanTTL(t.now)
	// The ref that holds `from` begins at or below it.
	var epoch, first int64
	if _, err := t.one("SELECT epoch, first FROM ref WHERE stream = ? AND (epoch, first) <= (?, ?) ORDER BY epoch DESC, first DESC LIMIT 1",
		[]any{s.ID, int64(pl.From.Epoch), int64(pl.From.Seq)}, &epoch, &first); err != nil {
		return p, err
	}
	err = t.query(selectRefs+"WHERE r.stream = ? AND (r.epoch, r.first) >= (?, ?) AND (r.epoch, r.first) <= (?, ?) ORDER BY r.epoch, r.first", func(scan column.Scan) error {
		l, err := scanRef(scan)
		if err != nil {
			return err
		}
		full, err := pl.Take(&l)
		if err == nil && full {
			return errStop
		}
		return err
	}, s.ID, epoch, first, int64(pl.To.Epoch), int64(pl.To.Seq))
	return pl.Done(), err
}

// liveIn is where a stream's rows live from in the chain that an epoch has for it.
func (t *tx) liveIn(s *catalog.Stream, e segment.Epoch) (segment.Pos, error) {
	top, err := t.topology(e)
	if errors.Is(err, catalog.ErrNotFound) {
		return s.LiveFrom, nil
	}
	if err != nil {
		return segment.Pos{}, err
	}
	c := segment.Chain{Epoch: e, Shard: segment.ShardOf(s.Name, top.Shards)}
	row, err := t.chain(c)
	if errors.Is(err, catalog.ErrNotFound) {
		return s.LiveFrom, nil
	}
	return catalog.EffectiveLiveFrom(s.LiveFrom, c, row.WatermarkSeq), err
}

// Slots pages a chain's slot rows by position.
func (d *DB) Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) (out []catalog.SlotRow, err error) {
	err = d.read(ctx, "Slots", func(t *tx) (err error) {
		out, err = t.slots("SELECT "+column.Slots+" FROM slot s WHERE epoch = ? AND shard = ? AND id >= ? ORDER BY id LIMIT ?",
			c.Epoch, c.Shard, int64(from), catalog.PageSize(limit))
		return err
	})
	return out, err
}

// ChainRefs pages a chain's refs by their last row.
func (d *DB) ChainRefs(ctx context.Context, c segment.Chain, from segment.Seq, limit int) (out []catalog.Ref, err error) {
	err = d.read(ctx, "ChainRefs", func(t *tx) error {
		live, err := t.refs(selectRefs+"WHERE r.epoch = ? AND r.shard = ? AND r.last >= ? ORDER BY r.last LIMIT ?",
			c.Epoch, c.Shard, int64(from), catalog.PageSize(limit))
		out = catalog.PlainRefs(live)
		return err
	})
	return out, err
}
