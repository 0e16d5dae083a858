//go:build unix

package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/segment"
)

// Options of a run.
type Options struct {
	Duration time.Duration // of the faults; founding and the end come on top
	Seed     uint64
	Dir      string // empty or missing; it stays if the run finds anything
	Binary   string // the built command; empty: it is built
	Calm     bool   // no faults
	Logf     func(format string, args ...any)
	// Sabotage is called before the judgement, to prove that it can fail; nil: nothing.
	Sabotage func(ctx context.Context, r *run) error
}

// run is one soak.
type run struct {
	opts   Options
	site   *site
	fleet  *fleet
	ledger *ledger
	watch  *watch
	report *Report
	begun  time.Time

	mu       sync.Mutex
	findings []string
	events   []string
}

// maxFindings and maxEvents bound what is kept of a run that goes wrong.
const (
	maxFindings = 40
	maxEvents   = 60
)

// complain enters a finding: the product broke a promise.
func (r *run) complain(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.findings) < maxFindings {
		r.findings = append(r.findings, fmt.Sprintf("%7.2fs %s", time.Since(r.begun).Seconds(), fmt.Sprintf(format, args...)))
		r.opts.Logf("FINDING %s", r.findings[len(r.findings)-1])
	}
}

// event remembers what was done to the processes.
func (r *run) event(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := fmt.Sprintf("%7.2fs %s", time.Since(r.begun).Seconds(), fmt.Sprintf(format, args...))
	r.events = append(r.events, e)
	if len(r.events) > maxEvents {
		r.events = r.events[1:]
	}
}

// rng is the random source of one actor: the same for the same seed.
func (r *run) rng(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(r.opts.Seed, actor)) }

// Run soaks once. The report is there even if the error is not nil: what could not be done, or
// what the product did that it must not.
func Run(ctx context.Context, o Options) (*Report, error) {
	r := &run{opts: o, begun: time.Now(), report: newReport(o)}
	r.ledger = newLedger(streamNames(), r.complain)
	err := r.all(ctx)
	r.report.gather(r)
	if err == nil && len(r.report.Findings) == 0 {
		return r.report, os.RemoveAll(o.Dir)
	}
	return r.report, errors.Join(err, r.report.failure())
}

func (r *run) all(ctx context.Context) (err error) {
	if r.site, err = found(ctx, r.opts.Dir, r.opts.Binary); err != nil {
		return fmt.Errorf("found: %w", err)
	}
	defer func() { err = errors.Join(err, r.site.close()) }()
	r.fleet = newFleet(r.site)
	defer func() { err = errors.Join(err, r.fleet.endAll()) }()
	if err := r.begin(ctx); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := r.soak(ctx); err != nil {
		return fmt.Errorf("soak: %w", err)
	}
	if err := r.finish(ctx); err != nil {
		return fmt.Errorf("finish: %w", err)
	}
	return nil
}

// begin starts everything, consumers first: interest lets go of what all of them have.
func (r *run) begin(ctx context.Context) error {
	for _, w := range r.fleet.writers {
		if err := w.start(ctx, false); err != nil {
			return err
		}
	}
	if err := r.site.look(ctx); err != nil {
		return err
	}
	for _, a := range r.fleet.auditors {
		if err := a.start(); err != nil {
			return err
		}
	}
	for s := range segment.Shard(shards) {
		for _, name := range []string{"fast", "slow"} {
			if err := r.createConsumer(ctx, s, name); err != nil {
				return err
			}
		}
	}
	_, p, err := r.site.run(ctx, "topology", r.site.with("topology", "set", "--retention", "interest", "--retain-segment-size", "64KiB", "--min-retained-segments", "1")...)
	if err == nil && p.Code() != exitOK {
		err = &child.EndedError{Process: p}
	}
	return err
}

// soak runs the actors and the faults. When the time is up the faults are undone first; then
// the producers end what they have begun.
func (r *run) soak(ctx context.Context) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	last, giveUp := context.WithCancel(ctx)
	defer giveUp()
	g, ctx := errgroup.WithContext(working)
	r.watch = newWatch(r)
	var producers errgroup.Group
	for i, name := range r.ledger.names() {
		p := r.newProducer(uint64(100+i), name)
		producers.Go(func() error { return p.produce(ctx, last) })
	}
	for _, act := range r.actors() {
		g.Go(func() error { return act(ctx) })
	}
	err := r.chaos(ctx)
	r.report.soaked(r)
	stop()
	patience := time.AfterFunc(2*startTimeout, giveUp)
	defer patience.Stop()
	return errors.Join(err, producers.Wait(), g.Wait())
}

func (r *run) newProducer(actor uint64, name string) *producer {
	shard := segment.ShardOf(name, shards)
	return &producer{
		run: r, id: "p:" + name, stream: name, shard: shard, rng: r.rng(actor), seq: 1, begins: map[uint64]entry{},
		who: caller{http: newClient(), shard: shard},
	}
}

// actors are all that run beside producers and faults; each ends with its context.
func (r *run) actors() []func(context.Context) error {
	out := []func(context.Context) error{r.watch.gaze, r.operate, r.read, r.readOwners}
	for s := range segment.Shard(shards) {
		for i, name := range []string{"fast", "slow"} {
			c := r.newConsumer(uint64(200+10*int(s)+i), s, name)
			out = append(out, c.consume)
		}
	}
	return out
}

// streamNames are some streams of each shard, and large rows on every other one.
func streamNames() (out []string) {
	for s := range segment.Shard(shards) {
		out = append(out, nameOn(s, "small"), nameOn(s, "a/b"))
		if s%2 == 0 {
			out = append(out, nameOn(s, rowsSent().Fat+"x"))
		}
	}
	return out
}

func nameOn(s segment.Shard, stem string) string {
	for i := 0; ; i++ {
		if name := fmt.Sprintf("%s-%d", stem, i); segment.ShardOf(name, shards) == s {
			return name
		}
	}
}
