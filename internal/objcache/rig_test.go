package objcache_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/strandline/strandline/internal/objcache"
	"github.com/strandline/strandline/internal/objcache/instance"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testBucket = "d/standard"
	mib        = 1 << 20
)

// counted is a bucket whose calls are counted, and can go wrong.
type counted struct {
	*faultstore.Driver
	gets, deletes atomic.Int64
	mu            sync.Mutex
	fault         func(faultstore.Call) faultstore.Fault
}

func count(inner objstore.Driver) *counted {
	c := &counted{}
	c.Driver = faultstore.Wrap(inner, func(call faultstore.Call) faultstore.Fault {
		switch call.Op {
		case objstore.OpGet:
			c.gets.Add(1)
		case objstore.OpDelete:
			c.deletes.Add(1)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fault != nil {
			return c.fault(call)
		}
		return faultstore.Fault{}
	})
	return c
}

func (c *counted) setFault(f func(faultstore.Call) faultstore.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
}

// node is an instance that can be down, and whose answers can be spoiled.
type node struct {
	cache  *instance.Cache
	store  *counted // as the instance reaches it
	addr   string
	server *httptest.Server

	mu   sync.Mutex
	wrap func(http.Handler) http.Handler
}

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	wrap := n.wrap
	n.mu.Unlock()
	h := n.cache.Handler()
	if wrap != nil {
		h = wrap(h)
	}
	h.ServeHTTP(w, r)
}

func (n *node) set(wrap func(http.Handler) http.Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wrap = wrap
}

// down refuses connections; up serves again at the same address.
func (n *node) down() {
	n.server.CloseClientConnections()
	n.server.Close()
}

func (n *node) up(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	n.server = httptest.NewUnstartedServer(n)
	_ = n.server.Listener.Close() // its own: ours takes its place
	n.server.Listener = l
	n.server.Start()
}

// rig is a client with instances before one bucket.
type rig struct {
	*testing.T
	mem    *memstore.Driver
	direct *counted // the client's own way
	nodes  []*node
	driver *objcache.Driver
}

func newRig(t *testing.T, instances int, change func(*objcache.Config)) *rig {
	t.Helper()
	x := &rig{T: t, mem: memstore.New(memstore.Options{MayReadDeleted: func(string) bool { return true }})}
	x.direct = count(x.mem)
	cfg := objcache.Config{
		Bucket: testBucket, Reads: true, Cacheable: func(k string) bool { return strings.HasPrefix(k, "seg/") },
		Rest: time.Millisecond, AnswerTimeout: 10 * time.Second,
	}
	for range instances {
		n := startNode(t, x.mem, testBucket)
		x.nodes = append(x.nodes, n)
		cfg.Instances = append(cfg.Instances, n.addr)
	}
	if change != nil {
		change(&cfg)
	}
	x.driver = objcache.Wrap(x.direct, cfg)
	t.Cleanup(func() { x.ok(x.driver.Close()) })
	return x
}

func startNode(t testing.TB, bucket objstore.Driver, name string) *node {
	t.Helper()
	n := &node{store: count(bucket)}
	store, err := objstore.New(n.store, objstore.Config{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	n.cache, err = instance.Open(instance.Config{Dir: t.TempDir(), Bytes: 512 * mib}, map[string]*objstore.Store{name: store})
	if err != nil {
		t.Fatal(err)
	}
	n.server = httptest.NewServer(n)
	n.addr = n.server.Listener.Addr().String()
	t.Cleanup(func() {
		n.server.Close()
		if err := n.cache.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func (x *rig) ok(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

func (x *rig) put(key string, size int) []byte {
	x.Helper()
	body := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(size)})
	_, _ = r.Read(body)
	_, err := x.mem.Put(x.Context(), key, bytes.NewReader(body), int64(size), objstore.PutOptions{IfNoneMatch: true, Meta: map[string]string{"who": "rig"}})
	x.ok(err)
	return body
}

func (x *rig) get(key string, r objstore.Range) ([]byte, objstore.Info, error) {
	x.Helper()
	return fetch(x.Context(), x.driver, key, r)
}

func fetch(ctx context.Context, d objstore.Driver, key string, r objstore.Range) ([]byte, objstore.Info, error) {
	body, info, err := d.Get(ctx, key, r, "")
	if err != nil {
		return nil, info, err
	}
	b, err := io.ReadAll(body)
	return b, info, errors.Join(err, body.Close())
}

func (x *rig) same(key string, r objstore.Range) {
	x.Helper()
	got, info, err := x.get(key, r)
	x.ok(err)
	want, wantInfo, err := fetch(x.Context(), x.mem, key, r)
	x.ok(err)
	if !bytes.Equal(got, want) || info.Size != wantInfo.Size || info.ETag != wantInfo.ETag || info.Meta["who"] != "rig" || info.Key != key || !info.Modified.Equal(wantInfo.Modified) {
		x.Fatalf("%s %+v: %d bytes of %+v, the store has %d of %+v", key, r, len(got), info, len(want), wantInfo)
	}
}

func (x *rig) delete(keys ...string) []objstore.DeleteResult {
	x.Helper()
	res, err := x.driver.Delete(x.Context(), keys)
	x.ok(err)
	if len(res) != len(keys) || !slices.EqualFunc(res, keys, func(r objstore.DeleteResult, k string) bool { return r.Key == k }) {
		x.Fatalf("%+v for %v", res, keys)
	}
	return res
}

func (x *rig) gone(key string) {
	x.Helper()
	if b, _, err := x.get(key, objstore.Whole); !errors.Is(err, objstore.ErrNotFound) {
		x.Fatalf("%s is deleted: %d bytes, %v", key, len(b), err)
	}
}

func (x *rig) until(what string, done func() bool) {
	x.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			x.Fatalf("%s: not in 30 s; %+v", what, x.driver.Stats())
		}
	}
}

// settled waits until the instances have in files what they read.
func (x *rig) settled(blocks int64) {
	x.Helper()
	x.until("blocks are in files", func() bool {
		var n int64
		for _, node := range x.nodes {
			n += node.cache.Stats().Blocks
		}
		return n >= blocks
	})
}
