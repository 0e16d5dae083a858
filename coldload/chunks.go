package coldload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// piece is one chunk to read for one ref.
type piece struct {
	ref   *catalog.Ref
	chunk segment.Chunk
	// ends is whether the ref's span ends with this piece: its tally is checked then.
	ends bool
	// holds is what the chunk must have of the ref's rows (scans; nil: not known).
	holds *holds
}

// holds is a number of rows and their row sum.
type holds struct{ rows, sum uint64 }

// pieces turns a ref into the chunks that hold its rows from a position on.
func (r *Reader) pieces(ctx context.Context, ref *catalog.Ref, from segment.Seq, expires time.Time) ([]piece, error) {
	switch ref.Kind {
	case catalog.RefSlot, catalog.RefStream, catalog.RefPack:
	case catalog.RefLost:
		return nil, accepted(ref, from)
	default:
		return nil, fmt.Errorf("%w: ref of stream %q at %s has the unknown kind %q", catalog.ErrCorrupt, ref.Stream, ref.FirstPos(), ref.Kind)
	}
	if ref.Chunks == 1 {
		return []piece{{ref: ref, chunk: chunkOf(ref), ends: true}}, nil
	}
	footer, err := r.footer(ctx, ref, expires)
	if err != nil {
		return nil, err
	}
	return piecesOf(ref, footer, from)
}

// chunkOf is the chunk of a ref that has just one.
func chunkOf(ref *catalog.Ref) segment.Chunk {
	return segment.Chunk{
		Stream: ref.Stream, Epoch: ref.Epoch, Shard: ref.Shard,
		Offset: ref.Offset, Stored: ref.Stored, Raw: ref.Raw,
		Codec: ref.Codec, CRC: ref.CRC, Sum: ref.Sum,
	}
}

// piecesOf picks the chunks of the ref's span from the footer. All of the span's
// chunks are needed for the tally unless the read begins inside the ref.
func piecesOf(ref *catalog.Ref, f *segment.Footer, from segment.Seq) ([]piece, error) {
	var out []piece
	var last segment.Seq
	for _, c := range f.Chunks {
		if c.Stream != ref.Stream || c.Epoch != ref.Epoch || c.Last < max(ref.First, from) || c.First > ref.Last {
			continue
		}
		out = append(out, piece{ref: ref, chunk: c})
		last = c.Last
	}
	if len(out) == 0 || last < ref.Last {
		return nil, &ReadError{
			Stream: ref.Stream, At: segment.Pos{Epoch: ref.Epoch, Seq: last + 1}, Key: ref.Key, Kind: ErrCorrupt,
			Detail: fmt.Sprintf("its footer covers the stream only up to seq %d, the ref says %d", last, ref.Last),
		}
	}
	out[len(out)-1].ends = true
	return out, nil
}

// footer reads an object's footer, or takes it from the cache while the plan that
// named the object may be relied on.
func (r *Reader) footer(ctx context.Context, ref *catalog.Ref, expires time.Time) (*segment.Footer, error) {
	if f, ok := r.footers.get(ref.Key, r.cfg.Clock()); ok {
		return f, nil
	}
	var f *segment.Footer
	err := twice(func() error {
		return r.eachBucket(ctx, ref, func(s *objstore.Store) error {
			var err error
			f, err = readFooter(ctx, s, ref.Key)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	r.footers.put(ref.Key, f, expires)
	return f, nil
}

func readFooter(ctx context.Context, s *objstore.Store, key string) (*segment.Footer, error) {
	return segment.ReadFooter(func(n int64) ([]byte, int64, error) {
		tail, info, err := s.ReadSuffix(ctx, key, n)
		return tail, info.Size, err
	})
}

// eachBucket tries the buckets of the ref's class in order, the deciding one first:
// the next where one is away, has no object, or holds bytes that do not verify. A key is
// gone only if every bucket answered so; a fault is never "gone". It is corrupt only if no
// bucket is left that may hold it whole: one that is away may.
func (r *Reader) eachBucket(ctx context.Context, ref *catalog.Ref, read func(*objstore.Store) error) error {
	set, err := r.classes.Set(string(ref.Class))
	if err != nil {
		return fmt.Errorf("stream %q: %w", ref.Stream, err)
	}
	var faults, corrupt []error
	for _, s := range set {
		err := read(s)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, objstore.ErrNotFound):
		case isCorrupt(err):
			corrupt = append(corrupt, err)
		default:
			faults = append(faults, err)
		}
	}
	switch {
	case len(faults) > 0:
		return fmt.Errorf("stream %q: read %s: %w", ref.Stream, ref.Key, errors.Join(faults...))
	case len(corrupt) > 0:
		err := errors.Join(corrupt...)
		if bad := (*badChunk)(nil); errors.As(err, &bad) {
			ref = bad.ref
		}
		return &ReadError{Stream: ref.Stream, At: ref.FirstPos(), Key: ref.Key, Kind: ErrCorrupt, Err: err}
	}
	return &goneError{key: ref.Key}
}

// badChunk is a chunk that does not decode, one of several that came in one range.
type badChunk struct {
	ref    *catalog.Ref
	offset int64
	err    error
}

func (e *badChunk) Error() string { return fmt.Sprintf("chunk at byte %d: %v", e.offset, e.err) }
func (e *badChunk) Unwrap() error { return e.err }

// goneError: no object stands at the key.
type goneError struct{ key string }

func (e *goneError) Error() string { return "object " + e.key + " is gone" }
