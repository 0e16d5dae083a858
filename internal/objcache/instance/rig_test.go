package instance

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testBucket = "d/standard"

// rig is a cache over a bucket in memory whose GETs are counted, and can be held up.
type rig struct {
	*testing.T
	mem   *memstore.Driver
	store *objstore.Store
	cache *Cache
	cfg   Config
	gets  atomic.Int64
	now   atomic.Int64

	mu    sync.Mutex
	fault func(faultstore.Call) faultstore.Fault
}

func newRig(t *testing.T, cfg Config) *rig {
	t.Helper()
	x := &rig{T: t, mem: memstore.New(memstore.Options{MayReadDeleted: func(string) bool { return true }})}
	x.now.Store(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	var err error
	x.store, err = objstore.New(faultstore.Wrap(x.mem, func(c faultstore.Call) faultstore.Fault {
		if c.Op == objstore.OpGet {
			x.gets.Add(1)
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.fault != nil {
			return x.fault(c)
		}
		return faultstore.Fault{}
	}), objstore.Config{Attempts: 1})
	x.ok(err)
	cfg.Dir, cfg.Clock = t.TempDir(), func() time.Time { return time.Unix(0, x.now.Load()) }
	if cfg.Bytes == 0 {
		cfg.Bytes = LeastBytes
	}
	cfg.boot = func() string { return "boot-1" }
	x.cfg = cfg
	x.open()
	t.Cleanup(func() { x.ok(x.cache.Close()) })
	return x
}

func (x *rig) open() {
	x.Helper()
	c, err := Open(x.cfg, map[string]*objstore.Store{testBucket: x.store})
	x.ok(err)
	x.cache = c
}

// reopen is another process on the same directory.
func (x *rig) reopen() {
	x.Helper()
	x.ok(x.cache.Close())
	x.open()
}

func (x *rig) ok(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

func (x *rig) setFault(f func(faultstore.Call) faultstore.Fault) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fault = f
}

// put creates an object of random bytes.
func (x *rig) put(key string, size int) []byte {
	x.Helper()
	body := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(size), byte(len(key))})
	_, _ = r.Read(body)
	_, err := x.mem.Put(x.Context(), key, bytes.NewReader(body), int64(size), objstore.PutOptions{IfNoneMatch: true, Meta: map[string]string{"who": "rig"}})
	x.ok(err)
	return body
}

func (x *rig) read(key string, r objstore.Range) ([]byte, objstore.Info, error) {
	x.Helper()
	rd, err := x.cache.Read(x.Context(), testBucket, key, r, "")
	if err != nil {
		return nil, objstore.Info{}, err
	}
	defer rd.Close()
	b, err := drain(x, rd)
	return b, rd.Info, err
}

func drain(x *rig, rd *Reading) ([]byte, error) {
	var out bytes.Buffer
	for {
		p, err := rd.Next(x.Context())
		if err != nil || p == nil {
			return out.Bytes(), err
		}
		out.Write(p)
	}
}

// same reads a range and holds it against the store's own answer.
func (x *rig) same(key string, r objstore.Range) {
	x.Helper()
	got, info, err := x.read(key, r)
	x.ok(err)
	body, want, err := x.mem.Get(x.Context(), key, r, "")
	x.ok(err)
	b, err := io.ReadAll(body)
	x.ok(err)
	if !bytes.Equal(got, b) {
		x.Fatalf("%s %+v: %d bytes, not the store's %d", key, r, len(got), len(b))
	}
	if info.Size != want.Size || info.ETag != want.ETag || !info.Modified.Equal(want.Modified) || info.Meta["who"] != want.Meta["who"] || info.Key != key {
		x.Fatalf("%s: %+v, the store says %+v", key, info, want)
	}
}

// settled waits until what was read is in files.
func (x *rig) settled() {
	x.Helper()
	x.until("fills end", func() bool { return x.cache.Stats().Busy == 0 })
}

// until polls: for what happens in goroutines of the cache's own.
func (x *rig) until(what string, done func() bool) {
	x.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			x.Fatalf("%s: not in 30 s; %+v", what, x.cache.Stats())
		}
	}
}

// asked counts the store's GETs during do.
func (x *rig) asked(do func()) int64 {
	before := x.gets.Load()
	do()
	return x.gets.Load() - before
}

func (x *rig) files() (paths []string) {
	x.Helper()
	err := filepath.WalkDir(filepath.Join(x.cfg.Dir, "blocks"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
	x.ok(err)
	return paths
}

func span(off, n int64) objstore.Range { return objstore.Range{Offset: off, Length: n} }
