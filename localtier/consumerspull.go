package localtier

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/segment"
)

// pullBytes bounds what one pull holds in memory, one row aside: rows are counted by
// the caller, and may be of any size.
const pullBytes = 16 << 20

// Pull returns up to limit rows of the shard after the consumer's cursor, fewer if they
// are large, none if it has caught up. The cursor stays until Ack: what is pulled and not
// acknowledged is pulled again. A consumer that does not stand is made, at the oldest row
// that the shard has not given up.
//
// *NotLocalError: rows after the cursor are no longer on this disk. Read those before
// First from the bucket, acknowledge them, and pull again. Rows of reserved streams are
// left out; acknowledge past them with any later row.
func (w *Writer) Pull(ctx context.Context, shard segment.Shard, name string, limit int) ([]ShardRow, error) {
	if limit < 1 {
		return nil, fmt.Errorf("%w: a pull of %d rows: give 1 or more", ErrInvalid, limit)
	}
	s, err := w.served(ctx, shard)
	if err != nil {
		return nil, err
	}
	if err := s.unreadableNow(); err != nil {
		return nil, err
	}
	cursor, stands := s.carried.cursor(name)
	if !stands {
		made, err := s.createConsumer(ctx, name, 0)
		if err != nil {
			return nil, err
		}
		cursor = made.Cursor
	}
	return s.pull(ctx, cursor+1, limit)
}

// pull collects rows from a seq on.
func (s *shardLog) pull(ctx context.Context, from segment.Seq, limit int) (rows []ShardRow, err error) {
	bytes := 0
	err = s.readShard(ctx, from, 0, func(r ShardRow) bool {
		rows = append(rows, r)
		bytes += len(r.Payload) + len(r.Txn)
		return len(rows) < limit && bytes < pullBytes
	})
	if err != nil && (len(rows) == 0 || !errors.Is(err, ErrNotLocal)) {
		return nil, err
	}
	return rows, nil // what was housekept while it was read comes with the next pull
}
