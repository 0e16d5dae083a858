package postgres

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// Plan lists the refs that serve a span of a stream: three round trips, whatever their
// number, on one snapshot.
func (d *DB) Plan(ctx context.Context, r catalog.PlanRequest) (p catalog.Plan, err error) {
	err = d.read(ctx, "Plan", func(t *tx) (err error) {
		p, err = t.plan(r)
		return err
	})
	return p, err
}

// planned are the refs of a plan. The one that holds `from` begins at or below it. What the
// planner would pass over is left out here, so that it is given no more than one ref more
// than it takes.
const planned = `WITH begin AS (SELECT epoch, first FROM ref WHERE stream = $1 AND (epoch, first) <= ($2::int8, $3::int8) ORDER BY epoch DESC, first DESC LIMIT 1)
 ` + selectRefs + `WHERE r.stream = $1 AND (r.epoch, r.first) >= (COALESCE((SELECT epoch FROM begin), 0), COALESCE((SELECT first FROM begin), 0))
 AND (r.epoch, r.first) <= ($4::int8, $5::int8) AND (r.epoch, r.last) >= ($2::int8, $3::int8) AND ` + notDead + `
 ORDER BY r.stream, r.epoch, r.first LIMIT $6`

func (t *tx) plan(r catalog.PlanRequest) (p catalog.Plan, err error) {
	settings := t.askSettings("")
	m := t.askStream("s.name = $1", []byte(r.Stream), "")
	var epochs []catalog.Topology
	t.askTopologies(&epochs, "ORDER BY epoch")
	if err := t.flush(); err != nil {
		return p, err
	}
	if err := m.check(); err != nil {
		return p, err
	}
	lives, err := t.liveFroms(m, epochs)
	if err != nil {
		return p, err
	}
	limit := catalog.PageSize(r.Limit)
	pl, err := catalog.NewPlanner(m.Stream, r, limit, func(e segment.Epoch) (segment.Pos, error) {
		if live, ok := lives[e]; ok {
			return live, nil
		}
		return m.LiveFrom, nil
	})
	if err != nil {
		return p, err
	}
	pl.TTL = settings.PlanTTL(t.now)
	err = t.query(planned, func(scan column.Scan) error {
		l, err := scanRef(scan)
		if err != nil {
			return err
		}
		full, err := pl.Take(&l)
		if err == nil && full {
			return errStop
		}
		return err
	}, m.ID, int64(pl.From.Epoch), column.Seq(pl.From.Seq), int64(pl.To.Epoch), column.Seq(pl.To.Seq), int64(limit+1))
	return pl.Done(), err
}

// liveFroms is where a stream's rows live from in the chain that each epoch has for it.
func (t *tx) liveFroms(m *maybeStream, tops []catalog.Topology) (map[segment.Epoch]segment.Pos, error) {
	epochs, shards := make([]int64, len(tops)), make([]int64, len(tops))
	for i := range tops {
		epochs[i], shards[i] = int64(tops[i].Epoch), int64(segment.ShardOf(m.Name, tops[i].Shards))
	}
	out := map[segment.Epoch]segment.Pos{}
	err := t.query(`SELECT c.epoch, c.shard, c.watermark_seq FROM unnest($1::int8[], $2::int8[]) j(epoch, shard)
 JOIN chain c ON c.epoch = j.epoch AND c.shard = j.shard`, func(scan column.Scan) error {
		var c segment.Chain
		var watermark segment.Seq
		err := scan(&c.Epoch, &c.Shard, &watermark)
		out[c.Epoch] = catalog.EffectiveLiveFrom(m.LiveFrom, c, watermark)
		return err
	}, epochs, shards)
	out[m.Last.Epoch] = m.live // by the shard that it really came in
	return out, err
}
