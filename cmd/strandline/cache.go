package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/internal/objcache/instance"
	"github.com/strandline/strandline/internal/objcache/wire"
	"github.com/strandline/strandline/objstore"
)

// cacheFlags are the knobs of one instance of the object cache.
type cacheFlags struct {
	listen string
	access accessFlags
	watch  telemetryFlags
	remote bool
	stores []string
	bytes  sizeFlag
	config instance.Config
}

func (a *app) cacheCommand() *cobra.Command {
	f := &cacheFlags{}
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "One instance of the object cache: ranges of the bucket's objects on local disk, until Ctrl-C",
		Long: "Serves processes that name it in --object-cache-instances. What it holds is verified at every hit and forgotten through\n" +
			"deletes, which go through it; if it is away, everything goes to the bucket directly. It may be stopped, lost or emptied at any\n" +
			"time. Its callers' tokens need the scope read, and admin for processes that delete (auditors, up); without --token-file and\n" +
			"--tls-client-ca, whoever reaches --listen can read and delete in these buckets.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.cache(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	f.bytes = instance.DefaultBytes
	fs.StringVar(&f.listen, "listen", "127.0.0.1:8091", "address to serve on")
	fs.BoolVar(&f.remote, "allow-remote", false, "serve on an address that is not loopback without authentication or without TLS: all who reach it can read and delete")
	f.access.register(fs)
	f.watch.register(fs)
	fs.StringVar(&f.config.Dir, "cache-dir", "", "directory of its files; each instance has its own")
	fs.Var(&f.bytes, "cache-bytes", "most bytes of its files, 64MiB or more")
	fs.DurationVar(&f.config.MaxAge, "max-age", instance.DefaultMaxAge, "longest that a range is served after it was read of the bucket: bounds what a delete that never arrived leaves readable")
	fs.StringArrayVar(&f.stores, "store", nil, "CLASS=URL[,URL…], as for all commands; any classes")
	a.check("cache", func() error { _, err := f.validate(); return err })
	return cmd
}

// validate reports every fault at once.
func (f *cacheFlags) validate() ([]classSpec, error) {
	f.config.Bytes = int64(f.bytes)
	errs := []error{f.config.Validate(), f.access.validate(), f.watch.validate()}
	if f.bytes == 0 {
		errs = append(errs, errors.New("--cache-bytes 0: give 64MiB or more"))
	}
	if f.config.MaxAge == 0 {
		errs = append(errs, errors.New("--max-age 0: give a positive one"))
	}
	if _, _, err := net.SplitHostPort(f.listen); err != nil {
		errs = append(errs, fmt.Errorf("--listen %q: give HOST:PORT", f.listen))
	} else if !f.remote {
		errs = append(errs, f.access.exposed("--listen", f.listen))
	}
	if len(f.stores) == 0 {
		errs = append(errs, errors.New("give the buckets it serves: --store CLASS=URL"))
	}
	specs, err := parseClasses(f.stores)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, usage("%w", err)
	}
	return specs, nil
}

func (a *app) cache(ctx context.Context, f *cacheFlags) (err error) {
	specs, err := f.validate()
	if err != nil {
		return err
	}
	log, err := a.logger()
	if err != nil {
		return err
	}
	f.config.Logger, f.config.Keys = log, immutable
	t := &tier{classes: objstore.Classes{}}
	defer func() { err = closing(err, t) }()
	buckets, err := openBuckets(ctx, t, specs)
	if err != nil {
		return err
	}
	if err := f.watch.start(ctx, "cache", t, log); err != nil {
		return err
	}
	open, err := f.access.open(log)
	if err != nil {
		return err
	}
	t.closers = append(t.closers, open.Close)
	c, err := f.openInstance(open, buckets)
	if err != nil {
		return err
	}
	t.closers = append(t.closers, c.Close)
	listener, err := a.listenForRanges(f, open)
	if err != nil {
		return err
	}
	src := t.watched()
	src.Cache, src.Ready = c.Stats, func() error { return nil }
	t.watch.Watch(src)
	err = serveCache(ctx, withMetrics(c.Handler(), t.watch.Metrics(), f.config.Guard), listener, log)
	log.Info("stopped", "stats", c.Stats())
	return err
}

// openInstance opens the directory, which one process at a time may have.
func (f *cacheFlags) openInstance(open *openAccess, buckets map[string]*objstore.Store) (*instance.Cache, error) {
	if open.tokens != nil {
		f.config.Guard = open.tokens.Guard
	}
	c, err := instance.Open(f.config, buckets)
	if errors.Is(err, instance.ErrLocked) {
		return nil, &exitError{code: exitFenced, err: err}
	}
	return c, err
}

// listenForRanges listens once the directory is open, and says where.
func (a *app) listenForRanges(f *cacheFlags, open *openAccess) (net.Listener, error) {
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return nil, fmt.Errorf("serve HTTP: %w; give another --listen", err)
	}
	f.access.say(f.config.Logger, listener.Addr().String())
	scheme := "http"
	if cfg := open.httpTLS(); cfg != nil {
		listener, scheme = tls.NewListener(listener, cfg), "https"
	}
	a.sayListening(scheme, listener.Addr())
	return listener, nil
}

// openBuckets opens the stores and names each as its clients do, by its stamp.
func openBuckets(ctx context.Context, t *tier, specs []classSpec) (map[string]*objstore.Store, error) {
	buckets := map[string]*objstore.Store{}
	for _, spec := range specs {
		open := func(ctx context.Context, i int) (objstore.Driver, error) {
			return openDriver(ctx, spec.urls[i], modeRead)
		}
		if err := openClass(ctx, t, spec, open); err != nil {
			return nil, err
		}
		set := t.classes[spec.class]
		for _, store := range set {
			id, err := bucketID(ctx, store, spec.class, len(set) == 1)
			if err != nil {
				return nil, err
			}
			buckets[id] = store
		}
	}
	return buckets, nil
}

// bucketID is what an instance and its clients call a bucket.
func bucketID(ctx context.Context, store *objstore.Store, class string, alone bool) (string, error) {
	stamp, put, found, err := check.Stamp(ctx, store)
	switch {
	case err != nil:
		return "", err
	case !found:
		return "", fmt.Errorf("%w: %s has no stamp; start its writer first, or look at --store", check.ErrNoDeployment, store.Name())
	case string(stamp.Class) != class:
		return "", fmt.Errorf("the stamp of %s: %w: it serves class %q, but is given as %q; check --store", store.Name(), check.ErrNotMine, stamp.Class, class)
	}
	return wire.Bucket(stamp.Deployment.String(), class, put, store.Name(), alone), nil
}

// withMetrics puts the scrape beside an instance's routes.
func withMetrics(routes, metrics http.Handler, guard func(string, http.Handler) http.Handler) http.Handler {
	if guard != nil {
		metrics = guard(httpapi.ScopeRead, metrics)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.Handle("/", routes)
	return mux
}

// requestTimeout is for requests to come in whole: a thousand keys at most.
const requestTimeout = 30 * time.Second

// serveCache serves until ctx ends. Reads that are cut then are finished by their
// clients at the bucket.
func serveCache(ctx context.Context, routes http.Handler, l net.Listener, log *slog.Logger) error {
	server := httpapi.NewServer(routes, log)
	server.ReadTimeout = requestTimeout
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-running.Done()
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		if err := server.Shutdown(bound); err != nil {
			return server.Close()
		}
		return nil
	})
	return g.Wait()
}
