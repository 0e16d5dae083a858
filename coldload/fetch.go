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

func (g *group) cost() int64 {
	n := g.length
	for i := range g.pieces {
		n += g.pieces[i].chunk.Raw
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

// fetched is a group on its way; raw is set when done is closed.
type fetched struct {
	group group
	raw   [][]byte
	err   error
	done  chan struct{}
	cost  int64
}

// pipeline fetches and decodes groups ahead of the reader, in order of delivery.
type pipeline struct {
	reader  *Reader
	expires time.Time
	room    int64 // its share of the reader's memory
	memory  *semaphore.Weighted
	queue   chan *fetched
	workers *errgroup.Group
	cancel  context.CancelCauseFunc
}

// start launches the feeder; close ends everything it started and waits for it.
func (r *Reader) start(ctx context.Context, pieces []piece, expires time.Time) *pipeline {
	ctx, cancel := context.WithCancelCause(ctx)
	room := r.share()
	p := &pipeline{
		reader: r, expires: expires, cancel: cancel,
		room: room, memory: semaphore.NewWeighted(room),
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
			f.raw, f.err = p.reader.fetch(ctx, &f.group)
			return nil
		})
	}
	return nil
}

// fetch reads one range and decodes its chunks.
func (r *Reader) fetch(ctx context.Context, g *group) (raw [][]byte, err error) {
	ref := g.pieces[0].ref
	err = twice(func() error {
		return r.eachBucket(ctx, ref, func(s *objstore.Store) error {
			body, _, err := s.ReadRange(ctx, ref.Key, g.offset, g.length)
			if err != nil {
				return err
			}
			raw, err = decodeGroup(g, body)
			return err
		})
	})
	return raw, err
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

func decodeGroup(g *group, body []byte) ([][]byte, error) {
	raw := make([][]byte, len(g.pieces))
	for i := range g.pieces {
		c := &g.pieces[i].chunk
		at := c.Offset - g.offset
		b, err := segment.DecodeChunk(c, body[at:at+c.Stored])
		if err != nil {
			return nil, fmt.Errorf("chunk at byte %d: %w", c.Offset, err)
		}
		raw[i] = b
	}
	return raw, nil
}
