package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/httpapi"
)

// readerFlags are the knobs of `reader`.
type readerFlags struct {
	backend backendFlags
	listen  listenFlags
	poll    time.Duration
}

// Bounds of --follow-poll: each follower asks the catalog so often.
const (
	defaultFollowPoll = time.Second
	minFollowPoll     = 50 * time.Millisecond
	maxFollowPoll     = time.Minute
)

func (a *app) readerCommand() *cobra.Command {
	r := &readerFlags{}
	cmd := &cobra.Command{
		Use:   "reader",
		Short: "Serve cold reads over HTTP from catalog and bucket, stateless",
		Long: "Serves what is absorbed: rows of streams and of shards, lists of streams, status and explain. It holds\n" +
			"nothing, needs no --dir, and any number may run. Rows of the last seconds are at their owner only, and come here once their\n" +
			"segment is absorbed; followers ask the catalog for them every --follow-poll. Appends, trims, deletes and consumers are answered with the\n" +
			"owner's address (421), or refused (501). A bucket of a set may be away.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.reader(cmd.Context(), r) },
	}
	f := cmd.Flags()
	r.backend.register(f)
	r.backend.cache.register(f)
	r.listen.register(f, defaultHTTP)
	f.DurationVar(&r.poll, "follow-poll", defaultFollowPoll, "how often a follower asks the catalog for rows that came in, 50ms to 1m")
	a.check("reader", r.validate)
	return cmd
}

// validate reports every fault at once.
func (r *readerFlags) validate() error {
	errs := []error{r.backend.validate(), r.listen.validate()}
	if r.listen.http == "" {
		errs = append(errs, errors.New("--http: give the address to serve reads on"))
	}
	if r.poll < minFollowPoll || r.poll > maxFollowPoll {
		errs = append(errs, fmt.Errorf("--follow-poll %v: give %v to %v", r.poll, minFollowPoll, maxFollowPoll))
	}
	if err := errors.Join(errs...); err != nil {
		return usage("%w", err)
	}
	return nil
}

// Looks of a reader. One that has not reached catalog and bucket for readerPatience sends
// its clients elsewhere.
const (
	readerLooks    = 2 * time.Second
	readerPatience = 10 * time.Second
)

func (a *app) reader(ctx context.Context, r *readerFlags) error {
	if err := r.validate(); err != nil {
		return err
	}
	log, err := a.logger()
	if err != nil {
		return err
	}
	return r.listen.within(ctx, log, func() error { return a.readerUntil(ctx, r, log) })
}

// readerUntil is reader, from its first look to its last close.
func (a *app) readerUntil(ctx context.Context, r *readerFlags, log *slog.Logger) (err error) {
	if err := free(ctx, port{"--http", r.listen.http}); err != nil {
		return err
	}
	r.backend.cache.log = log
	t, err := whenFounded(func(ctx context.Context) (*tier, error) { return r.backend.open(ctx, modeCold) }, log)(ctx)
	if err != nil {
		return ignoreCancel(ctx, err)
	}
	defer func() { err = r.listen.out.closing(err, t) }()
	if err := r.listen.telemetry.start(ctx, "reader", t, log); err != nil {
		return err
	}
	around, err := r.listen.surround(log)
	if err != nil {
		return err
	}
	around.shown(t)
	s := &readService{app: a, flags: r, tier: t, log: log, around: around}
	return s.run(ctx)
}

// readService serves reads of the epochs there are.
type readService struct {
	*app
	flags    *readerFlags
	tier     *tier
	log      *slog.Logger
	around   *surroundings
	reader   *coldload.Reader
	pulse    *pulse
	stopping stopping
	tail     httpapi.Tail // one for the Handlers of all epochs
	routes   atomic.Pointer[http.Handler]
	// epoch that bare seqs are taken for; refresh only
	epoch catalog.Topology
}

func (s *readService) run(ctx context.Context) (err error) {
	if s.reader, err = coldload.New(s.tier.catalog, s.tier.reads, coldload.Config{}); err != nil {
		return err
	}
	s.pulse = newPulse(s.tier.answers, readerLooks, func() time.Duration { return readerPatience })
	s.stopping = newStopping()
	if s.tier.watch != nil {
		src := s.tier.watched()
		src.Ready = s.pulse.ready
		s.tier.watch.Watch(src)
	}
	if err := s.firstEpoch(ctx); err != nil {
		return ignoreCancel(ctx, err)
	}
	listener, err := net.Listen("tcp", s.flags.listen.http)
	if err != nil {
		return fmt.Errorf("serve HTTP: %w; give another --http", err)
	}
	s.sayListening(s.around.scheme(), listener.Addr())
	err = serveHTTP(ctx, &httpService{
		flags: &s.flags.listen, around: s.around, log: s.log, listener: listener, stopping: s.stopping,
		handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.routes.Load()).ServeHTTP(w, r) }),
		parts:   []func(context.Context) error{s.pulse.run, s.follow},
	})
	s.log.Info("stopped", "requests", requestsOf(s.tier))
	return err
}

// errNoEpoch: a founder is between its two steps, or stopped there.
var errNoEpoch = errors.New("the deployment has no epoch yet; start a writer, it goes on with founding it")

// firstEpoch waits a while for the epoch that routes need.
func (s *readService) firstEpoch(ctx context.Context) error {
	for end := time.Now().Add(foundingPatience); ; {
		err := s.refresh(ctx)
		if !errors.Is(err, errNoEpoch) || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(foundingEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// refresh takes the newest epoch that is there.
func (s *readService) refresh(ctx context.Context) error {
	tops, err := s.tier.catalog.Topologies(ctx)
	if err != nil {
		return err
	}
	if len(tops) == 0 {
		return errNoEpoch
	}
	top := newest(tops)
	if s.routes.Load() != nil && top.Epoch == s.epoch.Epoch {
		return nil
	}
	deps := httpapi.Deps{
		Reader: s.reader, Catalog: s.tier.catalog, Epoch: top.Epoch, Shards: top.Shards, Logger: s.log, Tail: &s.tail,
		Status:     func(ctx context.Context) (any, error) { return statusOf(ctx, s.tier) },
		Explain:    s.tier.answer,
		FollowPoll: s.flags.poll,
		ReadyCheck: func(context.Context) error { return s.pulse.ready() },
		Stopping:   s.stopping.drains,
	}
	s.around.fill(&deps)
	routes := httpapi.Handler(deps)
	s.routes.Store(&routes)
	s.epoch = top
	return nil
}

// follow goes on to the next epoch once it is there.
func (s *readService) follow(ctx context.Context) error {
	t := time.NewTicker(epochEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		if err := s.refresh(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, catalog.ErrUnavailable) { // readiness tells of a catalog that is away
			return err
		}
	}
}
