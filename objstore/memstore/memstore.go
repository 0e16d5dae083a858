package memstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/strandline/strandline/objstore"
)

// Options shapes the store. The zero value is a friendly ordered store with the
// referee on.
type Options struct {
	Clock func() time.Time // for Modified and Initiated; default time.Now

	MinPart    int64 // as Capabilities; AWS: 5 MiB
	MinCopy    int64 // as Capabilities; AWS: 5 MiB
	EqualParts bool
	MaxDelete  int // keys per Delete; default 1,000

	// BlindComplete completes uploads without looking at their condition, as some
	// stores do (K34): the referee sees what that overwrites.
	BlindComplete bool
	// AbortsLosers drops an upload whose condition did not hold, as R2 does.
	AbortsLosers bool
	// DirectoryPrefix refuses to list by a prefix that does not end in "/" (S3 Express).
	DirectoryPrefix bool

	PageSize   int  // most keys in a page; default 1,000
	EmptyPages bool // an empty page with a Next before each page
	// Seed makes the same ETags and upload ids in every run; 0: they are random.
	Seed    uint64
	Shuffle uint64 // not 0: listings in an order drawn from this seed (S3 Express)

	// Mutable says which keys may be overwritten, and created anew with other
	// bytes; default: keys under "rw/".
	Mutable func(key string) bool
	// CheckDelete is asked before a key is deleted; its error is a violation, e.g.
	// "a ref names it". It runs with the store unlocked.
	CheckDelete func(key string) error
	// MayReadDeleted exempts keys whose readers expect them to be gone.
	MayReadDeleted func(key string) bool
}

// Driver is the store. It is safe for concurrent use.
type Driver struct {
	opts Options

	mu         sync.Mutex // everything below
	objects    map[string]object
	graves     map[string][32]byte
	uploads    map[string]*upload
	lastID     int
	violations []string
}

var _ objstore.Driver = (*Driver)(nil)

// object is never changed once it is in the map, so readers keep its bytes
// without a copy.
type object struct {
	body     []byte
	etag     string
	meta     map[string]string
	modified time.Time
}

// New makes an empty store.
func New(opts Options) *Driver {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.MaxDelete == 0 {
		opts.MaxDelete = 1000
	}
	if opts.PageSize == 0 {
		opts.PageSize = 1000
	}
	if opts.Mutable == nil {
		opts.Mutable = func(key string) bool { return strings.HasPrefix(key, "rw/") }
	}
	if opts.MayReadDeleted == nil {
		opts.MayReadDeleted = func(string) bool { return false }
	}
	return &Driver{opts: opts, objects: map[string]object{}, graves: map[string][32]byte{}, uploads: map[string]*upload{}}
}

// Capabilities are what Options made them.
func (d *Driver) Capabilities() objstore.Capabilities {
	return objstore.Capabilities{
		OrderedList: d.opts.Shuffle == 0, StartAfter: d.opts.Shuffle == 0, DirectoryPrefix: d.opts.DirectoryPrefix,
		RangeCopy: true, ConditionalComplete: !d.opts.BlindComplete, MinCopy: d.opts.MinCopy, MinPart: d.opts.MinPart, EqualParts: d.opts.EqualParts,
		ListUploads: true, MaxDeleteSet: d.opts.MaxDelete,
	}
}

// Name is "mem:".
func (d *Driver) Name() string { return "mem:" }

// Close does nothing: the bytes stay readable, as a bucket's do.
func (d *Driver) Close() error { return nil }

func fail(op objstore.Op, key string, kind error, format string, args ...any) error {
	return &objstore.Error{Op: string(op), Key: key, Kind: kind, Err: fmt.Errorf(format, args...)}
}

// begin holds every call to a living ctx and a sound key.
func begin(ctx context.Context, op objstore.Op, key string) error {
	if err := ctx.Err(); err != nil {
		return &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrUnavailable, Err: context.Cause(ctx)}
	}
	return objstore.CheckKey(key)
}

// Put implements objstore.Driver.
func (d *Driver) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	if err := begin(ctx, objstore.OpPut, key); err != nil {
		return objstore.Info{}, err
	}
	b, err := take(objstore.OpPut, key, body, size)
	if err != nil {
		return objstore.Info{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.publish(objstore.OpPut, key, b, opts.Meta, opts)
}

// take reads a body of exactly size bytes.
func take(op objstore.Op, key string, body io.Reader, size int64) ([]byte, error) {
	if size < 0 {
		return nil, fail(op, key, objstore.ErrInvalid, "a body of %d bytes", size)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(body, b); err != nil {
		return nil, fail(op, key, objstore.ErrInvalid, "the body does not hold the %d bytes announced: %w", size, err)
	}
	return b, nil
}

// publish puts an object in place if opts allow it. d.mu is held.
func (d *Driver) publish(op objstore.Op, key string, b []byte, meta map[string]string, opts objstore.PutOptions) (objstore.Info, error) {
	old, stands := d.objects[key]
	switch {
	case opts.IfNoneMatch && stands:
		return objstore.Info{}, fail(op, key, objstore.ErrExists, "created %v", old.modified)
	case opts.IfMatch != "" && !stands:
		return objstore.Info{}, fail(op, key, objstore.ErrPrecondition, "nothing stands there")
	case opts.IfMatch != "" && old.etag != opts.IfMatch:
		return objstore.Info{}, fail(op, key, objstore.ErrPrecondition, "the ETag is %s", old.etag)
	}
	d.judgeWrite(key, b, old, stands)
	o := object{body: b, etag: d.newETag(), meta: lower(meta), modified: d.opts.Clock()}
	d.objects[key] = o
	return o.info(key), nil
}

// lower copies metadata as stores keep it: names in lower case.
func lower(meta map[string]string) map[string]string {
	out := make(map[string]string, len(meta))
	for k, v := range meta {
		out[strings.ToLower(k)] = v
	}
	return out
}

// newETag is unique in this store: two writes never share one. d.mu is held.
func (d *Driver) newETag() string {
	d.lastID++
	if d.opts.Seed != 0 {
		return fmt.Sprintf("%08x%08x", uint32(rand.NewPCG(d.opts.Seed, uint64(d.lastID)).Uint64()), d.lastID)
	}
	return fmt.Sprintf("%08x%08x", rand.Uint32(), d.lastID)
}

func (o object) info(key string) objstore.Info {
	return objstore.Info{Key: key, Size: int64(len(o.body)), ETag: o.etag, Modified: o.modified, Meta: maps.Clone(o.meta)}
}

// Get implements objstore.Driver.
func (d *Driver) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	if err := begin(ctx, objstore.OpGet, key); err != nil {
		return nil, objstore.Info{}, err
	}
	o, err := d.find(objstore.OpGet, key, ifMatch)
	if err != nil {
		return nil, objstore.Info{}, err
	}
	off, n, err := r.Resolve(int64(len(o.body)))
	if err != nil {
		return nil, objstore.Info{}, fail(objstore.OpGet, key, err, "%+v of %d bytes", r, len(o.body))
	}
	return io.NopCloser(bytes.NewReader(o.body[off : off+n])), o.info(key), nil
}

func (d *Driver) find(op objstore.Op, key, ifMatch string) (object, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, ok := d.objects[key]
	if !ok {
		if op != objstore.OpHead {
			d.judgeRead(op, key)
		}
		return object{}, fail(op, key, objstore.ErrNotFound, "no object stands there")
	}
	if ifMatch != "" && ifMatch != o.etag {
		return object{}, fail(op, key, objstore.ErrPrecondition, "the ETag is %s", o.etag)
	}
	return o, nil
}

// Head implements objstore.Driver.
func (d *Driver) Head(ctx context.Context, key string) (objstore.Info, error) {
	if err := begin(ctx, objstore.OpHead, key); err != nil {
		return objstore.Info{}, err
	}
	o, err := d.find(objstore.OpHead, key, "")
	if err != nil {
		return objstore.Info{}, err
	}
	return o.info(key), nil
}

// Delete implements objstore.Driver.
func (d *Driver) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	if len(keys) > d.opts.MaxDelete {
		return nil, fail(objstore.OpDelete, keys[0], objstore.ErrInvalid, "%d keys, the most is %d a call", len(keys), d.opts.MaxDelete)
	}
	out := make([]objstore.DeleteResult, 0, len(keys))
	for _, key := range keys {
		err := begin(ctx, objstore.OpDelete, key)
		if err == nil {
			d.deleteOne(key)
		}
		out = append(out, objstore.DeleteResult{Key: key, Err: err})
	}
	return out, nil
}

func (d *Driver) deleteOne(key string) {
	var named error
	if d.opts.CheckDelete != nil {
		named = d.opts.CheckDelete(key)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	o, ok := d.objects[key]
	if !ok {
		return
	}
	if named != nil {
		d.violate("delete of %s: %v", key, named)
	}
	delete(d.objects, key)
	d.graves[key] = sha256.Sum256(o.body)
}

// Dump copies the bytes of all objects.
func (d *Driver) Dump() map[string][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[string][]byte, len(d.objects))
	for key, o := range d.objects {
		out[key] = bytes.Clone(o.body)
	}
	return out
}

// Keys lists all keys in order.
func (d *Driver) Keys() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.objects))
}

// Tamper changes an object's bytes under the same ETag, as bit rot does. It is no
// violation: the test itself did it. It reports whether the key stands.
func (d *Driver) Tamper(key string, change func(body []byte) []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, ok := d.objects[key]
	if ok {
		o.body = change(bytes.Clone(o.body))
		d.objects[key] = o
	}
	return ok
}
