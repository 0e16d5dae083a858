package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/objcache"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/miniostore"
	"github.com/strandline/strandline/objstore/s3store"
)

// awayPatience is how long a start waits for a bucket that others stand beside. One
// that answers at all does so in milliseconds.
const awayPatience = 10 * time.Second

// awayEvery is how often a bucket that was away at the start is looked for: each look of
// a call that needs it costs that call a while.
const awayEvery = 5 * time.Second

var errAway = fmt.Errorf("no answer within %v", awayPatience)

// awayPause is how long the call that begins a look waits for it: a bucket that takes
// connections and stays silent is not waited for by those whom the others serve.
const awayPause = time.Second

// away is a bucket of a set that did not answer when the process began. The others may
// have all the rows (03 §10), and a slot's copy in it is owed as it is to one that goes away
// later. Its calls are unavailable until it answers and its stamp is right: a row that only
// it has is unavailable, not lost. Close ends a look that is under way.
type away struct {
	objstore.Driver // made without a request
	// hold says whether it is this deployment's bucket, and fit, and what it can do.
	hold func(ctx context.Context, d objstore.Driver) (objstore.Capabilities, error)
	log  *slog.Logger // nil: nothing is said

	life context.Context // of looks
	end  context.CancelFunc
	work sync.WaitGroup // a look

	here    atomic.Bool
	mu      sync.Mutex // all below; here is set under it, too
	met     []metFunc
	can     objstore.Capabilities // once it is here
	next    time.Time
	err     error         // of the latest look
	looking chan struct{} // closed once the look under way has ended; nil: none is
}

// metFunc does what has to be done with a bucket before it is used.
type metFunc = func(ctx context.Context, d objstore.Driver, can objstore.Capabilities) error

// newAway is a bucket that err was the answer of.
func newAway(ctx context.Context, d objstore.Driver, err error, log *slog.Logger) *away {
	a := &away{Driver: d, log: log, err: err, next: time.Now().Add(awayEvery)}
	a.life, a.end = context.WithCancel(context.WithoutCancel(ctx)) // what is drained on the way out is copied, too
	return a
}

// onceMet does something with the bucket before it is used: in a look, and again with the next
// one if it fails; at once if the bucket is here already.
func (a *away) onceMet(ctx context.Context, do metFunc) error {
	a.mu.Lock()
	here, can := a.here.Load(), a.can
	if !here {
		a.met = append(a.met, do)
	}
	a.mu.Unlock()
	if !here {
		return nil
	}
	return do(ctx, a.Driver, can)
}

// Close waits for the look under way.
func (a *away) Close() error {
	a.mu.Lock() // none begins behind it
	a.end()
	a.mu.Unlock()
	a.work.Wait()
	return a.Driver.Close()
}

// reach is nil once the bucket was met.
func (a *away) reach(ctx context.Context) error {
	if a.here.Load() {
		return nil
	}
	looking := a.begin()
	if looking == nil {
		return a.unmet()
	}
	pause := time.NewTimer(awayPause)
	defer pause.Stop()
	select {
	case <-looking:
	case <-pause.C:
	case <-ctx.Done():
		return fmt.Errorf("%w: %s: %w", objstore.ErrUnavailable, a.Name(), context.Cause(ctx))
	}
	return a.unmet()
}

// begin begins a look if one is due and none is under way.
func (a *away) begin() chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.here.Load() || a.looking != nil || time.Now().Before(a.next) || a.life.Err() != nil {
		return nil
	}
	looking := make(chan struct{})
	a.looking = looking
	a.work.Go(func() { a.look(looking) })
	return looking
}

func (a *away) unmet() error {
	if a.here.Load() {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// look asks the bucket once.
func (a *away) look(looking chan struct{}) {
	ctx, cancel := context.WithTimeoutCause(a.life, awayPatience, errAway)
	defer cancel()
	err := a.meet(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	defer close(looking)
	switch {
	case err == nil:
		a.say(slog.LevelInfo, "a bucket that was away at the start is here: it is used from now on", nil)
	case !errors.Is(err, objstore.ErrUnavailable) && !told(a.err, err):
		a.say(slog.LevelError, "a bucket that was away at the start is not fit to be used", err)
	}
	a.looking, a.err, a.next = nil, err, time.Now().Add(awayEvery)
}

func (a *away) meet(ctx context.Context) error {
	can, err := a.hold(ctx, a.Driver)
	if err != nil {
		return err
	}
	for done := 0; ; done++ {
		do := a.owed(done, can)
		if do == nil {
			return nil
		}
		if err := do(ctx, a.Driver, can); err != nil {
			return err
		}
	}
}

// owed is what a look has to do next, of which so many are done; nil: nothing, and the bucket
// is here from now on.
func (a *away) owed(done int, can objstore.Capabilities) metFunc {
	a.mu.Lock()
	defer a.mu.Unlock()
	if done < len(a.met) {
		return a.met[done]
	}
	a.can = can
	a.here.Store(true)
	return nil
}

func told(before, now error) bool { return before != nil && before.Error() == now.Error() }

func (a *away) say(level slog.Level, text string, err error) {
	if a.log == nil {
		return
	}
	args := []any{"store", a.Name()}
	if err != nil {
		args = append(args, "error", err)
	}
	a.log.Log(context.Background(), level, text, args...)
}

func (a *away) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	if err := a.reach(ctx); err != nil {
		return objstore.Info{}, err
	}
	return a.Driver.Put(ctx, key, body, size, opts)
}

func (a *away) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	if err := a.reach(ctx); err != nil {
		return nil, objstore.Info{}, err
	}
	return a.Driver.Get(ctx, key, r, ifMatch)
}

func (a *away) Head(ctx context.Context, key string) (objstore.Info, error) {
	if err := a.reach(ctx); err != nil {
		return objstore.Info{}, err
	}
	return a.Driver.Head(ctx, key)
}

func (a *away) List(ctx context.Context, prefix, startAfter, token string, limit int) (objstore.Page, error) {
	if err := a.reach(ctx); err != nil {
		return objstore.Page{}, err
	}
	return a.Driver.List(ctx, prefix, startAfter, token, limit)
}

func (a *away) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	if err := a.reach(ctx); err != nil {
		return nil, err
	}
	return a.Driver.Delete(ctx, keys)
}

func (a *away) CreateUpload(ctx context.Context, key string, meta map[string]string) (string, error) {
	if err := a.reach(ctx); err != nil {
		return "", err
	}
	return a.Driver.CreateUpload(ctx, key, meta)
}

func (a *away) ListUploads(ctx context.Context, prefix string) ([]objstore.Upload, error) {
	if err := a.reach(ctx); err != nil {
		return nil, err
	}
	return a.Driver.ListUploads(ctx, prefix)
}

func (a *away) Abort(ctx context.Context, key, id string) error {
	if err := a.reach(ctx); err != nil {
		return err
	}
	return a.Driver.Abort(ctx, key, id)
}

// Parts belong to an upload that CreateUpload made, so the bucket was met by then. An id of
// an earlier process is completed or continued by nobody.

// awayOf is the bucket of a Store if it was away at the start, through the object cache or not.
func awayOf(s *objstore.Store) (*away, bool) {
	d := s.Driver()
	if cached, is := d.(*objcache.Driver); is {
		if inner, is := cached.Driver.(unclosed); is {
			d = inner.Driver
		}
	}
	a, is := d.(*away)
	return a, is
}

func isAway(s *objstore.Store) bool {
	a, is := awayOf(s)
	return is && !a.here.Load()
}

// opener opens the i-th bucket of a class. A standing deployment's may be away, but for the
// only one of a class, and for whoever writes the one that decides, the first (03 §2).
func (b *backendFlags) opener(t *tier, spec classSpec, m mode) func(ctx context.Context, i int) (objstore.Driver, error) {
	return func(ctx context.Context, i int) (driver objstore.Driver, err error) {
		raw := spec.urls[i]
		mayBeAway := len(spec.urls) > 1 && (m == modeCold || m == modeWrite && b.patient && i > 0)
		err = b.waiting("the store "+objstore.Shown(raw)+" to answer", func() (err error) {
			if mayBeAway {
				driver, err = b.openOrAway(ctx, t, spec.class, raw)
			} else {
				driver, err = openDriver(ctx, raw, m)
			}
			return err
		})
		return driver, err
	}
}

// openOrAway is openDriver for one of several buckets of a class, the others of which will
// do for a while.
func (b *backendFlags) openOrAway(ctx context.Context, t *tier, class, raw string) (objstore.Driver, error) {
	opening, cancel := context.WithCancelCause(ctx)
	// Not before: a driver may renew its credentials under the context it was opened with.
	t.closers = append(t.closers, func() error { cancel(nil); return nil })
	patience := time.AfterFunc(awayPatience, func() { cancel(errAway) })
	defer patience.Stop()
	driver, err := openDriver(opening, raw, modeCold)
	if !errors.Is(err, objstore.ErrUnavailable) || ctx.Err() != nil {
		return driver, err
	}
	dialled, derr := dial(ctx, raw)
	if derr != nil {
		return nil, errors.Join(err, derr)
	}
	a := newAway(ctx, dialled, err, b.cache.log)
	a.hold = func(ctx context.Context, d objstore.Driver) (objstore.Capabilities, error) {
		return b.held(ctx, t, class, d)
	}
	a.say(slog.LevelWarn, "a bucket of the set is away: going on with the others, and copies are owed to it until it answers", err)
	return a, nil
}

// held is what a start asks of a bucket: is it this deployment's, and fit?
func (b *backendFlags) held(ctx context.Context, t *tier, class string, d objstore.Driver) (objstore.Capabilities, error) {
	store, err := objstore.New(d, objstore.Config{Attempts: 1})
	if err != nil {
		return objstore.Capabilities{}, err
	}
	classes := objstore.Classes{class: {store}}
	if err := check.Verify(ctx, t.catalog, classes); err != nil {
		return objstore.Capabilities{}, err
	}
	if b.prove != nil {
		err = b.prove(ctx, classes)
	}
	return store.Capabilities(), err
}

// dial makes the driver of a bucket that does not answer.
func dial(ctx context.Context, raw string) (objstore.Driver, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, usage("--store: %q is no URL", objstore.Shown(raw))
	}
	switch u.Scheme {
	case "minio":
		cfg, err := miniostore.ParseURL(raw)
		if err != nil {
			return nil, usage("--store: %w", err)
		}
		return miniostore.Dial(ctx, cfg)
	case "s3":
		cfg, err := s3store.ParseURL(raw)
		if err != nil {
			return nil, usage("--store: %w", err)
		}
		return s3store.Dial(ctx, cfg)
	default: // a directory is there, or it is not
		return nil, errAway
	}
}

// answering are the buckets that answered. A class without one is an error, and so is one
// whose first bucket is away where that decides.
func answering(classes objstore.Classes) (objstore.Classes, error) {
	out := objstore.Classes{}
	for class, set := range classes {
		var errs []error
		for _, s := range set {
			if a, is := awayOf(s); is {
				if err := a.unmet(); err != nil {
					errs = append(errs, err)
					continue
				}
			}
			out[class] = append(out[class], s)
		}
		if len(out[class]) == 0 {
			return nil, errors.Join(errs...)
		}
	}
	return out, nil
}
