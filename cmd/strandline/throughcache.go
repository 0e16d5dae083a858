package main

import (
	"context"
	"log/slog"
	"slices"

	"github.com/spf13/pflag"

	"github.com/strandline/strandline/internal/objcache"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// throughCache says where the object cache is (03 §11).
type throughCache struct {
	instances []string
	caller    callerFlags
	log       *slog.Logger // nil: nothing is said
}

func (c *throughCache) register(f *pflag.FlagSet) {
	f.StringSliceVar(&c.instances, "object-cache-instances", nil,
		"HOST:PORT,… of strandline cache: cold reads and deletes of slots and settled objects go through them; the same list for every process of a deployment. With TLS: https://HOST:PORT")
	c.caller.register(f)
}

func (c *throughCache) config() (objcache.Config, error) {
	cfg := objcache.Config{Instances: c.instances, Cacheable: immutable, Logger: c.log}
	if err := cfg.Validate(); err != nil {
		return cfg, usage("--object-cache-instances: %w", err)
	}
	if len(c.instances) == 0 {
		return cfg, c.caller.validate()
	}
	caller, err := c.caller.open()
	if err != nil {
		return cfg, err
	}
	cfg.Token, cfg.Transport = caller.token, caller.transport
	return cfg, nil
}

// openCold opens a deployment for a command that prints rows: of the cache only what goes
// wrong is told.
func (a *app) openCold(ctx context.Context, b *backendFlags) (_ *tier, err error) {
	if b.cache.log, err = a.loggerFrom(slog.LevelWarn); err != nil {
		return nil, err
	}
	return b.open(ctx, modeCold)
}

// immutable keys are created once and never used again: what a cache may hold.
func immutable(key string) bool {
	k, err := segment.ParseKey(key)
	if err != nil {
		return false
	}
	switch k.Kind {
	case segment.KeySlot, segment.KeyStream, segment.KeyPack:
		return true
	default:
		return false
	}
}

// wrap puts the cache before a tier's buckets: its duties only delete through it and see
// the bucket itself; cold reads may be answered by it.
func (c *throughCache) wrap(ctx context.Context, t *tier) error {
	if len(c.instances) == 0 {
		return nil
	}
	cfg, err := c.config()
	if err != nil {
		return err
	}
	duties, reads := objstore.Classes{}, objstore.Classes{}
	for class, set := range t.classes {
		for _, store := range set {
			// One that is away has its name in its stamp: until it is met, nothing of it is cached.
			if cfg.Bucket = ""; !isAway(store) {
				if cfg.Bucket, err = bucketID(ctx, store, class, len(set) == 1); err != nil {
					return err
				}
			}
			for _, side := range []struct {
				reads bool
				into  objstore.Classes
			}{{false, duties}, {true, reads}} {
				cfg.Reads = side.reads
				wrapped, err := c.store(t, store, cfg)
				if err != nil {
					return err
				}
				if cfg.Bucket == "" {
					if err := cachedOnceMet(ctx, store, wrapped, class, len(set) == 1); err != nil {
						return err
					}
				}
				side.into[class] = append(side.into[class], wrapped)
			}
		}
	}
	t.classes, t.reads = duties, reads
	return nil
}

// store is a Store around the same driver, through the cache. The tier closes it before
// the driver.
func (c *throughCache) store(t *tier, inner *objstore.Store, cfg objcache.Config) (*objstore.Store, error) {
	driver := objcache.Wrap(unclosed{inner.Driver()}, cfg)
	store, err := objstore.New(driver, storeConfig(inner.Driver()))
	if err != nil {
		return nil, firstOf(err, driver.Close())
	}
	store.Narrow(inner.Capabilities())
	t.closers = append(t.closers, func() error {
		err := store.Close()
		if s := driver.Stats(); c.log != nil && s != (objcache.Stats{}) {
			c.log.Info("through the object cache", "store", store.Name(), "reads", cfg.Reads, "stats", s)
		}
		return err
	})
	return store, nil
}

// cachedOnceMet lets the keys of a bucket that is away go through the cache once it is met.
func cachedOnceMet(ctx context.Context, inner, wrapped *objstore.Store, class string, alone bool) error {
	a, is := awayOf(inner)
	if !is {
		return nil
	}
	driver, _ := wrapped.Driver().(*objcache.Driver) // store made it
	return a.onceMet(ctx, func(ctx context.Context, d objstore.Driver, can objstore.Capabilities) error {
		plain, err := objstore.New(d, objstore.Config{Attempts: 1}) // not through away, which is not met yet
		if err != nil {
			return err
		}
		bucket, err := bucketID(ctx, plain, class, alone)
		if err != nil {
			return err
		}
		wrapped.Narrow(can)
		driver.Know(bucket)
		return nil
	})
}

// unclosed is a driver that another Store closes.
type unclosed struct{ objstore.Driver }

func (unclosed) Close() error { return nil }

// storesOf are all Stores of a tier, each once.
func storesOf(t *tier) (all []*objstore.Store) {
	for _, classes := range []objstore.Classes{t.classes, t.reads} {
		for _, set := range classes {
			for _, s := range set {
				if !slices.Contains(all, s) {
					all = append(all, s)
				}
			}
		}
	}
	return all
}
