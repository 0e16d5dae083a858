package objcache

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/objstore"
)

// Driver is a driver whose cacheable keys go through the cache. It is safe for
// concurrent use. What it does not define is the inner driver's.
//
// An objstore.Store around it counts the calls made here, also those that the cache
// answered: Stats tells them apart.
type Driver struct {
	objstore.Driver

	cfg       Config
	bucket    atomic.Pointer[string] // Config.Bucket, or what Know said; nil: not known yet
	instances []*instance
	transport http.RoundTripper
	idle      func() // closes the transport's connections that nobody uses
	stats     stats

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	start  sync.Once // the goroutine of evict.go
	wake   chan struct{}
	work   sync.WaitGroup
}

var _ objstore.Driver = (*Driver)(nil)

// instance is one instance as seen from here.
type instance struct {
	addr string // as address spells it
	breaker
	owed queue
}

// Wrap puts the cache before a driver. It opens nothing: an instance is asked when a
// key is its. Close it; the inner driver is closed with it.
func Wrap(inner objstore.Driver, cfg Config) *Driver {
	cfg = cfg.withDefaults()
	t := &http.Transport{
		DialContext: (&net.Dialer{Timeout: cfg.ConnectTimeout}).DialContext, TLSHandshakeTimeout: 2 * cfg.ConnectTimeout,
		// As many as one reader has ranges under way; the default of 2 reopens the rest.
		MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, DisableCompression: true,
		// No proxy of the environment: the instances are neighbours.
	}
	d := &Driver{Driver: inner, cfg: cfg, wake: make(chan struct{}, 1), transport: cfg.Transport(t), idle: t.CloseIdleConnections}
	if cfg.Bucket != "" {
		d.Know(cfg.Bucket)
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	for _, text := range cfg.Instances {
		addr, err := address(text)
		if err != nil {
			addr = "http://invalid.invalid:0" // see Config.Validate
		}
		d.instances = append(d.instances, &instance{
			addr: addr, breaker: breaker{clock: cfg.Clock, rest: cfg.Rest}, owed: queue{limit: cfg.QueueKeys},
		})
	}
	return d
}

// Know says what the bucket is called at the instances. Until then, of a driver that was
// wrapped without a name, every key is the store's.
func (d *Driver) Know(bucket string) { d.bucket.Store(&bucket) }

// of is the instance to ask about a key; nil: the store.
func (d *Driver) of(key string) *instance {
	bucket := d.bucket.Load()
	if bucket == nil || len(d.instances) == 0 || !d.cfg.Cacheable(key) {
		return nil
	}
	return choose(d.instances, *bucket, key)
}

// Close tries once more to have evicted what is owed, waits for what runs and closes
// the inner driver. Bodies that are still open end with an error.
func (d *Driver) Close() error {
	d.cancel()
	d.work.Wait()
	d.lastCall()
	d.idle()
	return d.Driver.Close()
}

// well and broken note what a call showed about an instance.
func (d *Driver) well(in *instance) {
	if in.ok() {
		d.cfg.Logger.Info("an instance of the object cache is back", "instance", in.addr)
	}
}

func (d *Driver) broken(in *instance, err error) {
	d.stats.failures.Add(1)
	if in.failed() {
		d.cfg.Logger.Warn("an instance of the object cache failed: the store is asked directly meanwhile", "instance", in.addr, "error", err)
	}
}

// Stats counts what went through the cache.
type Stats struct {
	Reads     int64 `json:"reads"`      // ranges that an instance began to answer
	ReadBytes int64 `json:"read_bytes"` // of them
	Fallbacks int64 `json:"fallbacks"`  // ranges, or rests of ranges, that the store had to give after all
	Failures  int64 `json:"failures"`   // calls in which an instance failed
	Deletes   int64 `json:"deletes"`    // keys that an instance reported as gone
	Direct    int64 `json:"direct"`     // cacheable keys that were deleted without an instance
	Evicted   int64 `json:"evicted"`    // keys that an instance forgot late
	Owed      int64 `json:"owed"`       // keys that wait for that
	Dropped   int64 `json:"dropped"`    // keys that no longer do: max-age covers them
}

type stats struct{ reads, readBytes, fallbacks, failures, deletes, direct, evicted, dropped atomic.Int64 }

// Stats is a snapshot since Wrap.
func (d *Driver) Stats() Stats {
	s := Stats{
		Reads: d.stats.reads.Load(), ReadBytes: d.stats.readBytes.Load(), Fallbacks: d.stats.fallbacks.Load(), Failures: d.stats.failures.Load(),
		Deletes: d.stats.deletes.Load(), Direct: d.stats.direct.Load(), Evicted: d.stats.evicted.Load(), Dropped: d.stats.dropped.Load(),
	}
	for _, in := range d.instances {
		s.Owed += int64(in.owed.size())
	}
	return s
}

// errSlow: an instance took longer than it may.
var errSlow = errors.New("no answer in time")
