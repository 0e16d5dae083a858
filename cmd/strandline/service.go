package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// service is a process that owns shards and serves them over HTTP: what `up` and
// `writer` have in common.
type service struct {
	*app
	flags *ownerFlags
	tier  *tier
	log   *slog.Logger
	// shards are those of an epoch that this process owns; nil: all.
	shards func(catalog.Topology) ([]segment.Shard, error)
	// open opens the writer; nil: openWriter. Tests look at what is served meanwhile.
	open func(ctx context.Context, top catalog.Topology, address string) (*localtier.Writer, error)

	// audited is the auditor beside the writer; nil: none.
	audited *auditor.Auditor
	room    *rewriteRoom // of its rewriting; nil: it looks at no disk

	reader   *coldload.Reader
	around   *surroundings
	stopping stopping
	tail     httpapi.Tail // where followers find the writer of the next epoch
	bodies   *httpapi.Bodies
	now      atomic.Pointer[serving]
	lastLeft atomic.Pointer[[]leftShard] // what the last look found
}

// serving is the writer of one epoch, and its routes.
type serving struct {
	writer *localtier.Writer
	top    catalog.Topology
	routes http.Handler
}

// firstEpoch is the epoch that a deployment begins with.
const firstEpoch segment.Epoch = 1

const defaultShards = 4

// epochEvery is how often a process without an open epoch looks for one.
const epochEvery = 500 * time.Millisecond

// run serves one epoch after another until ctx ends or a part fails.
func (s *service) run(ctx context.Context, top catalog.Topology, parts ...func(context.Context) error) error {
	if s.open == nil {
		s.open = s.openWriter
	}
	in, err := s.equip()
	if err != nil {
		return err
	}
	address, err := s.flags.listen.address(ctx)
	if err != nil {
		return err
	}
	if top.State != catalog.TopologyOpen {
		if top, err = s.nextOpen(ctx, top.Epoch); err != nil {
			return ignoreCancel(ctx, err)
		}
	}
	if err := s.begin(ctx, top, address); err != nil {
		return err
	}
	listener, part, err := s.connect(ctx, address, in)
	if err != nil {
		return errors.Join(err, s.now.Load().writer.Close(ctx))
	}
	if part != nil {
		parts = append(parts, part)
	}
	err = serveHTTP(ctx, &httpService{
		flags: &s.flags.listen, around: s.around, log: s.log, listener: listener, stopping: s.stopping,
		handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.now.Load().routes.ServeHTTP(w, r) }),
		parts:   append(parts, s.watchLeft, func(ctx context.Context) error { return s.epochs(ctx, top.Epoch, address) }),
		flush:   func(ctx context.Context) error { return s.now.Load().writer.Flush(ctx) },
		finish:  func(ctx context.Context) error { return s.now.Load().writer.Close(ctx) },
	})
	s.log.Info("stopped", "requests", requestsOf(s.tier))
	return err
}

// equip makes what the epochs share, and the way in for logs.
func (s *service) equip() (in *logs, err error) {
	s.stopping, s.bodies = newStopping(), httpapi.NewBodies()
	if s.around, err = s.flags.listen.surround(s.log); err != nil {
		return nil, err
	}
	if in, err = s.openLogs(); err != nil {
		return nil, err
	}
	s.show(in)
	s.reader, err = coldload.New(s.tier.catalog, s.tier.reads, coldload.Config{})
	return in, err
}

// show gives what is watched from outside: status, metrics, logs that come in.
func (s *service) show(in *logs) {
	s.around.logs = in
	s.around.shown(s.tier)
	if s.tier.watch != nil {
		src := s.watched()
		src.OTLP = in.Counts
		s.tier.watch.Watch(src)
	}
}

// connect opens the listeners, of HTTP and of what part serves (nil: nothing more). It comes
// after recovery: only then may anyone connect.
func (s *service) connect(ctx context.Context, address string, in *logs) (_ net.Listener, part func(context.Context) error, err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, fmt.Errorf("serve HTTP: %w; give another --http", err)
	}
	s.sayListening(s.around.scheme(), listener.Addr())
	if part, err = in.listen(ctx); err != nil {
		return nil, nil, errors.Join(err, listener.Close())
	}
	return listener, part, nil
}

// begin opens the writer of an epoch and puts its routes in place.
func (s *service) begin(ctx context.Context, top catalog.Topology, address string) error {
	var w *localtier.Writer
	err := waiting(s.log, "the recovery of the local log, and the chains' leases", func() (err error) {
		w, err = s.open(ctx, top, address)
		return err
	})
	if err != nil {
		return err
	}
	deps := httpapi.Deps{
		Writer: s.serving(w), Reader: s.reader, Catalog: s.tier.catalog, Trimmer: s.tier.catalog,
		Epoch: top.Epoch, Shards: top.Shards, Logger: s.log, Tail: &s.tail, Bodies: s.bodies,
		Status: func(ctx context.Context) (any, error) {
			st, err := statusOf(ctx, s.tier)
			if err == nil {
				st.Shards, st.RewritingHeld = shardsOf(w), s.room.held()
				st.Left, err = s.left(ctx, top, w.Status())
			}
			return st, err
		},
		Served:   func() any { return shardsOf(w) },
		Explain:  s.tier.answer,
		Stopping: s.stopping.drains,
	}
	s.around.fill(&deps)
	s.now.Store(&serving{w, top, httpapi.Handler(deps)})
	left, err := s.left(ctx, top, w.Status())
	sayLeft(s.log, left, err)
	return nil
}

func (s *service) openWriter(ctx context.Context, top catalog.Topology, address string) (*localtier.Writer, error) {
	if s.tier.dir == "" {
		return nil, usage("give --dir for the writer's segments")
	}
	shards, err := s.shards(top)
	if err != nil {
		return nil, err
	}
	return localtier.Open(ctx, localtier.Options{
		Dir: filepath.Join(s.tier.dir, writerDir), Catalog: s.tier.catalog, Classes: s.tier.classes, Topology: top,
		Shards: shards, Address: s.flags.listen.advertised(address, s.around), Steal: s.flags.steal, Config: s.flags.writer, Logger: s.log, Trace: s.tier.watch.Appends(),
	})
}

// writerDir holds the segments, below --dir.
const writerDir = "writer"

// epochs goes on to the next epoch whenever the writer's is over. Until the next is open,
// the old routes refuse appends and say when to come again.
func (s *service) epochs(ctx context.Context, epoch segment.Epoch, address string) error {
	for {
		w := s.now.Load().writer
		select {
		case <-ctx.Done():
			return nil
		case <-w.Over():
		}
		s.log.Info("the epoch is over", "epoch", epoch)
		if err := s.closeWriter(ctx, w); err != nil {
			// What it could not publish stays on this disk, and is set aside once the next epoch serves.
			s.log.Warn("the epoch ended with rows that are only here", "epoch", epoch, "error", err)
		}
		top, err := s.nextOpen(ctx, epoch) // the same one, if the change was given up
		if err == nil {
			epoch = top.Epoch
			err = s.begin(ctx, top, address)
		}
		if err != nil {
			return ignoreCancel(ctx, err)
		}
	}
}

func (s *service) closeWriter(ctx context.Context, w *localtier.Writer) error {
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.flags.listen.shutdown)
	defer cancel()
	return w.Close(bound)
}

// nextOpen waits until an epoch from least on is open.
func (s *service) nextOpen(ctx context.Context, least segment.Epoch) (catalog.Topology, error) {
	told := false
	for {
		tops, err := s.tier.catalog.Topologies(ctx)
		if err != nil && !errors.Is(err, catalog.ErrUnavailable) {
			return catalog.Topology{}, err
		}
		for _, t := range tops {
			if t.Epoch >= least && t.State == catalog.TopologyOpen {
				return t, nil
			}
		}
		if !told {
			s.log.Warn("no epoch is open: waiting for the topology change to end (strandline topology show)", "from", least)
			told = true
		}
		select {
		case <-time.After(epochEvery):
		case <-ctx.Done():
			return catalog.Topology{}, context.Cause(ctx)
		}
	}
}

// foundEpoch returns the newest epoch, founding the first one. Its shard count is a
// constant: a number that disagrees is refused. 0: as it is, or the default.
func foundEpoch(ctx context.Context, t *tier, shards uint32) (catalog.Topology, error) {
	here, err := answering(t.classes) // one that is away has its records, or is not used
	if err != nil {
		return catalog.Topology{}, err
	}
	tops, err := t.catalog.Topologies(ctx)
	if err != nil {
		return catalog.Topology{}, err
	}
	if len(tops) > 0 {
		top := newest(tops)
		if shards != 0 && shards != top.Shards {
			return top, usage("--shards %d: this deployment has %s; change that with strandline topology set", shards, countOf(top.Shards, "shard"))
		}
		return check.EnsureEpoch(ctx, t.catalog, here, top)
	}
	top := firstTopology(t)
	if shards != 0 {
		top.Shards = shards
	}
	return check.EnsureEpoch(ctx, t.catalog, here, top)
}

// firstTopology is what a deployment begins with if nobody says otherwise.
func firstTopology(t *tier) catalog.Topology {
	return catalog.Topology{
		Epoch: firstEpoch, Shards: defaultShards, Class: segment.ClassStandard,
		Buckets: namesOf(t.classes[string(segment.ClassStandard)]), Settle: true, State: catalog.TopologyOpen,
	}
}

// newest is the epoch that counts: the last one that is open or closing; the last one
// at all if none is.
func newest(tops []catalog.Topology) catalog.Topology {
	top := tops[len(tops)-1]
	for _, t := range tops {
		if t.State == catalog.TopologyOpen {
			top = t
		}
	}
	return top
}

// requestsOf sums what this process asked of its stores, by operation.
func requestsOf(t *tier) map[string]int64 {
	sum := map[string]int64{}
	for _, s := range storesOf(t) {
		for op, n := range s.Counters().Requests {
			sum[string(op)] += n
		}
	}
	return sum
}
