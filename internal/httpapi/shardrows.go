package httpapi

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// ShardLog is an owner's local part of a shard; *localtier.Writer is one.
type ShardLog interface {
	ReadShard(ctx context.Context, shard segment.Shard, from, to segment.Seq) iter.Seq2[localtier.ShardRow, error]
}

// ShardScanner is the bucket's part of a shard; *coldload.Reader is one.
type ShardScanner interface {
	Scan(ctx context.Context, chain segment.Chain, from segment.Seq) iter.Seq2[coldload.ShardRow, error]
}

// ShardCatalog says where a chain and a stream begin.
type ShardCatalog interface {
	Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error)
	Stream(ctx context.Context, name string) (catalog.Stream, error)
}

// ShardSource is all that a shard's rows are read from.
type ShardSource struct {
	Local   ShardLog // nil: what is absorbed only
	Cold    ShardScanner
	Catalog ShardCatalog
}

// Rows yields a chain's rows from one seq to another, both inclusive, in order, each
// once: from the owner's files what they still have, from the bucket what is before it.
// The zero from is the first row above the watermark, the zero to the end. A process
// that does not own the shard shows what is absorbed.
//
// Rows below their stream's live_from are left out, wherever they stand, so that a read
// does not change with the place it is answered from. The last pair carries an error if
// the read could not be completed.
func (src ShardSource) Rows(ctx context.Context, chain segment.Chain, from, to segment.Seq) iter.Seq2[coldload.ShardRow, error] {
	return func(yield func(coldload.ShardRow, error) bool) {
		rd := &shardReading{ShardSource: src, chain: chain, next: from, to: to, yield: yield}
		if err := rd.run(ctx); err != nil && !rd.over {
			yield(coldload.ShardRow{}, err)
		}
	}
}

// shardReading is one call of Rows.
type shardReading struct {
	ShardSource
	chain    segment.Chain
	next, to segment.Seq // the first seq not dealt with yet; 0: no bound
	yield    func(coldload.ShardRow, error) bool
	over     bool
	live     liveFrom
}

// maxLive bounds the streams that one read remembers.
const maxLive = 50_000

func (r *shardReading) run(ctx context.Context) error {
	if r.next == 0 {
		row, err := r.Catalog.Chain(ctx, r.chain)
		if err != nil {
			return fmt.Errorf("read chain %s: %w", r.chain, err)
		}
		r.next = row.WatermarkSeq + 1
	}
	if r.Local == nil {
		return r.bucket(ctx, 0)
	}
	for range maxTurns {
		err := r.local(ctx)
		var notLocal *localtier.NotLocalError
		switch {
		case errors.As(err, &notLocal):
			// What is not local any more was absorbed before: the bucket has it.
			if err := r.bucket(ctx, notLocal.First); err != nil || r.over {
				return err
			}
			r.next = max(r.next, notLocal.First)
		case errors.Is(err, localtier.ErrNotOwner):
			return r.bucket(ctx, 0)
		default:
			return err
		}
	}
	return fmt.Errorf("%w: local segments went faster than they could be read; try again", catalog.ErrUnavailable)
}

// local delivers what the owner's files have.
func (r *shardReading) local(ctx context.Context) error {
	for row, err := range r.Local.ReadShard(ctx, r.chain.Shard, r.next, r.to) {
		if err != nil {
			return err
		}
		live, err := r.live.of(ctx, r.Catalog, r.chain, row.Stream)
		if err != nil {
			return err
		}
		if row.Seq >= live && !r.yield(coldload.ShardRow{Stream: row.Stream, Epoch: r.chain.Epoch, Row: row.Row}, nil) {
			r.over = true
			return nil
		}
		r.next = row.Seq + 1
	}
	return nil
}

// bucket delivers what is absorbed, up to before end (0: all of it).
func (r *shardReading) bucket(ctx context.Context, end segment.Seq) error {
	for row, err := range r.Cold.Scan(ctx, r.chain, r.next) {
		switch {
		case err != nil:
			return r.within(err, end)
		case end != 0 && row.Seq >= end:
			return nil
		case r.to != 0 && row.Seq > r.to:
			r.over = true
			return nil
		case !r.yield(row, nil):
			r.over = true
			return nil
		}
		r.next = row.Seq + 1
	}
	return nil
}

// within leaves a loss out that lies behind what was to be read of the bucket: a scan gives all
// that is before it.
func (r *shardReading) within(err error, end segment.Seq) error {
	var scan *coldload.ScanError
	if !errors.As(err, &scan) || !scan.Accepted() {
		return err
	}
	if r.to != 0 && scan.At > r.to {
		r.over = true
		return nil
	}
	if end != 0 && scan.At >= end {
		return nil
	}
	return err
}

// liveFrom remembers where streams of a chain live from.
type liveFrom struct {
	off  bool // nothing is given up
	seqs map[string]segment.Seq
}

// of is the first seq of a stream that no trim gave up. A stream that nothing is
// absorbed of was never trimmed.
func (l *liveFrom) of(ctx context.Context, cat ShardCatalog, c segment.Chain, stream string) (segment.Seq, error) {
	if l.off {
		return 0, nil
	}
	if live, ok := l.seqs[stream]; ok {
		return live, nil
	}
	s, err := cat.Stream(ctx, stream)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return 0, fmt.Errorf("read chain %s: stream %q: %w", c, stream, err)
	}
	live := segment.Seq(0)
	switch {
	case s.LiveFrom.Epoch == c.Epoch:
		live = s.LiveFrom.Seq
	case s.LiveFrom.Epoch > c.Epoch:
		live = ^segment.Seq(0)
	}
	if l.seqs == nil || len(l.seqs) >= maxLive {
		l.seqs = map[string]segment.Seq{}
	}
	l.seqs[stream] = live
	return live, nil
}
