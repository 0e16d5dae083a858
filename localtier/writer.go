package localtier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Writer owns shards of one epoch and appends to them. It is safe for concurrent
// use.
type Writer struct {
	opts   Options
	shards map[segment.Shard]*shardLog // never changed after Open
	order  []segment.Shard

	end     context.CancelFunc // stops the loops below
	running sync.WaitGroup     // retention, and the look at the topology
	over    chan struct{}      // closed at the end of the epoch
	aside   asideWeight
}

// Open takes every shard of o.Shards: recovers its directory, resumes the chain or
// acquires and fences it, and starts its publisher. Either all are served or none:
// no chain is taken before all directories were found fit to have theirs, and on a
// later error those already taken are released.
//
// Errors of note: ErrHeld (another owner's lease lives), ErrLeftover, ErrRolledBack,
// ErrChainClosed, wal.ErrLocked, *segment.CorruptionError; all inside a *ShardError.
func Open(ctx context.Context, o Options) (*Writer, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	set, err := o.Classes.Set(string(o.Topology.Class))
	if err != nil {
		return nil, err
	}
	fit, err := openAll(ctx, o, absorb.Bucket{Set: set, Class: o.Topology.Class})
	if err != nil {
		return nil, err
	}
	w := &Writer{opts: o, shards: make(map[segment.Shard]*shardLog), order: o.Shards, over: make(chan struct{})}
	var g errgroup.Group // no shared cancel: a half-made fence of one shard is not another's fault
	owned := make([]bool, len(fit))
	for i, s := range fit {
		g.Go(func() error {
			err := s.own(ctx)
			owned[i] = err == nil
			return err
		})
	}
	err = g.Wait()
	for i, s := range fit {
		if owned[i] {
			w.shards[o.Shards[i]] = s
		}
	}
	if err != nil {
		return nil, errors.Join(err, w.each(func(s *shardLog) error { return s.giveBack(ctx) }))
	}
	w.serve()
	return w, nil
}

// serve starts what all shards share.
func (w *Writer) serve() {
	ctx, end := context.WithCancel(context.Background())
	w.end = end
	for _, loop := range []func(context.Context){w.retainLoop, w.watchLoop} {
		w.running.Go(func() { loop(ctx) })
	}
	w.running.Go(func() { reconcileEnded(ctx, w.opts) })
}

// openAll recovers every shard's directory; all fit, or none is left open.
func openAll(ctx context.Context, o Options, b absorb.Bucket) ([]*shardLog, error) {
	opened := make([]*shardLog, len(o.Shards))
	turns := sharedTurns{make(chan struct{}, o.Config.Publishing), make(chan struct{}, o.Config.Hydrating)}
	var g errgroup.Group
	for i, shard := range o.Shards {
		g.Go(func() (err error) {
			opened[i], err = openShard(ctx, o, b, shard, turns)
			return err
		})
	}
	err := g.Wait()
	if err == nil {
		return opened, nil
	}
	for _, s := range opened {
		if s != nil {
			err = errors.Join(err, s.closeLog())
		}
	}
	return nil, err
}

// complete fills in defaults and checks what does not need I/O.
func (o Options) complete() (Options, error) {
	if err := o.Config.Validate(); err != nil {
		return o, err
	}
	o.Config = o.Config.withDefaults()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Dir == "" || o.Catalog == nil {
		return o, fmt.Errorf("%w: a writer needs a directory and a catalog", ErrInvalid)
	}
	if o.Topology.State != catalog.TopologyOpen {
		return o, fmt.Errorf("%w: epoch %d is %s: open the writer on an open epoch", ErrInvalid, o.Topology.Epoch, o.Topology.State)
	}
	if o.Shards == nil {
		for i := range o.Topology.Shards {
			o.Shards = append(o.Shards, segment.Shard(i))
		}
	}
	o.Shards = slices.Compact(slices.Sorted(slices.Values(o.Shards)))
	if n := len(o.Shards); n == 0 || uint32(o.Shards[n-1]) >= o.Topology.Shards {
		return o, fmt.Errorf("%w: shards %v of %d: give some of 0 to %d", ErrInvalid, o.Shards, o.Topology.Shards, int64(o.Topology.Shards)-1)
	}
	return o, nil
}

// route finds the shard of a stream.
func (w *Writer) route(ctx context.Context, stream string) (*shardLog, error) {
	if err := segment.CheckStream(stream); err != nil {
		return nil, err
	}
	shard := segment.ShardOf(stream, w.opts.Topology.Shards)
	if s := w.shards[shard]; s != nil {
		return s, nil
	}
	return nil, w.notOwner(ctx, stream, shard)
}

// notOwner is whose a shard is that is not served here. If the catalog does not answer, the
// owner stays unknown, and the message says so.
func (w *Writer) notOwner(ctx context.Context, stream string, shard segment.Shard) error {
	e := &NotOwnerError{Stream: stream, Shard: shard}
	row, err := w.opts.Catalog.Chain(ctx, segment.Chain{Epoch: w.opts.Topology.Epoch, Shard: shard})
	if err == nil && row.Owner != uuid.Nil {
		e.Owner = row.Address
	} else {
		e.Nobody = err == nil || errors.Is(err, catalog.ErrNotFound)
	}
	return e
}

// Append writes rows to a stream and returns when they are acknowledged as asked.
// Seqs of the rows are ignored; a zero Time becomes now. The rows' bytes are not
// kept after the return.
//
// Nothing was written: *NotOwnerError, *segment.NameError, ErrTooLarge,
// *BackpressureError, ErrInvalid, ErrClosed. Anything else (a fence, a lost lease,
// a poisoned log, the end of ctx) leaves it unknown whether the rows will be there.
func (w *Writer) Append(ctx context.Context, stream string, rows []segment.Row, ack Ack) (Result, error) {
	s, err := w.route(ctx, stream)
	if err != nil {
		return Result{}, err
	}
	ctx, done := s.traced(ctx, Traced{Step: TraceAppend, Stream: stream, Rows: len(rows)})
	res, err := s.append(ctx, stream, rows, ack)
	done(err)
	return res, err
}

// Flush seals what is open and waits until every shard's rows are absorbed.
func (w *Writer) Flush(ctx context.Context) error {
	return w.each(func(s *shardLog) error { return s.flush(ctx) })
}

// Status of every shard, by number.
func (w *Writer) Status() []ShardStatus {
	out := make([]ShardStatus, 0, len(w.order))
	for _, n := range w.order {
		out = append(out, w.shards[n].status())
	}
	return out
}

// Ready is nil while every shard takes rows, and what was set aside is within its cap
// (*QuarantineError).
func (w *Writer) Ready() error {
	return errors.Join(w.each(func(s *shardLog) error { return s.refusal() }), w.quarantineRefusal())
}

// Close ends the writer as on SIGTERM: no more appends, then seal, publish, absorb,
// release. It is bounded by ctx; what could not be published stays in the
// directories and is told as a *LeftError. The second Close does nothing.
func (w *Writer) Close(ctx context.Context) error {
	w.stopLoops()
	return w.each(func(s *shardLog) error { return s.close(ctx) })
}

// stopLoops ends what is done beside serving, and may wait on a bucket that is away.
func (w *Writer) stopLoops() {
	w.end()
	for _, s := range w.shards {
		s.endHydrate()
	}
	w.running.Wait()
}

// each runs f on all shards at once and joins the errors.
func (w *Writer) each(f func(*shardLog) error) error {
	errs := make([]error, len(w.order))
	var g errgroup.Group
	for i, n := range w.order {
		if s := w.shards[n]; s != nil {
			g.Go(func() error { errs[i] = f(s); return nil })
		}
	}
	_ = g.Wait() // the functions return nil; their errors are in errs
	return errors.Join(errs...)
}
