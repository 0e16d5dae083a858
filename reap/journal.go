package reap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

const (
	// journalBatch bounds the streams of one record: about 200 KiB.
	journalBatch = 1000
	// journalTries bounds the race of auditors over one number.
	journalTries = 16
)

// journal writes the trims of streams into the buckets of their chains, before
// any of their refs is retired: a rebuild that finds the objects must not bring
// trimmed rows back. A stream that could not be journaled has its error in the
// answer, by id.
func (w *Walker) journal(ctx context.Context, streams []catalog.Stream) map[int64]error {
	failed := map[int64]error{}
	topologies, err := w.cat.Topologies(ctx)
	byChain := map[segment.Chain][]catalog.Stream{}
	for _, s := range streams {
		chain, cerr := chainOf(s, topologies)
		if cerr = errors.Join(err, cerr); cerr != nil {
			failed[s.ID] = cerr
			continue
		}
		byChain[chain] = append(byChain[chain], s)
	}
	chains := slices.SortedFunc(maps.Keys(byChain), func(a, b segment.Chain) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Shard, b.Shard))
	})
	for _, chain := range chains {
		for batch := range slices.Chunk(byChain[chain], journalBatch) {
			if err := w.journalBatch(ctx, chain, topologies, batch); err != nil {
				for _, s := range batch {
					failed[s.ID] = fmt.Errorf("journal trim of %q: %w", s.Name, err)
				}
			}
		}
	}
	return failed
}

// chainOf is the chain in which a stream's newest rows stand: its records are
// numbered by that chain's row.
func chainOf(s catalog.Stream, topologies []catalog.Topology) (segment.Chain, error) {
	if top := catalog.EpochIn(topologies, s.Last.Epoch); top != nil {
		return segment.Chain{Epoch: top.Epoch, Shard: segment.ShardOf(s.Name, top.Shards)}, nil
	}
	return segment.Chain{}, fmt.Errorf("%w: topology of epoch %d, in which stream %q ends", catalog.ErrNotFound, s.Last.Epoch, s.Name)
}

// journalBatch creates one record under the chain's next free number.
func (w *Walker) journalBatch(ctx context.Context, chain segment.Chain, topologies []catalog.Topology, streams []catalog.Stream) error {
	set, err := w.classes.Set(string(catalog.EpochIn(topologies, chain.Epoch).Class))
	if err != nil {
		return err
	}
	for range journalTries {
		row, err := w.cat.Chain(ctx, chain)
		if err != nil {
			return err
		}
		body, err := segment.EncodeTrim(trimRecord(chain, row.TrimJournal, streams))
		if err != nil {
			return err
		}
		_, err = set.First().PutOnce(ctx, segment.TrimKey(chain, row.TrimJournal), body, nil)
		taken := errors.Is(err, objstore.ErrExists)
		if err != nil && !taken {
			return err // also an unknown outcome: the record, if it stands, is true
		}
		// Crash here: the record stands under a number that the row still calls free.
		// The next writer finds it, moves the row past it and takes the next one.
		if err := w.cat.AdvanceJournal(ctx, chain, row.TrimJournal); err != nil && !errors.Is(err, catalog.ErrConflict) {
			return err
		}
		if !taken {
			return nil
		}
	}
	return fmt.Errorf("%w: %d records of chain %s in a row were taken by others", catalog.ErrConflict, journalTries, chain)
}

func trimRecord(chain segment.Chain, n uint64, streams []catalog.Stream) *segment.TrimRecord {
	rec := &segment.TrimRecord{Epoch: chain.Epoch, Shard: chain.Shard, N: n}
	for _, s := range streams {
		rec.Streams = append(rec.Streams, segment.StreamTrim{Name: s.Name, LiveFrom: s.LiveFrom, Deleted: s.Deleted})
	}
	return rec
}
