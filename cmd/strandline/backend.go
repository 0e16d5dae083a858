package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/telemetry"
	"github.com/strandline/strandline/objstore"
)

// backendFlags say where bucket and catalog are.
type backendFlags struct {
	dir     string
	stores  []string
	catalog string
	// maxConns bounds the connections to PostgreSQL
	maxConns int
	// prove is asked about the stores before anything is written to them; nil: not asked.
	prove func(ctx context.Context, classes objstore.Classes) error
	cache throughCache
	// patient is for a service that writes: of a class with several buckets all but the
	// first may be away.
	patient bool
}

func (b *backendFlags) register(f *pflag.FlagSet) {
	f.StringVar(&b.dir, "dir", "", "embedded layout: DIR/bucket, DIR/catalog.db, DIR/writer (default strandline-data, unless --store and --catalog are given)")
	f.StringArrayVar(&b.stores, "store", nil, "CLASS=URL[,URL…]: "+storeURLs)
	f.StringVar(&b.catalog, "catalog", "", "catalog: "+catalogURLs)
	f.IntVar(&b.maxConns, "catalog-max-conns", defaultMaxConns, "connections to PostgreSQL that this process may hold, 2 to 1000; the server's max_connections is shared by all")
}

// mode is how a tier is opened.
type mode int

const (
	modeRead   mode = iota // reads only, nothing is made
	modeCold               // likewise, and of a class with several buckets some may be away
	modeWrite              // changes the catalog or the bucket; the deployment must stand
	modeCreate             // founds the deployment if there is none
)

// tier is an opened deployment.
type tier struct {
	catalog catalog.Catalog
	classes objstore.Classes
	reads   objstore.Classes // for cold reads: the same buckets, perhaps through the object cache
	dir     string
	closers []func() error

	watch *telemetry.Provider // nil: a command that serves nothing
	pool  func() catalog.Pool // of the catalog's connections; nil: it has none
	newer func() error        // the catalog's schema is none of this build's any more; nil: nobody looks
}

func (t *tier) Close() error {
	var errs []error
	for i := len(t.closers) - 1; i >= 0; i-- {
		errs = append(errs, t.closers[i]())
	}
	return errors.Join(errs...)
}

// open opens catalog and stores and holds their stamps against each other (03 §0).
func (b *backendFlags) open(ctx context.Context, m mode) (_ *tier, err error) {
	if err := b.complete(); err != nil {
		return nil, err
	}
	t := &tier{dir: b.dir, classes: objstore.Classes{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	if err := b.layout(m); err != nil {
		return nil, err
	}
	if _, err := b.cache.config(); err != nil {
		return nil, err
	}
	specs, err := parseStores(b.stores)
	if err != nil {
		return nil, err
	}
	if err := b.waiting("the catalog "+shownCatalog(b.catalog)+": it does not answer, or another process holds its lock", func() error { return b.openCatalog(ctx, t, m) }); err != nil {
		return nil, err
	}
	stores, err := storeMode(ctx, t, m)
	if err != nil {
		return nil, err
	}
	for _, spec := range specs {
		open := b.opener(t, spec, stores)
		if err := openClass(ctx, t, spec, open); err != nil {
			return nil, err
		}
	}
	if err := b.waiting("the stamps of the buckets, and the proofs of what they can do", func() error { return b.stamped(ctx, t, m) }); err != nil {
		return t, err
	}
	t.reads = t.classes
	return t, b.cache.wrap(ctx, t)
}

// stamped proves the stores and holds their stamps against the catalog, or sets them.
func (b *backendFlags) stamped(ctx context.Context, t *tier, m mode) error {
	classes, err := answering(t.classes)
	if err != nil {
		return err
	}
	if m == modeCreate {
		if err := b.proven(ctx, classes); err != nil {
			return err
		}
		_, err := check.Ensure(ctx, t.catalog, classes)
		return err
	}
	if err := check.Verify(ctx, t.catalog, classes); err != nil {
		return err
	}
	return b.proven(ctx, classes)
}

func (b *backendFlags) proven(ctx context.Context, classes objstore.Classes) error {
	if b.prove == nil {
		return nil
	}
	return b.prove(ctx, classes)
}

// storeMode is m, but that a deployment with an epoch has its buckets: one that is missing
// is away, and an empty one made in its place would be written to by whoever still runs.
func storeMode(ctx context.Context, t *tier, m mode) (mode, error) {
	if m != modeCreate {
		return m, nil
	}
	tops, err := t.catalog.Topologies(ctx)
	if len(tops) > 0 {
		m = modeWrite
	}
	return m, err
}

// defaultDir is the deployment of the quick start.
const defaultDir = "strandline-data"

// complete derives what --dir stands for.
func (b *backendFlags) complete() error {
	if b.dir == "" && len(b.stores) == 0 && b.catalog == "" {
		b.dir = defaultDir
	}
	if b.dir != "" {
		abs, err := filepath.Abs(b.dir)
		if err != nil {
			return usage("--dir: %w", err)
		}
		b.dir = abs
		if len(b.stores) == 0 {
			b.stores = []string{"standard=" + (&url.URL{Scheme: "file", Path: filepath.Join(abs, "bucket")}).String()}
		}
		if b.catalog == "" {
			b.catalog = (&url.URL{Scheme: "sqlite", Path: filepath.Join(abs, "catalog.db")}).String()
		}
	}
	if len(b.stores) == 0 || b.catalog == "" {
		return usage("--store and --catalog come together; or give --dir DIR")
	}
	return nil
}

// layout makes the embedded directory, or says that it is not there.
func (b *backendFlags) layout(m mode) error {
	if b.dir == "" {
		return nil
	}
	if m == modeCreate {
		if err := os.MkdirAll(b.dir, 0o755); err != nil {
			return fmt.Errorf("make --dir: %w; give a directory that can be made", err)
		}
		return nil
	}
	info, err := os.Stat(b.dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: %s does not exist; start one with strandline up --dir %s", check.ErrNoDeployment, b.dir, b.dir)
	case err != nil:
		return fmt.Errorf("--dir: %w", err)
	case !info.IsDir():
		return usage("--dir %s is not a directory", b.dir)
	}
	return nil
}
