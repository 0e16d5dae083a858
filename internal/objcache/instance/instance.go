package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/semaphore"

	"github.com/strandline/strandline/objstore"
)

// Errors of a Cache beside those of the store.
var (
	// ErrOtherBucket: the client means a bucket that is not served here.
	ErrOtherBucket = errors.New("another bucket")
	// ErrChanged: the object is not the one that was cached; all of its blocks went.
	ErrChanged = errors.New("the object changed")
	// ErrLocked: another instance has the directory.
	ErrLocked = errors.New("the cache's directory is in use")
	errClosed = errors.New("the cache is closing")
)

// id names an object: which bucket's, which key.
type id struct{ bucket, key string }

// object is what is known of a key. It stands in the table while anything is cached or
// under way. All but the first line belongs to Cache.mu.
type object struct {
	id
	hash  string
	store *objstore.Store

	info   *objstore.Info // nil: not known
	blocks map[int64]*block
	fills  map[int64]*fill // under way, by block; nil: none
	tail   *fill           // of the object's end, while its size is not known

	gen   uint64 // raised whenever ranges are forgotten: a fill of an older one is not kept
	dying int    // deletes under way: nothing is kept
	busy  int    // files being written or unlinked
	users int    // reads, fills and deletes under way
}

// Cache is an instance without its HTTP side. It is safe for concurrent use.
type Cache struct {
	cfg     Config
	root    string // of the files
	buckets map[string]*objstore.Store
	lock    io.Closer
	policy  *otter.Cache[uint64, *block]
	memory  *semaphore.Weighted // of fills
	stats   stats
	write   func(path string, header, content []byte) error // writeFile, but for tests

	ctx    context.Context // of fills; ends with Close
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	mu      sync.Mutex // never held during I/O or while the policy is called
	idle    sync.Cond  // an object's busy came to 0
	objects map[id]*object
	seq     uint64
	bound   int64     // of used: Config.Bytes, or less on a full disk
	used    int64     // weight of all files
	told    time.Time // when a failed write was last told
	held    int64     // blocks in files
	closed  bool
}

// Open takes the directory and what is left in it. buckets are by wire.Bucket.
func Open(cfg Config, buckets map[string]*objstore.Store) (*Cache, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Cache{
		cfg: cfg, root: filepath.Join(cfg.Dir, "blocks"), buckets: buckets, memory: semaphore.NewWeighted(fillBytes),
		write: writeFile, objects: map[id]*object{}, bound: cfg.Bytes,
	}
	c.idle.L = &c.mu
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	if err := os.MkdirAll(c.root, 0o750); err != nil {
		return nil, fmt.Errorf("the cache's directory: %w", err)
	}
	lock, err := lockFile(filepath.Join(cfg.Dir, "LOCK"))
	if err != nil {
		return nil, err
	}
	c.lock = lock
	c.policy, err = otter.New(&otter.Options[uint64, *block]{
		MaximumWeight: policyWeight(cfg.Bytes),
		Weigher:       func(_ uint64, b *block) uint32 { return uint32(b.weight) }, //nolint:gosec // a block's
		OnDeletion: func(e otter.DeletionEvent[uint64, *block]) {
			if e.WasEvicted() {
				c.stats.evictions.Add(1)
			}
			c.discard(e.Value)
		},
		Executor: func(task func()) { c.work.Go(task) },
	})
	if err == nil {
		err = c.recover()
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return c, nil
}

// Close ends fills, waits for all that runs and gives the directory up. The files stay.
func (c *Cache) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(errClosed)
	c.policy.CleanUp()
	c.work.Wait()
	return c.lock.Close()
}

// use finds or makes an object, and keeps it in the table until leave.
func (c *Cache) use(bucket, key string) (*object, error) {
	store, ok := c.buckets[bucket]
	if !ok {
		return nil, fmt.Errorf("%w: %q is not served here", ErrOtherBucket, bucket)
	}
	if err := objstore.CheckKey(key); err != nil {
		return nil, err
	}
	if c.cfg.Keys != nil && !c.cfg.Keys(key) {
		return nil, &objstore.Error{Op: "cache", Key: key, Kind: objstore.ErrInvalid, Err: errors.New("not a key that is cached: ask the store")}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, &objstore.Error{Op: "cache", Key: key, Kind: objstore.ErrUnavailable, Err: errClosed}
	}
	o := c.object(id{bucket, key}, store)
	o.users++
	return o, nil
}

// object is use's inner half. c.mu is held.
func (c *Cache) object(i id, store *objstore.Store) *object {
	o := c.objects[i]
	if o == nil {
		o = &object{id: i, hash: hashOf(i), store: store, blocks: map[int64]*block{}}
		c.objects[i] = o
	}
	return o
}

func (c *Cache) leave(o *object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.users--
	c.sweep(o)
}

// sweep drops an object that nothing needs. c.mu is held.
func (c *Cache) sweep(o *object) {
	if o.users == 0 && o.busy == 0 && len(o.blocks) == 0 && c.objects[o.id] == o {
		delete(c.objects, o.id)
	}
}
