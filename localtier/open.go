package localtier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// shardLog is one chain, owned by one directory.
type shardLog struct {
	chain   segment.Chain
	dir     string
	cfg     Config
	catalog Catalog
	bucket  absorb.Bucket
	address string
	steal   bool
	log     *slog.Logger
	now     func() time.Time
	cut     func(Step) error
	trace   func(context.Context, Traced) (context.Context, func(error)) // nil: none
	corrupt atomic.Int64                                                 // finds of damage in local files

	// Set while opening, read-only after.
	wal   *wal.Log
	owner segment.UUID // of the directory
	term  segment.Term
	seen  catalog.ChainRow // before it was taken

	carried  carried
	lease    lease
	progress progress
	index    index
	disk     freeDisk

	number  sync.Mutex // orders numbering in the log with queueing in index.pending
	stalled time.Time  // number: when a write was taken back; zero if none was
	// number: why appends stalled last, and the failure after which they went on.
	stalledBy, resumed error
	shutBy             error // number: nothing more is numbered, and why
	// cursors: held while a consumer is made, and while retention plans and commits. Taken
	// before number.
	cursors sync.Mutex

	sealMu     sync.Mutex
	sealWanted segment.ID    // sealMu: the newest segment that a shared acknowledgement waits for
	sealBy     time.Time     // sealMu: when the first of those that wait is served
	sealSoon   chan struct{} // sealWanted grew; capacity 1
	sealAtOnce chan struct{} // capacity 1

	placed *placed       // the publisher's own
	silent bool          // likewise: the bucket did not answer the last slot that was sent
	turns  chan struct{} // shared by the writer's shards; capacity Config.Publishing
	fetch  chan struct{} // likewise, for hydration; capacity Config.Hydrating

	end     context.CancelFunc // stops the goroutines below
	running sync.WaitGroup

	endHydrate context.CancelFunc
	hydrating  sync.WaitGroup
	hydrated   hydrateCount
	retain     sync.Mutex // one run of retention at a time
	closed     sync.Once
	closeBy    error // result of the first close
}

// sharedTurns bound the memory of a writer, whatever the number of its shards.
type sharedTurns struct{ publish, fetch chan struct{} }

// openShard recovers a shard's directory and looks whether it may have its chain. It
// takes nothing yet: a directory that is refused one chain must not have taken
// others from their living owner by then.
func openShard(ctx context.Context, o Options, b absorb.Bucket, shard segment.Shard, shared sharedTurns) (*shardLog, error) {
	s := newShard(o, b, shard)
	s.turns, s.fetch = shared.publish, shared.fetch
	if err := s.recover(ctx); err != nil {
		return nil, s.opening("recover the directory", s.tellDamage(ctx, err))
	}
	var err error
	if s.seen, err = s.look(ctx); err == nil {
		var d decision
		switch d, err = s.fits(ctx, s.seen); {
		case err == nil && d.way == wayClosed:
			err = s.leaveClosed(ctx, s.seen)
		case errors.Is(err, ErrHeld):
			err = s.leaveHeld(ctx, s.seen, d, err)
		}
	}
	if err != nil {
		return nil, errors.Join(s.opening("take the chain", err), s.closeLog())
	}
	return s, nil
}

// closeLog closes the log, unless the directory is set aside and no other is open.
func (s *shardLog) closeLog() error {
	if s.wal == nil {
		return nil
	}
	return s.wal.Close()
}

// own takes the chain and serves it (03 §3).
func (s *shardLog) own(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return errors.Join(s.opening("take the chain", err), s.closeLog())
	}
	s.serve()
	return nil
}

func newShard(o Options, b absorb.Bucket, shard segment.Shard) *shardLog {
	chain := segment.Chain{Epoch: o.Topology.Epoch, Shard: shard}
	if len(b.Set) > 1 {
		b.Owed = absorb.NewOwed()
	}
	s := &shardLog{
		chain: chain, dir: filepath.Join(o.Dir, chain.String()), cfg: o.Config,
		catalog: o.Catalog, bucket: b, address: o.Address, steal: o.Steal,
		log: o.Logger, now: o.Now, cut: o.Cut, trace: o.Trace,
	}
	s.lease = lease{life: o.Config.LeaseTime, now: o.Now}
	s.progress.changed = make(chan struct{})
	s.sealSoon, s.sealAtOnce = make(chan struct{}, 1), make(chan struct{}, 1)
	s.disk = freeDisk{dir: s.dir, least: o.Config.MinFreeDisk, now: o.Now}
	return s
}

// recover opens the log: every frame that was acknowledged is there again, in order.
// What is read through for the read index waits until somebody reads.
func (s *shardLog) recover(ctx context.Context) error {
	cfg := s.cfg.WAL
	cfg.Logger, cfg.Now = s.log, s.now
	cfg.NextStart = func(start *segment.Start) error { s.fillStart(start); return nil }
	cfg.OnSealed = s.sealedNow
	log, err := wal.Open(ctx, s.dir, cfg, nil)
	if err != nil {
		return err
	}
	s.wal, s.owner = log, log.Identity().Writer
	if err := s.prepare(); err != nil {
		s.wal = nil
		return errors.Join(err, log.Close())
	}
	return nil
}

// tellDamage records corruption where everybody looks. The shard stays shut either way.
func (s *shardLog) tellDamage(ctx context.Context, err error) error {
	if !segment.IsStructural(err) {
		return err
	}
	if aerr := s.catalog.Audit(ctx, "corruption", s.dir, err.Error()); aerr != nil {
		return errors.Join(err, fmt.Errorf("record it: %w", aerr))
	}
	return err
}

// prepare makes what lies beside the log, and reads what every segment repeats.
func (s *shardLog) prepare() error {
	if err := s.fs().MkdirAll(filepath.Join(s.dir, uploadsDir)); err != nil {
		return err
	}
	s.index.begin(s.wal)
	s.carried.restart(s.wal.Carried())
	return nil
}

// opening wraps what openShard ended in, unless it says all already.
func (s *shardLog) opening(doing string, err error) error {
	var done *ShardError
	if errors.As(err, &done) {
		return err
	}
	return &ShardError{Chain: s.chain, Dir: s.dir, Doing: doing, Err: err}
}

// serve starts the goroutines. From here the shard takes rows.
func (s *shardLog) serve() {
	ctx, end := context.WithCancel(context.Background())
	s.end = end
	for _, loop := range []func(context.Context){s.publishLoop, s.copyLoop, s.renewLoop, s.housekeepLoop, s.sealLoop} {
		s.running.Go(func() { loop(ctx) })
	}
	// Closing ends it first, so that it holds nothing up.
	hydrating, endHydrate := context.WithCancel(ctx)
	s.endHydrate = endHydrate
	s.hydrating.Go(func() { s.hydrate(hydrating) })
	s.log.Info("shard serves", "chain", s.chain.String(), "term", s.term, "next_seq", s.wal.State().Next, "owner", s.owner.String())
}

// at is where tests cut; nil in production.
func (s *shardLog) at(step Step) error {
	if s.cut == nil {
		return nil
	}
	if err := s.cut(step); err != nil {
		return fmt.Errorf("%w at %q: %w", errCut, step, err)
	}
	return nil
}

// errCut ends whatever was under way as a crash would.
var errCut = errors.New("cut")
