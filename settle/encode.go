package settle

import (
	"bytes"
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// unit is what one encoder makes at a time, and what goes into an output or stays
// out as a whole: all chunks of a pack's member, one chunk of a stream object.
type unit struct {
	member *member
	items  []item
}

// item is one chunk of the output: sources of one run joined, or one moved as it is.
type item struct {
	run      *run
	from, to int // chunks[from:to]
	copied   bool
}

// piece is an encoded item.
type piece struct {
	meta   segment.Chunk
	stored []byte
	copy   *objstore.CopySource // instead of stored
}

// units cuts a job into units, in the order of the output.
func (m *mover) units(j *job) []unit {
	var out []unit
	for _, mem := range j.members {
		var items []item
		for _, r := range mem.runs {
			items = appendItems(items, r)
		}
		if j.kind == segment.ObjPack {
			out = append(out, unit{mem, items})
			continue
		}
		for i := range items {
			out = append(out, unit{mem, items[i : i+1]})
		}
	}
	return out
}

// appendItems cuts a run into chunks: what the store copies moves as it is, small ones
// are joined up to the targets of 02. What they took in their sources stands for what
// they will take.
func appendItems(out []item, r *run) []item {
	var stored, raw int64
	open := false
	for i := range r.chunks {
		ref := &r.chunks[i]
		if ref.copied {
			out = append(out, item{r, i, i + 1, true})
			open = false
			continue
		}
		if !open || stored+ref.Stored > segment.ChunkStoredTarget || raw+ref.Raw > segment.ChunkRawMax {
			out = append(out, item{r, i, i, false})
			stored, raw, open = 0, 0, true
		}
		out[len(out)-1].to = i + 1
		stored, raw = stored+ref.Stored, raw+ref.Raw
	}
	return out
}

// weight is the raw bytes that a unit keeps in memory while it is encoded.
func (u *unit) weight() (n int64) {
	for _, it := range u.items {
		if it.copied {
			continue
		}
		for i := it.from; i < it.to; i++ {
			n += it.run.chunks[i].Raw
		}
	}
	return n
}

// encoded is a unit on its way from its encoder to the output.
type encoded struct {
	unit   unit
	weight int64
	done   chan struct{}
	pieces []piece
	err    error
}

// encodeAll encodes units side by side and hands them to put in order. The rows in
// memory are bounded by the mover's work semaphore, shared by all jobs: it is
// taken in order and given back in order, so the first one always gets on.
func (m *mover) encodeAll(ctx context.Context, units []unit, put func(*encoded) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	queue := make(chan *encoded, 2*m.cfg.Workers)
	var g errgroup.Group
	g.Go(func() error {
		defer close(queue)
		return m.encodeUnits(ctx, units, queue)
	})
	var failed error
	for e := range queue {
		<-e.done
		if failed == nil {
			if failed = put(e); failed != nil {
				stop(failed) // the rest is drained, so that its bytes are given back
			}
		}
		m.work.Release(e.weight)
	}
	err := g.Wait()
	stop(nil)
	if failed != nil {
		return failed
	}
	return err
}

func (m *mover) encodeUnits(ctx context.Context, units []unit, queue chan<- *encoded) error {
	var encoders errgroup.Group
	encoders.SetLimit(m.cfg.Workers)
	for _, u := range units {
		e := &encoded{unit: u, weight: min(max(u.weight(), 1), m.cfg.WorkBytes), done: make(chan struct{})}
		if ctx.Err() != nil || m.work.Acquire(ctx, e.weight) != nil {
			return context.Cause(ctx)
		}
		encoders.Go(func() error {
			defer close(e.done)
			e.pieces, e.err = m.encode(ctx, &e.unit)
			return nil
		})
		queue <- e // read to its end, whatever happens
	}
	return nil // every encoder is waited for by its unit's done
}

// encode makes the chunks of one unit.
func (m *mover) encode(ctx context.Context, u *unit) ([]piece, error) {
	out := make([]piece, 0, len(u.items))
	for i := range u.items {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p, err := m.encodeItem(ctx, u.member, &u.items[i])
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func (m *mover) encodeItem(ctx context.Context, mem *member, it *item) (piece, error) {
	first := &it.run.chunks[it.from]
	if it.copied {
		src, err := m.sources.await(ctx, first.Key)
		if err != nil {
			return piece{}, fmt.Errorf("read %s: %w", first.Key, err)
		}
		first.live = tallyOf(&first.Ref)
		return piece{meta: chunkOf(&first.Ref), copy: &objstore.CopySource{Key: first.Key, ETag: src.etag, Offset: first.Offset, Length: first.Stored}}, nil
	}
	room := m.room(it.rawBytes())
	defer m.spare.Put(room)
	raw := (*room)[:0]
	var sum segment.Tally
	for i := it.from; i < it.to; i++ {
		ref := &it.run.chunks[i]
		p, err := m.live(ctx, ref, mem.liveFrom, raw[len(raw):])
		if err != nil {
			return piece{}, err
		}
		ref.live = p.tally
		if p.below != 0 {
			ref.below = p.below
		}
		if it.to-it.from == 1 && p.stored != nil { // nothing to join, nothing cut: as it is
			return piece{meta: chunkOf(&ref.Ref), stored: p.stored}, nil
		}
		sum.Add(p.tally)
		raw = join(raw, p.raw)
	}
	meta := segment.Chunk{Stream: mem.stream, Epoch: first.Epoch, Shard: first.Shard}
	meta.SetTally(sum)
	return m.compress(meta, raw)
}

// room is a buffer for n raw bytes, used again when its item is encoded.
func (m *mover) room(n int64) *[]byte {
	if b, ok := m.spare.Get().(*[]byte); ok && int64(cap(*b)) >= n {
		return b
	}
	b := make([]byte, 0, n)
	return &b
}

func (it *item) rawBytes() (n int64) {
	for i := it.from; i < it.to; i++ {
		n += it.run.chunks[i].Raw
	}
	return n
}

// join appends b to raw; b often stands there already, decoded into raw's room.
func join(raw, b []byte) []byte {
	n := len(raw)
	if len(b) > 0 && cap(raw) >= n+len(b) && &raw[n : n+1][0] == &b[0] {
		return raw[:n+len(b)]
	}
	return append(raw, b...)
}

// compress makes a chunk of raw bytes, which are the caller's room.
func (m *mover) compress(meta segment.Chunk, raw []byte) (piece, error) {
	room, ok := m.packed.Get().(*[]byte)
	if !ok {
		room = new([]byte)
	}
	defer m.packed.Put(room)
	stored, err := segment.EncodeChunk(room, &meta, raw)
	if err != nil {
		return piece{}, fmt.Errorf("encode %d rows of %q: %w", meta.Rows, meta.Stream, err)
	}
	return piece{meta: meta, stored: bytes.Clone(stored)}, nil
}
