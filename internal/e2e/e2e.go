//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/segment"
)

// Options of a run.
type Options struct {
	// Dir is where everything lies, the processes' logs among it. It stays.
	Dir string
	// Hold is how long load runs between two faults, once all went on after the first.
	Hold time.Duration
	// Streams of each shard.
	Streams int
}

// Report is what a run did.
type Report struct {
	Lines   []string
	Rows    int // acknowledged
	Shared  int // of them as shared
	Excused int // acknowledged as local on the disk that was deleted, and missing
	Records int // of OTLP
	Logged  map[string]int
}

func (r *Report) note(format string, args ...any) {
	r.Lines = append(r.Lines, fmt.Sprintf(format, args...))
}

func (r *Report) String() string { return strings.Join(r.Lines, "\n") }

// run is one run under way.
type run struct {
	opts      Options
	site      *Site
	fleet     *fleet
	ledger    *ledger
	report    *Report
	atReaders *client.Client
	streams   map[segment.Shard][]string
	consumers [shards]*consumer
	followers []*follower
	senders   []*sender
	auditor   *Process // the one that lives to the end
	windows   []window
	waits     waits
}

// Run starts a deployment, breaks it, and judges what is there in the end. The error says
// all that must not be.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	r := &run{opts: o, ledger: newLedger(), report: &Report{}, streams: names(o.Streams)}
	begun := time.Now()
	if r.site, err = Open(ctx, o.Dir); err != nil {
		return r.report, err
	}
	r.report.note("built, and servers stand, after %v", time.Since(begun).Round(10*time.Millisecond))
	defer func() { err = errors.Join(err, r.site.Close()) }()
	if err := os.MkdirAll(r.site.Dir("senders"), 0o755); err != nil {
		return r.report, err
	}
	r.fleet = &fleet{site: r.site}
	defer func() { err = errors.Join(err, r.fleet.kill()) }()
	if err := r.fleet.start(ctx); err != nil {
		return r.report, err
	}
	r.report.note("all processes stand after %v", time.Since(begun).Round(10*time.Millisecond))
	if err := r.broken(ctx); err != nil {
		return r.report, errors.Join(err, r.complaints())
	}
	r.report.note("in all %v", time.Since(begun).Round(10*time.Millisecond))
	return r.report, r.complaints()
}

// broken is the run between start and end of the processes.
func (r *run) broken(ctx context.Context) error {
	l, err := r.startLoad(ctx)
	if err != nil {
		return err
	}
	err = r.faults(l.alive)
	if err = errors.Join(err, l.endProducers()); err == nil {
		err = r.drained(ctx)
	}
	if err = errors.Join(err, l.end()); err != nil {
		return err
	}
	return r.finish(ctx)
}

func (r *run) complaints() error {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	shown := r.ledger.complaints[:min(len(r.ledger.complaints), 30)]
	if len(shown) == 0 {
		return nil
	}
	return fmt.Errorf("%d complaints:\n%s", len(r.ledger.complaints), strings.Join(shown, "\n"))
}

// load is what clients do meanwhile.
type load struct {
	alive     context.Context // ends with the first client that fails
	fail      context.CancelCauseFunc
	producing context.CancelFunc
	reading   context.CancelFunc
	producers *errgroup.Group
	others    *errgroup.Group
}

// lastAnswer is how long the last append of each producer is waited for.
const lastAnswer = 60 * time.Second

func (l *load) start(g *errgroup.Group, f func() error) {
	g.Go(func() error {
		err := f()
		if err != nil {
			l.fail(err)
		}
		return err
	})
}

func (r *run) startLoad(ctx context.Context) (*load, error) {
	atWriters, err := client.New(client.Config{URL: urls(r.fleet.writers[:]...), Patience: startWithin, OnRetry: r.waits.note})
	if err != nil {
		return nil, err
	}
	if r.atReaders, err = caller(r.fleet.readers[:]...); err != nil {
		return nil, err
	}
	if err := r.clients(ctx, atWriters); err != nil {
		return nil, err
	}
	l := &load{}
	alive, fail := context.WithCancelCause(ctx)
	l.alive, l.fail = alive, fail
	producing, stop := context.WithCancel(alive)
	reading, cease := context.WithCancel(alive)
	l.producing, l.reading = stop, func() { cease(); fail(nil) }
	l.producers, l.others = &errgroup.Group{}, &errgroup.Group{}
	last, lastCancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(producing, func() { time.AfterFunc(lastAnswer, lastCancel) })
	for s, list := range r.streams {
		for i, name := range list {
			r.ledger.add(name, s)
			p := &producer{run: r, stream: name, shard: s, rng: rand.New(rand.NewPCG(uint64(s), uint64(i))), caller: atWriters}
			l.start(l.producers, func() error { return p.produce(producing, last) })
		}
	}
	for _, x := range r.senders {
		l.start(l.producers, func() error { return x.send(producing, last) })
	}
	for _, c := range r.consumers {
		l.start(l.others, func() error { return c.consume(reading) })
	}
	for _, f := range r.followers {
		l.start(l.others, func() error { return f.follow(reading) })
	}
	return l, nil
}

// clients makes consumers, followers and senders. Those that go through one writer go
// through one that lives to the end.
func (r *run) clients(ctx context.Context, atWriters *client.Client) error {
	writer := r.fleet.writers[(victim+1)%writers]
	one, err := caller(writer)
	if err != nil {
		return err
	}
	for s := range segment.Shard(shards) {
		r.consumers[s] = &consumer{run: r, shard: s, caller: atWriters}
	}
	lost, stays := r.streams[shardsOf(victim)[0]][0], r.streams[shardsOf((victim + 1) % writers)[0]][0]
	r.followers = []*follower{
		{who: "a follower through a reader", stream: lost, caller: r.atReaders},
		{who: "a follower through the owner", stream: stays, caller: one, options: client.ReadOptions{Owner: true}},
		{who: "a follower through another writer", stream: lost, caller: one},
	}
	grpc, err := r.newSender(ctx, shardsOf(victim), writer.listening("grpc://"), false)
	if err != nil {
		return err
	}
	http, err := r.newSender(ctx, shardsOf((victim+2)%writers), writer.URL(), true)
	r.senders = []*sender{grpc, http}
	return err
}

// endProducers ends what appends, and waits for the last answers.
func (l *load) endProducers() error {
	l.producing()
	return l.producers.Wait()
}

// end ends the rest.
func (l *load) end() error {
	l.reading()
	return l.others.Wait()
}
