package localtier

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// ErrReadOnly: a write to a directory that was opened for reading.
var ErrReadOnly = errors.New("opened read-only")

// ReadOnly is a shard directory looked at beside its owner, or after it: it takes no
// lock, repairs nothing, truncates nothing, and shows the durable rows of the moment
// it was opened. Whether they are part of the chain's history only the catalog knows.
type ReadOnly struct {
	dir   string
	log   *wal.ReadOnly
	index index
}

// OpenReadOnly judges a shard directory as its owner would, and changes nothing. A
// missing one matches fs.ErrNotExist; damage is a *segment.CorruptionError.
func OpenReadOnly(ctx context.Context, dir string) (*ReadOnly, error) {
	return openReadOnly(ctx, dir, nil)
}

func openReadOnly(ctx context.Context, dir string, fsys wal.FS) (*ReadOnly, error) {
	r := &ReadOnly{dir: dir}
	var err error
	if r.log, err = wal.OpenReadOnly(ctx, dir, wal.Config{FS: fsys}, nil); err != nil {
		return nil, err
	}
	r.index.begin(r.log)
	return r, nil
}

// Owner is the writer UUID of the directory.
func (r *ReadOnly) Owner() segment.UUID { return r.log.Identity().Writer }

// State says where the log stood when it was opened.
func (r *ReadOnly) State() wal.State { return r.log.State() }

// Append refuses.
func (r *ReadOnly) Append(context.Context, string, []segment.Row, Ack) (Result, error) {
	return Result{}, fmt.Errorf("append to %s: %w: write to the owner of its shard", r.dir, ErrReadOnly)
}

// Read yields a stream's local rows as Writer.Read does.
func (r *ReadOnly) Read(ctx context.Context, stream string, from, to segment.Seq) iter.Seq2[segment.Row, error] {
	return func(yield func(segment.Row, error) bool) {
		reader := r.reader(stream, from, to)
		if err := reader.run(ctx, func(_ string, row segment.Row) bool { return yield(row, nil) }); err != nil {
			yield(segment.Row{}, err)
		}
	}
}

// ReadShard yields the shard's local rows in seq order as Writer.ReadShard does.
func (r *ReadOnly) ReadShard(ctx context.Context, from, to segment.Seq) iter.Seq2[ShardRow, error] {
	return func(yield func(ShardRow, error) bool) {
		reader := r.reader("", from, to)
		if err := reader.run(ctx, func(stream string, row segment.Row) bool { return yield(ShardRow{stream, row}, nil) }); err != nil {
			yield(ShardRow{}, err)
		}
	}
}

// Local says which seqs of the chain are here: first to before next.
func (r *ReadOnly) Local() (first, next segment.Seq) { return r.index.span() }

func (r *ReadOnly) reader(stream string, from, to segment.Seq) rowReader {
	return rowReader{
		index: &r.index, chain: r.log.State().Start.Chain, stream: stream, from: from, to: to,
		may: func() error { return nil },
		// What was reclaimed at this directory the log does not show; more only the
		// catalog knows.
		watermark: func() segment.Seq { return 0 },
	}
}
