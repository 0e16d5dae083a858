package localtier

import (
	"context"
	"iter"

	"github.com/strandline/strandline/segment"
)

// ShardRow is a row of a shard scan.
type ShardRow struct {
	Stream string
	segment.Row
}

// ReadShard yields the rows of a shard in seq order, all streams together, from seq
// `from` to `to` (inclusive; 0: to the end), with the contract of Read: durable rows
// that are local and above the watermark, *NotLocalError for what is before them.
//
// Rows of reserved streams (~audit/<shard>) are left out, as seed 000's scan has events
// only: theirs are the seqs that seem to be missing. Read gives them by name. So does
// coldload.Scan, so that where the one ends the other goes on.
//
// A shard that is not served here is a *NotOwnerError without a stream.
func (w *Writer) ReadShard(ctx context.Context, shard segment.Shard, from, to segment.Seq) iter.Seq2[ShardRow, error] {
	return func(yield func(ShardRow, error) bool) {
		s, err := w.served(ctx, shard)
		if err == nil {
			err = s.readShard(ctx, from, to, func(r ShardRow) bool { return yield(r, nil) })
		}
		if err != nil {
			yield(ShardRow{}, err)
		}
	}
}

// readShard is ReadShard on one shard.
func (s *shardLog) readShard(ctx context.Context, from, to segment.Seq, yield func(ShardRow) bool) error {
	return s.read(ctx, "", from, to, func(stream string, r segment.Row) bool { return yield(ShardRow{stream, r}) })
}
