package main

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/fsstore"
	"github.com/strandline/strandline/objstore/miniostore"
	"github.com/strandline/strandline/objstore/s3store"
	"github.com/strandline/strandline/segment"
)

// storeURLs is what --store takes, for help texts and errors.
const storeURLs = "file:///dir, minio://host:port/bucket/prefix?tls=, s3://bucket/prefix?region=&endpoint=; " +
	"s3 also takes path-style=, both S3 kinds ca=FILE, and what the store cannot do: parts=equal, range-copy=false, concurrency=N"

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
			err := a.onceMet(ctx, func(_ context.Context, _ objstore.Driver, can objstore.Capabilities) error {
				store.Narrow(can)
				return nil
			})
			if err != nil {
				return errors.Join(err, store.Close())
			}
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
