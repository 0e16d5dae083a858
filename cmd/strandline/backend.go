package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/telemetry"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/fsstore"
	"github.com/strandline/strandline/objstore/miniostore"
	"github.com/strandline/strandline/objstore/s3store"
	"github.com/strandline/strandline/segment"
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

// storeURLs is what --store takes, for help texts and errors.
const storeURLs = "file:///dir, minio://host:port/bucket/prefix?tls=, s3://bucket/prefix?region=&endpoint=; " +
	"s3 also takes path-style=, both S3 kinds ca=FILE, and what the store cannot do: parts=equal, range-copy=false, concurrency=N"

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
			return fmt.Errorf("make --dir: %w", err)
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

// classSpec is one --store: a class and its buckets.
type classSpec struct {
	class string
	urls  []string
}

// parseStores reads every --store before anything is opened.
func parseStores(flags []string) ([]classSpec, error) {
	specs, err := parseClasses(flags)
	if err == nil && !slices.ContainsFunc(specs, func(s classSpec) bool { return s.class == string(segment.ClassStandard) }) {
		err = usage("--store: the class standard is missing; give --store standard=URL")
	}
	return specs, err
}

// parseClasses reads them for whoever does not need the standard class.
func parseClasses(flags []string) ([]classSpec, error) {
	var specs []classSpec
	seen := map[string]bool{}
	for _, flag := range flags {
		class, urls, ok := strings.Cut(flag, "=")
		if !ok || class == "" || strings.Contains(class, ":") {
			return nil, usage("--store %q: give CLASS=URL, for example standard=file:///data/bucket", objstore.Shown(flag))
		}
		if seen[class] {
			return nil, usage("--store: class %q is given twice; list the buckets of a class with commas", class)
		}
		seen[class] = true
		specs = append(specs, classSpec{class, strings.Split(urls, ",")})
	}
	return specs, nil
}

func openClass(ctx context.Context, t *tier, spec classSpec, open func(ctx context.Context, i int) (objstore.Driver, error)) error {
	for i := range spec.urls {
		driver, err := open(ctx, i)
		if err != nil {
			return err
		}
		store, err := objstore.New(driver, storeConfig(driver))
		if err != nil {
			return errors.Join(err, driver.Close())
		}
		if a, is := driver.(*away); is {
			a.met = store.Narrow
		}
		t.closers = append(t.closers, store.Close)
		// A copy in the bucket itself is none, and nothing would ever say so.
		if slices.ContainsFunc(t.classes[spec.class], func(s *objstore.Store) bool { return s.Name() == store.Name() }) {
			return usage("--store %s: %s is given twice; give another bucket for the copies, or none", spec.class, store.Name())
		}
		t.classes[spec.class] = append(t.classes[spec.class], store)
	}
	return nil
}

// storeConfig: one that is known to be away is not asked again and again.
func storeConfig(d objstore.Driver) objstore.Config {
	if _, is := d.(*away); is {
		return objstore.Config{Attempts: 1}
	}
	return objstore.Config{}
}

func openDriver(ctx context.Context, raw string, m mode) (objstore.Driver, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, usage("--store: %q is no URL", objstore.Shown(raw))
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" || u.Path == "" {
			return nil, usage("--store %q: give file:///absolute/dir", objstore.Shown(raw))
		}
		return fsstore.Open(u.Path, fsstore.Options{Create: m == modeCreate})
	case "minio":
		cfg, err := miniostore.ParseURL(raw)
		if err != nil {
			return nil, usage("--store: %w", err)
		}
		return miniostore.Open(ctx, cfg)
	case "s3":
		cfg, err := s3store.ParseURL(raw)
		if err != nil {
			return nil, usage("--store: %w", err)
		}
		return s3store.Open(ctx, cfg)
	default:
		return nil, usage("--store %q: the scheme is file, minio or s3", objstore.Shown(raw))
	}
}
