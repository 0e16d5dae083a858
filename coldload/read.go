package coldload

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Catalog is what a reader asks of the catalog.
type Catalog interface {
	Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error)
	Shards
}

// Shards is what a shard scan asks besides.
type Shards interface {
	Now(ctx context.Context) (time.Time, error)
	Settings(ctx context.Context) (catalog.Settings, error)
	Topologies(ctx context.Context) ([]catalog.Topology, error)
	Terms(ctx context.Context, c segment.Chain) ([]catalog.TermRow, error) // tokens
	Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error)
	Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error)
	ChainRefs(ctx context.Context, c segment.Chain, from segment.Seq, limit int) ([]catalog.Ref, error)
	RefsAcross(ctx context.Context, c segment.Chain, at segment.Seq, after *catalog.Ref, limit int) (refs []catalog.Ref, more bool, err error)
	Stream(ctx context.Context, name string) (catalog.Stream, error)
	Streams(ctx context.Context, after string, limit int) ([]catalog.Stream, error)
}

// Reader reads streams. It is safe for concurrent use and keeps only footers.
type Reader struct {
	catalog Catalog
	classes objstore.Classes
	cfg     Config
	footers *footerCache
	reads   atomic.Int64 // under way
}

// New wires a Reader.
func New(cat Catalog, classes objstore.Classes, cfg Config) (*Reader, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Reader{catalog: cat, classes: classes, cfg: cfg, footers: newFooterCache(cfg.Footers)}, nil
}

// Row is a row with the epoch of its position. Its bytes are those of the chunk it came in,
// which are used again: they are valid until the loop's next step, and must not be
// changed. Who keeps a row clones its Payload and Txn.
type Row struct {
	Epoch segment.Epoch
	segment.Row
}

// Pos is the row's position in its stream.
func (r *Row) Pos() segment.Pos { return segment.Pos{Epoch: r.Epoch, Seq: r.Seq} }

// Rows yields the rows of a stream from one position to another, both inclusive,
// in order, each once. The zero from is the first live row, and ErrDeleted of a stream that
// was deleted and has had no row since; an explicit one below the first live row is
// ErrTrimmed (ErrDeleted). The zero to is the tip as the catalog has it when the last
// plan is made.
//
// The last pair carries an error if the read could not be completed: nothing is
// ever skipped silently. Faults of store and catalog come through with their own kinds.
func (r *Reader) Rows(ctx context.Context, stream string, from, to segment.Pos) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		defer r.begin()()
		rd := &reading{reader: r, stream: stream, next: from, to: to, yield: yield}
		if err := rd.run(ctx); err != nil {
			yield(Row{}, err)
		}
	}
}

// reading is one call of Rows.
type reading struct {
	reader *Reader
	stream string
	next   segment.Pos // the first position not delivered yet
	to     segment.Pos
	yield  func(Row, error) bool
	over   bool // the caller's loop ended, or to was reached

	plan    planned // the rows of its refs are being delivered
	stuck   replans
	buffers buffers
}

// run plans and reads page by page. An object that is gone means that the plan is
// stale: settled, reaped, trimmed. A fresh plan says which; only if it still names
// what is not there, Replans times, are rows lost.
func (rd *reading) run(ctx context.Context) error {
	for {
		p, err := rd.reader.plan(ctx, rd.stream, rd.next, rd.to)
		if err != nil {
			return err
		}
		if rd.next.Less(p.LiveFrom) {
			rd.next = p.LiveFrom
		}
		rd.plan = p
		done, err := rd.page(ctx, p)
		if rd.over {
			return nil
		}
		if err != nil {
			if !isGone(err) {
				return rd.reader.behind(ctx, err)
			}
			if err := rd.again(err); err != nil {
				return err
			}
			continue
		}
		if !done {
			if err := rd.again(errPlanAged); err != nil {
				return err
			}
			continue
		}
		if !p.More {
			return nil
		}
	}
}

// again counts plans without progress; too many of them end the read.
func (rd *reading) again(cause error) error {
	if rd.stuck.again(rd.next) < rd.reader.cfg.Replans {
		return nil
	}
	var gone *goneError
	if errors.As(cause, &gone) {
		return &ReadError{
			Stream: rd.stream, At: rd.next, Key: gone.key, Kind: ErrLost,
			Detail: "the catalog names an object that is not there",
		}
	}
	return &ReadError{
		Stream: rd.stream, At: rd.next, Kind: objstore.ErrUnavailable, Err: cause,
		Detail: fmt.Sprintf("planned %d times without delivering a row", rd.stuck.n),
	}
}

var errPlanAged = errors.New("the plan aged before its first object was read; the read grace is too short for this store")

// page delivers one plan. done is false if the plan aged before all was fetched.
func (rd *reading) page(ctx context.Context, p planned) (done bool, err error) {
	pieces, err := rd.collect(ctx, p)
	if err != nil && len(pieces) == 0 {
		return false, err
	}
	pl := rd.reader.start(ctx, &rd.buffers, pieces, p.expires)
	defer pl.close()
	var sp span
	for f := range pl.queue {
		select {
		case <-f.done:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		if errors.Is(f.err, errPlanAged) {
			return false, nil
		}
		if f.err != nil {
			return false, f.err
		}
		if err := rd.deliver(&sp, f); err != nil || rd.over {
			return false, err
		}
		pl.delivered(f)
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	// What could be collected before the fault was delivered first.
	return err == nil, err
}

// collect lists the pieces of a page. A fault at a later ref does not keep the
// rows before it from being delivered: it is returned with them.
func (rd *reading) collect(ctx context.Context, p planned) ([]piece, error) {
	var out []piece
	for i := range p.Refs {
		ref := &p.Refs[i]
		var from segment.Seq
		if begin := rd.begin(ref); begin.Epoch == ref.Epoch {
			from = begin.Seq
		}
		ps, err := rd.reader.pieces(ctx, ref, from, p.expires)
		if err != nil {
			return out, err
		}
		out = append(out, upTo(ps, rd.to)...)
	}
	return out, nil
}

// begin is where reading a ref begins: a ref that its chain's watermark cuts in two may
// stand behind an older epoch's refs.
func (rd *reading) begin(ref *catalog.Ref) segment.Pos {
	return later(rd.next, rd.plan.LiveIn(ref.Epoch))
}

// upTo leaves out a ref's last chunks that begin behind the read's end: they need not be
// fetched, and damage of them is not this read's.
func upTo(ps []piece, to segment.Pos) []piece {
	for n := len(ps); n > 1 && to != (segment.Pos{}); n-- {
		if c := &ps[n-1].chunk; !to.Less(segment.Pos{Epoch: c.Epoch, Seq: c.First}) {
			return ps[:n]
		}
		ps = ps[:n-1]
	}
	return ps
}

func (rd *reading) deliver(sp *span, f *fetched) error {
	for i, raw := range f.raw {
		pc := &f.group.pieces[i]
		if sp.ref != pc.ref {
			rd.next = rd.begin(pc.ref)
		}
		next, to := rd.bounds(pc.ref.Epoch)
		if sp.ref != pc.ref {
			sp.begin(pc.ref, next)
		}
		n, on, err := sp.deliver(raw, next, to, func(r Row) bool { return rd.yield(r, nil) })
		rd.next = segment.Pos{Epoch: pc.ref.Epoch, Seq: n}
		if err != nil {
			return err
		}
		if !on {
			rd.over = true
			return nil
		}
		if pc.ends {
			if err := sp.end(n); err != nil {
				return err
			}
			// The next row is behind this ref, whatever seqs other streams took.
			rd.next = pc.ref.LastPos().Next()
		}
	}
	return nil
}

// bounds are the seqs to deliver within an epoch.
func (rd *reading) bounds(e segment.Epoch) (next, to segment.Seq) {
	if rd.next.Epoch == e {
		next = rd.next.Seq
	}
	to = math.MaxUint64
	if rd.to != (segment.Pos{}) && rd.to.Epoch == e {
		to = rd.to.Seq
	}
	return next, to
}
