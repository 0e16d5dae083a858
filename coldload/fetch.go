package coldload

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// group is one ranged GET: neighbouring pieces of one object.
type group struct {
	pieces []piece
	offset int64
	length int64
}

// cost is the memory that the group takes until it is delivered. What is stored as it is
// needs no room besides.
func (g *group) cost() int64 {
	n := bufferBytes(g.length)
	for i := range g.pieces {
		if c := &g.pieces[i].chunk; c.Codec != segment.CodecNone {
			n += bufferBytes(c.Raw)
		}
	}
	return n
}

// coalesce joins pieces that stand near each other in one object into one range.
func coalesce(pieces []piece, gapBytes, fetchBytes int64) []group {
	var out []group
	for _, p := range pieces {
		end := p.chunk.Offset + p.chunk.Stored
		if n := len(out); n > 0 {
			g := &out[n-1]
			gap := p.chunk.Offset - (g.offset + g.length)
			if g.pieces[0].ref.Key == p.ref.Key && gap >= 0 && gap <= gapBytes && end-g.offset <= fetchBytes {
				g.pieces = append(g.pieces, p)
				g.length = end - g.offset
				continue
			}
		}
		out = append(out, group{pieces: []piece{p}, offset: p.chunk.Offset, length: p.chunk.Stored})
	}
	return out
}

// fetched is a group on its way; loaded is set when done is closed.
type fetched struct {
	group group
	loaded
	err  error
	done chan struct{}
	cost int64
}

// loaded are a group's chunks, decoded. lent is the memory that they lie in.
type loaded struct {
	raw  [][]byte
	lent [][]byte
}

// pipeline fetches and decodes groups ahead of the reader, in order of delivery.
type pipeline struct {
	reader  *Reader
	expires time.Time
	room    int64 // its share of the reader's memory
	memory  *semaphore.Weighted
	buffers *buffers
	queue   chan *fetched
	workers *errgroup.Group
	cancel  context.CancelCauseFunc
}

// start launches the feeder; close ends everything it started and waits for it. The
// buffers are those of the read, from one pipeline of it to the next.
func (r *Reader) start(ctx context.Context, lender *buffers, pieces []piece, expires time.Time) *pipeline {
	ctx, cancel := context.WithCancelCause(ctx)
	room := r.share()
	lender.begin()
	p := &pipeline{
		reader: r, expires: expires, cancel: cancel,
		room: room, memory: semaphore.NewWeighted(room), buffers: lender,
		queue: make(chan *fetched, r.cfg.Window),
	}
	p.workers, ctx = errgroup.WithContext(ctx)
	groups := coalesce(pieces, r.cfg.GapBytes, r.cfg.FetchBytes)
	p.workers.Go(func() error {
		defer close(p.queue)
		return p.feed(ctx, groups)
	})
	return p
}

func (p *pipeline) close() {
	p.cancel(errReaderDone)
	for range p.queue { // the feeder may be waiting for room
		continue
	}
	_ = p.workers.Wait() // workers report through their fetched; nothing is lost here
}

var errReaderDone = fmt.Errorf("the reader stopped: %w", context.Canceled)

// feed sends one GET after the other into the window.
func (p *pipeline) feed(ctx context.Context, groups []group) error {
	for _, g := range groups {
		f := &fetched{group: g, done: make(chan struct{}), cost: min(g.cost(), p.room)}
		if err := p.memory.Acquire(ctx, f.cost); err != nil {
			return nil //nolint:nilerr // the reader stopped
		}
		select {
		case p.queue <- f:
		case <-ctx.Done():
			return nil
		}
		p.workers.Go(func() error {
			defer close(f.done)
			// A GET that would begin after the plan's end is not sent: the object may be
			// about to go.
			if !p.reader.cfg.Clock().Before(p.expires) {
				f.err = errPlanAged
				return nil
			}
			f.loaded, f.err = p.fetch(ctx, &f.group)
			return nil
		})
	}
	return nil
}

// delivered gives a group's memory back: nobody holds a part of its rows any more.
func (p *pipeline) delivered(f *fetched) {
	p.buffers.back(f.lent...)
	f.loaded = loaded{}
	p.memory.Release(f.cost)
}

// fetch reads one range and decodes its chunks.
func (p *pipeline) fetch(ctx context.Context, g *group) (l loaded, err error) {
	ref := g.pieces[0].ref
	body := p.buffers.lend(g.length, p.room)
	err = twice(func() error {
		return p.reader.eachBucket(ctx, ref, func(s *objstore.Store) error {
			if _, err := s.ReadInto(ctx, ref.Key, g.offset, body); err != nil {
				return err
			}
			l, err = p.decode(g, body)
			return err
		})
	})
	return l, err
}

// twice: bytes that do not fit their checksums are read once more, from every
// bucket of the set, before they are called corrupt. One read may have met a
// proxy's bad moment.
func twice(read func() error) error {
	err := read()
	if isCorrupt(err) {
		err = read()
	}
	return err
}

// decode decodes the chunks that body has. Chunks that are stored as they are stay in
// it; if there is none, it is given back at once.
func (p *pipeline) decode(g *group, body []byte) (loaded, error) {
	l := loaded{raw: make([][]byte, len(g.pieces))}
	kept := false
	for i := range g.pieces {
		c := &g.pieces[i].chunk
		var room []byte
		switch {
		case c.Codec == segment.CodecNone:
			kept = true
		case c.Raw >= 0 && c.Raw <= segment.ChunkRawMax: // else it is refused
			room = p.buffers.lend(c.Raw, p.room)
			l.lent = append(l.lent, room)
		}
		at := c.Offset - g.offset
		b, err := segment.DecodeChunkInto(room, c, body[at:at+c.Stored])
		if err != nil {
			p.buffers.back(l.lent...)
			return loaded{}, &badChunk{ref: g.pieces[i].ref, offset: c.Offset, err: err}
		}
		l.raw[i] = b
	}
	if kept {
		l.lent = append(l.lent, body)
	} else {
		p.buffers.back(body)
	}
	return l, nil
}
