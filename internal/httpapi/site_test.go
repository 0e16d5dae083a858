package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

// site is a deployment in one process: a bucket, a catalog, an auditor, a writer with its
// server, and a reader's server.
type site struct {
	t       testing.TB
	cat     *counting
	classes objstore.Classes
	topo    catalog.Topology
	reader  *coldload.Reader
	dir     string
	dirs    int

	writer *localtier.Writer
	tail   *Tail
	routes atomic.Pointer[http.Handler] // of the writer's server
	owner  *httptest.Server
	other  *httptest.Server // without a writer
	plain  *server          // of other
	stop   chan struct{}
	stores []*objstore.Store
}

// counting counts the verbs that followers ask.
type counting struct {
	catalog.Catalog
	streams, chains, plans atomic.Int64
}

func (c *counting) Stream(ctx context.Context, name string) (catalog.Stream, error) {
	c.streams.Add(1)
	return c.Catalog.Stream(ctx, name)
}

func (c *counting) Chain(ctx context.Context, ch segment.Chain) (catalog.ChainRow, error) {
	c.chains.Add(1)
	return c.Catalog.Chain(ctx, ch)
}

func (c *counting) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	c.plans.Add(1)
	return c.Catalog.Plan(ctx, r)
}

const (
	siteGrace = time.Second
	sitePoll  = 20 * time.Millisecond
)

func newSite(t testing.TB, shards uint32) *site {
	t.Helper()
	ctx := context.Background()
	s := &site{t: t, dir: t.TempDir(), tail: new(Tail), stop: make(chan struct{})}
	mem := memory.New(memory.Options{})
	s.cat = &counting{Catalog: mem}
	store, err := objstore.New(memstore.New(memstore.Options{}), objstore.Config{})
	s.must(err)
	s.stores = []*objstore.Store{store}
	s.classes = objstore.Classes{string(segment.ClassStandard): {store}}
	_, err = check.Ensure(ctx, mem, s.classes)
	s.must(err)
	_, err = mem.SeedReadGrace(ctx, siteGrace)
	s.must(err)
	_, err = mem.SeedOrphanGrace(ctx, time.Hour)
	s.must(err)
	s.topo = s.epoch(1, shards, catalog.TopologyOpen)
	s.reader, err = coldload.New(s.cat, s.classes, coldload.Config{})
	s.must(err)
	s.plain = newServer(Deps{Reader: s.reader, Catalog: s.cat, Trimmer: s.cat, Epoch: 1, Shards: shards, FollowPoll: sitePoll, Stopping: s.stop})
	s.other = httptest.NewUnstartedServer(nil)
	s.other.Config = NewServer(s.plain.handler(), slog.New(slog.DiscardHandler))
	s.other.Start()
	s.owner = httptest.NewUnstartedServer(nil)
	s.owner.Config = NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.routes.Load()).ServeHTTP(w, r) }), slog.New(slog.DiscardHandler))
	s.owner.Start()
	s.open(false)
	t.Cleanup(func() {
		s.owner.Close()
		s.other.Close()
		if err := s.writer.Close(ctx); err != nil {
			t.Logf("close the writer: %v", err) // it may have been fenced on purpose
		}
		s.must(mem.Close())
	})
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) epoch(e segment.Epoch, shards uint32, state catalog.TopologyState) catalog.Topology {
	top, err := s.cat.EnsureTopology(context.Background(), catalog.Topology{
		Epoch: e, Shards: shards, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: true, State: state,
	})
	s.must(err)
	return top
}

// open opens a writer on a directory of its own, and its routes.
func (s *site) open(steal bool) {
	s.t.Helper()
	s.dirs++
	w, err := localtier.Open(context.Background(), localtier.Options{
		Dir: filepath.Join(s.dir, fmt.Sprint("w", s.dirs)), Catalog: s.cat, Classes: s.classes, Topology: s.topo, Address: s.owner.URL, Steal: steal,
		Config: localtier.Config{
			Backoff: time.Millisecond, MaxBackoff: 4 * time.Millisecond, SharedWindow: time.Millisecond, LeaseTime: time.Hour,
			MinFreeDisk: -1, Housekeeping: time.Second, TopologyEvery: 10 * time.Millisecond,
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	s.must(err)
	s.writer = w
	h := Handler(Deps{
		Writer: w, Reader: s.reader, Catalog: s.cat, Trimmer: s.cat, Epoch: s.topo.Epoch, Shards: s.topo.Shards,
		Tail: s.tail, FollowPoll: sitePoll, Stopping: s.stop,
	})
	s.routes.Store(&h)
}

// takeover is another writer's that steals every chain. What the one before has not
// published is lost to the history.
func (s *site) takeover(flush bool) {
	s.t.Helper()
	old := s.writer
	if flush {
		s.must(old.Flush(context.Background()))
	}
	s.open(true)
	_ = old.Close(context.Background()) // it was fenced
}

// reshard is a topology change.
func (s *site) reshard(shards uint32) {
	s.t.Helper()
	ctx := context.Background()
	next := s.epoch(s.topo.Epoch+1, shards, catalog.TopologyOpening)
	old, err := s.cat.SetTopologyState(ctx, s.topo.Epoch, catalog.TopologyOpen, catalog.TopologyClosing)
	s.must(err)
	<-s.writer.Over()
	s.must(s.writer.Close(ctx))
	for shard := range segment.Shard(old.Shards) {
		_, err := localtier.CloseChain(ctx, localtier.Options{Catalog: s.cat, Classes: s.classes, Topology: old}, shard)
		s.must(err)
	}
	_, err = s.cat.SetTopologyState(ctx, old.Epoch, catalog.TopologyClosing, catalog.TopologyClosed)
	s.must(err)
	s.topo, err = s.cat.SetTopologyState(ctx, next.Epoch, catalog.TopologyOpening, catalog.TopologyOpen)
	s.must(err)
	s.open(false)
}

// audit runs an auditor until the returned function is called.
func (s *site) audit() (end func()) {
	s.t.Helper()
	log := slog.New(slog.DiscardHandler)
	settler, err := settle.New(settle.Deps{
		Catalog: s.cat, Classes: s.classes, Clock: time.Now, Logger: log, NewNonce: uuid.NewString, NewUUID: uuid.New,
	}, settle.Config{SettleAge: -1, SettleBytes: -1, SpoolDir: s.dir})
	s.must(err)
	a, err := auditor.New(auditor.Deps{ID: "a1", Catalog: s.cat, Classes: s.classes, Settler: settler, Logger: log, Clock: time.Now}, auditor.Config{
		Interval: 10 * time.Millisecond,
	})
	s.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			s.t.Errorf("auditor: %v", err)
		}
	}
}

func (s *site) append(stream string, payloads ...string) localtier.Result {
	s.t.Helper()
	rows := make([]segment.Row, len(payloads))
	for i := range rows {
		rows[i].Payload = []byte(payloads[i])
	}
	res, err := s.writer.Append(context.Background(), stream, rows, localtier.AckLocal)
	s.must(err)
	return res
}

func (s *site) flush() {
	s.t.Helper()
	s.must(s.writer.Flush(context.Background()))
}
