package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// readable gathers, over all buckets and looks, what can be read of a ref's rows: by the
// ref's own word, as readers of a single chunk go, and by any footer that decodes. It is
// the kindest reader there can be: what it cannot read, nobody can.
type readable struct {
	ref  *catalog.LiveRef
	from segment.Seq // the first live row
	// pieces are chunks that decoded, by where and what they are: one bucket may have
	// this chunk whole, another that.
	pieces map[pieceID]segment.Tally
	// ways are lists of chunks that would serve the span together: the ref's word, and
	// each footer's.
	ways [][]segment.Chunk
	// unread is the operator's word that reads which end so may be taken for lost bytes.
	unread bool
}

// pieceID names a chunk's bytes: two buckets that say the same have the same.
type pieceID struct {
	offset, stored int64
	codec          segment.Codec
	crc            uint32
	sum            uint64
}

func idOf(c *segment.Chunk) pieceID { return pieceID{c.Offset, c.Stored, c.Codec, c.CRC, c.Sum} }

// look reads what one bucket has, and says in words what is wrong there. An error is a
// read that was not completed.
func (r *readable) look(ctx context.Context, s *objstore.Store, key string) (why string, err error) {
	ways, why, err := r.told(ctx, s, key)
	if err != nil {
		return "", err
	}
	for _, way := range ways {
		for i := range way {
			broken, err := r.piece(ctx, s, key, &way[i])
			if err != nil {
				return "", err
			}
			if why == "" {
				why = broken
			}
		}
		r.ways = append(r.ways, way)
	}
	if why == "" {
		why = fmt.Sprintf("its rows are not those of the ref, %d of sum %016x", r.ref.Rows, r.ref.RowSum)
	}
	return why, nil
}

// told are the ways to the rows that the ref and the object's footer tell.
func (r *readable) told(ctx context.Context, s *objstore.Store, key string) (ways [][]segment.Chunk, why string, err error) {
	ref := r.ref
	if ref.Chunks == 1 {
		ways = append(ways, []segment.Chunk{{
			Stream: ref.Stream, Epoch: ref.Epoch, Shard: ref.Shard, First: ref.First, Last: ref.Last,
			Offset: ref.Offset, Stored: ref.Stored, Raw: ref.Raw, Codec: ref.Codec, CRC: ref.CRC, Sum: ref.Sum,
		}})
	}
	o, err := readObject(ctx, s, key)
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		return ways, notThere, nil
	case unsound(err):
		return ways, "its footer: " + err.Error(), nil
	case r.unread && cutShort(err):
		return ways, "its footer could not be read: " + wayOf(err), nil
	case err != nil:
		return nil, "", fmt.Errorf("read the footer of %s: %w", key, err)
	}
	var way []segment.Chunk
	for i := range o.footer.Chunks {
		if c := &o.footer.Chunks[i]; overlaps(c, &ref.Ref) && c.Last >= r.from {
			way = append(way, *c)
		}
	}
	if len(way) == 0 {
		return ways, "its footer has no chunk of the stream there", nil
	}
	return append(ways, way), "", nil
}

// piece reads and decodes one chunk, unless some bucket had it before.
func (r *readable) piece(ctx context.Context, s *objstore.Store, key string, c *segment.Chunk) (why string, err error) {
	if _, ok := r.pieces[idOf(c)]; ok {
		return "", nil
	}
	stored, _, err := s.ReadRange(ctx, key, c.Offset, c.Stored)
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		return notThere, nil
	case unsound(err):
		return fmt.Sprintf("chunk at byte %d: %v", c.Offset, err), nil
	case r.unread && cutShort(err):
		return fmt.Sprintf("chunk at byte %d could not be read: %s", c.Offset, wayOf(err)), nil
	case err != nil:
		return "", fmt.Errorf("read %s at byte %d: %w", key, c.Offset, err)
	}
	t, err := r.rows(c, stored)
	switch {
	case segment.IsStructural(err):
		return fmt.Sprintf("chunk at byte %d: %v", c.Offset, err), nil
	case err != nil: // it came short: no verdict
		return "", fmt.Errorf("read %s at byte %d: %w", key, c.Offset, err)
	}
	if r.pieces == nil {
		r.pieces = map[pieceID]segment.Tally{}
	}
	r.pieces[idOf(c)] = t
	return "", nil
}

// rows decodes a chunk, and counts the rows in it that are the ref's, and live.
func (r *readable) rows(c *segment.Chunk, stored []byte) (t segment.Tally, err error) {
	raw, err := segment.DecodeChunk(c, stored)
	if err != nil {
		return t, err
	}
	for batch, err := range segment.Frames(raw) {
		if err != nil {
			return segment.Tally{}, err
		}
		for i := range batch.Rows {
			if row := &batch.Rows[i]; batch.Stream == r.ref.Stream && row.Seq >= r.from && row.Seq <= r.ref.Last {
				t.AddRow(*row)
			}
		}
	}
	return t, nil
}

// whole says whether one way leads to all live rows of the ref.
func (r *readable) whole() bool {
	return slices.ContainsFunc(r.ways, func(way []segment.Chunk) bool {
		var t segment.Tally
		for i := range way {
			p, ok := r.pieces[idOf(&way[i])]
			if !ok {
				return false
			}
			t.Add(p)
		}
		if t.Last != r.ref.Last {
			return false
		}
		// Of a ref that live_from cuts nothing tells how many rows still live.
		return r.from > r.ref.First || t.Rows == r.ref.Rows && t.RowSum == r.ref.RowSum
	})
}

// sound are the rows that the best way leads to, if none leads to all.
func (r *readable) sound() (best []SoundRows) {
	most := uint64(0)
	for _, way := range r.ways {
		var got []SoundRows
		rows := uint64(0)
		for i := range way {
			if t, ok := r.pieces[idOf(&way[i])]; ok && t.Rows > 0 {
				got = append(got, SoundRows{t.First, t.Last, t.Rows})
				rows += t.Rows
			}
		}
		if rows > most {
			most, best = rows, got
		}
	}
	slices.SortFunc(best, func(a, b SoundRows) int { return cmp.Compare(a.First, b.First) })
	return best
}
