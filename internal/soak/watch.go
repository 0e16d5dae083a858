//go:build unix

package soak

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/segment"
)

// watch looks at the catalog again and again: what the design calls monotonic may not go
// back (I6), whoever is killed. It remembers the settled objects that refs named.
type watch struct {
	*run
	was     map[string]uint64
	settled map[string]bool
	owners  map[segment.Shard]segment.UUID
	cursors map[string]uint64
}

const watchEvery = 150 * time.Millisecond

func newWatch(r *run) *watch {
	return &watch{run: r, was: map[string]uint64{}, settled: map[string]bool{}, owners: map[segment.Shard]segment.UUID{}, cursors: map[string]uint64{}}
}

func (w *watch) gaze(ctx context.Context) error {
	for child.Pause(ctx, watchEvery) {
		if err := w.look(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, catalog.ErrUnavailable) {
			return err
		}
	}
	return nil
}

func (w *watch) look(ctx context.Context) error {
	rows, err := w.site.catalog.Chains(ctx)
	if err != nil {
		return err
	}
	for i := range rows {
		w.chainRow(&rows[i])
	}
	for name := range w.ledger.streams {
		s, err := w.site.catalog.Stream(ctx, name)
		if errors.Is(err, catalog.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		w.rises("live_from of "+name, uint64(s.LiveFrom.Seq))
		w.rises("tip of "+name, uint64(s.Last.Seq))
	}
	return w.refs(ctx)
}

func (w *watch) chainRow(row *catalog.ChainRow) {
	for what, v := range map[string]uint64{
		"term": uint64(row.Term), "absorbed_end": uint64(row.AbsorbedEnd), "rewritten": uint64(row.Rewritten),
		"condemned": uint64(row.Condemned), "trimmed": uint64(row.Trimmed), "next seq": uint64(row.NextSeq),
		"watermark": uint64(row.WatermarkSeq),
	} {
		w.rises(fmt.Sprintf("%s of shard %d", what, row.Shard), v)
	}
	if row.Trimmed > row.Condemned || row.Condemned > row.Rewritten || row.Rewritten > row.AbsorbedEnd {
		w.complain("I6: cursors of shard %d out of order: trimmed %d, condemned %d, rewritten %d, absorbed_end %d", row.Shard, row.Trimmed, row.Condemned, row.Rewritten, row.AbsorbedEnd)
	}
	if was, known := w.owners[row.Shard]; known && was != row.Owner {
		w.report.count("takeover")
	}
	w.owners[row.Shard] = row.Owner
	standing := map[string]uint64{}
	for _, k := range row.Consumers {
		what := fmt.Sprintf("absorbed cursor of consumer %s of shard %d", k.Name, row.Shard)
		if was, known := w.cursors[what]; known && uint64(k.Cursor) < was {
			w.complain("I6: %s went back from %d to %d", what, was, k.Cursor)
		}
		standing[what] = uint64(k.Cursor)
		w.ledger.holds(fmt.Sprintf("%d/%s", row.Shard, k.Name))
	}
	for what, v := range standing {
		w.cursors[what] = v
	}
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	if may := w.ledger.slowest[row.Shard]; row.WatermarkSeq > may {
		w.complain("loss: the watermark of shard %d is %d, its slowest consumer has acknowledged %d", row.Shard, row.WatermarkSeq, may)
		w.ledger.slowest[row.Shard] = row.WatermarkSeq // told once
	}
}

func (w *watch) rises(what string, v uint64) {
	if was := w.was[what]; v < was {
		w.complain("I6: %s went back from %d to %d", what, was, v)
	}
	w.was[what] = v
}

// refs remembers the settled objects, and what kinds of refs there were.
func (w *watch) refs(ctx context.Context) error {
	var after *catalog.Ref
	for {
		page, err := w.site.catalog.RefsByKey(ctx, after, 1000)
		if err != nil {
			return err
		}
		for i := range page {
			if page[i].Kind.Settled() {
				w.settled[page[i].Key] = true
			}
		}
		if len(page) < 1000 {
			return nil
		}
		after = &page[len(page)-1].Ref
	}
}
