package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// upFlags are the knobs of `up`.
type upFlags struct {
	backend  backendFlags
	auditor  auditorFlags
	http     string
	remote   bool
	shards   uint32
	steal    bool
	shutdown time.Duration
	ack      string
	segBytes sizeFlag
	segAge   time.Duration
	writer   localtier.Config
}

// firstEpoch is the epoch that a deployment begins with.
const firstEpoch segment.Epoch = 1

const defaultShards = 4

func (a *app) upCommand() *cobra.Command {
	u := &upFlags{segBytes: sizeFlag(wal.DefaultSegmentBytes)}
	u.writer.MinFreeDisk = localtier.DefaultMinFreeDisk
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Everything in one process: writer, auditor and HTTP, until Ctrl-C",
		Long: "Founds the deployment if there is none. On SIGINT or SIGTERM it stops taking rows, seals, publishes and absorbs what it has,\n" +
			"and gives up its lease; a second signal ends it at once (nothing acknowledged is lost: the next start goes on from its disk).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.up(cmd.Context(), u) },
	}
	f := cmd.Flags()
	u.backend.register(f)
	u.auditor.register(f)
	f.StringVar(&u.http, "http", "127.0.0.1:8420", "address to serve HTTP on")
	f.BoolVar(&u.remote, "allow-remote", false, "serve on an address that is not loopback, without authentication")
	f.Uint32Var(&u.shards, "shards", 0, "shards of a new deployment (default 4); of a standing one: must agree")
	f.BoolVar(&u.steal, "steal", false, "take chains whose owner's lease still lives")
	f.DurationVar(&u.shutdown, "shutdown-timeout", 2*time.Minute, "how long publishing may take on the way out")
	f.StringVar(&u.ack, "ack", "local", "default acknowledgement: local or shared")
	f.Var(&u.segBytes, "segment-size", "seal a segment at this size, 17MiB to 2GiB")
	f.DurationVar(&u.segAge, "segment-age", wal.DefaultSegmentAge, "seal a segment at this age, 1s to 24h")
	f.DurationVar(&u.writer.WAL.BatchWindow, "batch-window", 0, "wait on purpose before an fsync, 0 to 10s")
	f.DurationVar(&u.writer.SharedWindow, "shared-window", localtier.DefaultSharedWindow, "seal this early for shared acknowledgements")
	f.DurationVar(&u.writer.LeaseTime, "lease-time", localtier.DefaultLeaseTime, "how long appends go on while the catalog is away, 1s to 1h")
	f.Var((*sizeFlag)(&u.writer.MinFreeDisk), "min-free-disk", "refuse appends when the disk has less left")
	f.BoolVar(&u.writer.AckAfterLease, "ack-after-lease", false, "acknowledge locally even after the lease ran out: such rows may never enter the history")
	return cmd
}

// validate reports every fault at once.
func (u *upFlags) validate() error {
	u.writer.Ack = localtier.Ack(u.ack)
	u.writer.WAL.SegmentBytes = int64(u.segBytes)
	u.writer.WAL.SegmentAge = u.segAge
	errs := []error{u.writer.Validate(), u.auditor.validate()}
	host, _, err := net.SplitHostPort(u.http)
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("--http %q: give HOST:PORT", u.http))
	case !u.remote && !loopback(host):
		errs = append(errs, fmt.Errorf("--http %s is not loopback, and there is no authentication: give --allow-remote if you mean it", u.http))
	}
	// A zero field means the default to the packages; to whoever typed it, it is wrong.
	for _, f := range []struct {
		name string
		zero bool
	}{
		{"segment-size", u.segBytes == 0},
		{"segment-age", u.segAge == 0},
		{"shared-window", u.writer.SharedWindow == 0},
		{"lease-time", u.writer.LeaseTime == 0},
		{"shards", u.shards == 0 && u.auditor.given("shards")},
	} {
		if f.zero {
			errs = append(errs, fmt.Errorf("--%s 0: give a positive one", f.name))
		}
	}
	if u.writer.MinFreeDisk == 0 {
		u.writer.MinFreeDisk = -1 // the package's word for "not checked"
	}
	if u.shutdown <= 0 {
		errs = append(errs, fmt.Errorf("--shutdown-timeout %v: give a positive one", u.shutdown))
	}
	if err := errors.Join(errs...); err != nil {
		return usage("%w", err)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (a *app) up(ctx context.Context, u *upFlags) (err error) {
	if err := u.validate(); err != nil {
		return err
	}
	log, err := a.logger()
	if err != nil {
		return err
	}
	t, err := u.backend.open(ctx, modeCreate)
	if err != nil {
		return err
	}
	defer func() { err = closing(err, t) }()
	top, err := u.topology(ctx, t)
	if err != nil {
		return err
	}
	if err := u.auditor.seed(ctx, t.catalog, log); err != nil {
		return err
	}
	aud, err := u.auditor.build(t, log)
	if err != nil {
		return err
	}
	address, err := u.address(ctx)
	if err != nil {
		return err
	}
	w, err := u.openWriter(ctx, t, top, address, log)
	if err != nil {
		return err
	}
	// Recovery is over: only now may anyone connect.
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(fmt.Errorf("serve HTTP: %w; give another --http", err), w.Close(ctx))
	}
	reader, err := coldload.New(t.catalog, t.classes, coldload.Config{})
	if err != nil {
		return errors.Join(err, listener.Close(), w.Close(ctx))
	}
	server := httpapi.NewServer(httpapi.Handler(httpapi.Deps{
		Writer: w, Reader: reader, Plans: t.catalog, Epoch: top.Epoch, Logger: log,
		Status: func(ctx context.Context) (any, error) { return statusOf(ctx, t) },
	}), log)
	fmt.Fprintf(a.out, "listening on http://%s\n", listener.Addr())
	return u.serve(ctx, t, w, aud, server, listener, log)
}

// topology returns the open epoch, founding the first one. Its shard count is a
// constant: a flag that disagrees is refused.
func (u *upFlags) topology(ctx context.Context, t *tier) (catalog.Topology, error) {
	tops, err := t.catalog.Topologies(ctx)
	if err != nil {
		return catalog.Topology{}, err
	}
	want := catalog.Topology{Epoch: firstEpoch, Shards: defaultShards, Class: segment.ClassStandard, Settle: true, State: catalog.TopologyOpen}
	for _, s := range t.classes[string(segment.ClassStandard)] {
		want.Buckets = append(want.Buckets, s.Name())
	}
	if len(tops) > 0 {
		want = tops[len(tops)-1]
	}
	if u.shards != 0 {
		if len(tops) > 0 && u.shards != want.Shards {
			return want, usage("--shards %d: this deployment has %d shards, for good", u.shards, want.Shards)
		}
		want.Shards = u.shards
	}
	return check.EnsureEpoch(ctx, t.catalog, t.classes, want)
}

// address is where HTTP will be served: known before recovery, because the chain rows
// tell others of it. Port 0 becomes a free port, held only for a moment.
func (u *upFlags) address(ctx context.Context) (string, error) {
	host, port, err := net.SplitHostPort(u.http)
	if err != nil || port != "0" {
		return u.http, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("serve HTTP: %w; give another --http", err)
	}
	return l.Addr().String(), l.Close()
}

func (u *upFlags) openWriter(ctx context.Context, t *tier, top catalog.Topology, address string, log *slog.Logger) (*localtier.Writer, error) {
	if t.dir == "" {
		return nil, usage("up needs --dir for the writer's segments")
	}
	return localtier.Open(ctx, localtier.Options{
		Dir: filepath.Join(t.dir, "writer"), Catalog: t.catalog, Classes: t.classes, Topology: top,
		Address: "http://" + address, Steal: u.steal, Config: u.writer, Logger: log,
	})
}

// serve runs until ctx ends or a part fails, then stops in order: no more requests,
// no more duties, then everything local goes to the bucket.
func (u *upFlags) serve(ctx context.Context, t *tier, w *localtier.Writer, aud *auditor.Auditor, server *http.Server, l net.Listener, log *slog.Logger) error {
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		if err := aud.Run(running); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("auditor: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-running.Done()
		log.Info("stopping: sealing and publishing")
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), u.shutdown)
		defer cancel()
		return errors.Join(drain(bound, server, w), w.Close(bound))
	})
	err := g.Wait()
	log.Info("stopped", "requests", requestsOf(t))
	return err
}

// drain lets requests finish for a while, then cuts them: clients that only hold
// a connection must not hold up the publish. Appends that wait for a shared acknowledgement get it, since
// the writer flushes meanwhile.
func drain(ctx context.Context, server *http.Server, w *localtier.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	var g errgroup.Group
	g.Go(func() error {
		_ = w.Flush(ctx) // what it could not do, Close does or reports
		return nil
	})
	g.Go(func() error {
		if err := server.Shutdown(ctx); err != nil {
			return server.Close()
		}
		return nil
	})
	return g.Wait()
}

const drainTime = 10 * time.Second

// requestsOf sums what this process asked of its stores, by operation.
func requestsOf(t *tier) map[string]int64 {
	sum := map[string]int64{}
	for _, set := range t.classes {
		for _, s := range set {
			for op, n := range s.Counters().Requests {
				sum[string(op)] += n
			}
		}
	}
	return sum
}
