//go:build unix

package storebench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/fsstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/objstore/miniostore"
	"github.com/strandline/strandline/objstore/s3store"
)

func TestMain(m *testing.M) { os.Exit(realstore.Main(m)) }

// foreign is a key of somebody else, under the same folder.
const foreign = Prefix + "somebody-else/1"

func storeOn(t *testing.T, d objstore.Driver) *objstore.Store {
	t.Helper()
	s, err := objstore.New(d, objstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutOnce(context.Background(), foreign, []byte("mine"), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// left holds the store to the foreign key alone, and to no upload.
func left(t *testing.T, s *objstore.Store) {
	t.Helper()
	var keys []string
	for info, err := range s.List(context.Background(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	if !slices.Equal(keys, []string{foreign}) {
		t.Errorf("%d keys are left, the first: %v", len(keys), keys[:min(3, len(keys))])
	}
	uploads, err := s.ListUploads(context.Background(), "")
	if err != nil || len(uploads) > 0 {
		t.Errorf("uploads are left: %v %v", uploads, err)
	}
}

// operations that every run must have measured, each in order.
var operations = []string{
	"put 8 MiB x1", "put 8 MiB x8", "put 8 MiB x16", "get 8 MiB x1", "get 8 MiB x8", "get 8 MiB x16",
	"put 4 KiB x1", "put 4 KiB x8", "put 4 KiB x16", "footer 64 KiB x1", "footer 64 KiB x16",
	"publish slot 64 MiB x1", "delete 1,000 keys x1", "copy range 64 MiB x1",
}

// complete reads a report as a machine would, and holds every cell to having run.
func complete(t *testing.T, r Report, contenders int) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Store, Prefix string
		Rounds        int
		Cells         []struct {
			Operation  string
			InFlight   int `json:"in_flight"`
			Contenders []map[string]any
			Throughput float64 `json:"throughput_ratio"`
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Store == "" || !strings.HasPrefix(got.Prefix, Prefix) || got.Rounds != 1 || len(got.Cells) != len(operations) {
		t.Fatalf("report of %q under %q, %d rounds, %d cells", got.Store, got.Prefix, got.Rounds, len(got.Cells))
	}
	for i, c := range got.Cells {
		if name := c.Operation + map[int]string{1: " x1", 8: " x8", 16: " x16"}[c.InFlight]; name != operations[i] {
			t.Errorf("cell %d is %s, want %s", i, name, operations[i])
		}
		if len(c.Contenders) != contenders || (contenders > 1) != (c.Throughput > 0) {
			t.Errorf("%s: %d contenders, ratio %v", operations[i], len(c.Contenders), c.Throughput)
		}
		for _, who := range c.Contenders {
			for _, field := range []string{"operations_per_second", "requests_per_operation"} {
				if v, _ := who[field].(float64); v <= 0 {
					t.Errorf("%s by %v: %s is %v", operations[i], who["name"], field, who[field])
				}
			}
		}
	}
}

// TestEveryCell runs all cells in each kind of store, and what was written is gone.
func TestEveryCell(t *testing.T) {
	ctx := context.Background()
	t.Run("memstore", func(t *testing.T) {
		s := storeOn(t, memstore.New(memstore.Options{}))
		r, err := Run(ctx, s, Options{Quick: true, Rounds: 1})
		if err != nil {
			t.Fatal(err)
		}
		complete(t, r, 1)
		left(t, s)
	})
	t.Run("fsstore", func(t *testing.T) {
		d, err := fsstore.Open(t.TempDir(), fsstore.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		s := storeOn(t, d)
		r, err := Run(ctx, s, Options{Quick: true, Rounds: 1})
		if err != nil {
			t.Fatal(err)
		}
		complete(t, r, 1)
		left(t, s)
	})
	server := realstore.Minio(t)
	t.Run("minio-go", func(t *testing.T) {
		cfg := miniostore.Config{
			Endpoint: server.Endpoint, Bucket: server.NewBucket(t), Prefix: "a/tier", PathStyle: true,
			AccessKey: server.AccessKey, SecretKey: server.SecretKey,
		}
		d, err := miniostore.Open(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		real(t, d, func(defaults bool) (Contender, error) { return Minio(ctx, cfg, defaults) })
	})
	t.Run("aws-sdk", func(t *testing.T) {
		cfg := s3store.Config{
			Endpoint: server.URL, Region: "us-east-1", Bucket: server.NewBucket(t), Prefix: "a/tier", PathStyle: true,
			AccessKey: server.AccessKey, SecretKey: server.SecretKey,
		}
		d, err := s3store.Open(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		real(t, d, func(defaults bool) (Contender, error) { return S3(ctx, cfg, defaults) })
	})
}

func real(t *testing.T, d objstore.Driver, bare func(defaults bool) (Contender, error)) {
	s := storeOn(t, d)
	o := Options{Quick: true, Rounds: 1}
	for _, defaults := range []bool{false, true} {
		c, err := bare(defaults)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		o.Bare = append(o.Bare, c)
	}
	r, err := Run(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	complete(t, r, 3)
	left(t, s)
}

// interrupting is a store in whose n-th mutation, once armed, somebody presses Ctrl-C.
type interrupting struct {
	objstore.Driver
	cancel context.CancelFunc
	after  atomic.Int64
	armed  atomic.Bool
}

func (i *interrupting) count() {
	if i.armed.Load() && i.after.Add(-1) == 0 {
		i.cancel()
	}
}

func (i *interrupting) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, o objstore.PutOptions) (objstore.Info, error) {
	i.count()
	return i.Driver.Put(ctx, key, body, size, o)
}

func (i *interrupting) UploadPart(ctx context.Context, key, id string, n int, body io.ReadSeeker, size int64) (objstore.Part, error) {
	i.count()
	return i.Driver.UploadPart(ctx, key, id, n, body, size)
}

func (i *interrupting) CopyPart(ctx context.Context, key, id string, n int, src objstore.CopySource) (objstore.Part, error) {
	i.count()
	return i.Driver.CopyPart(ctx, key, id, n, src)
}

func (i *interrupting) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	i.count()
	return i.Driver.Delete(ctx, keys)
}

// TestCancel: a run that is interrupted in a call leaves nothing.
func TestCancel(t *testing.T) {
	server := realstore.Minio(t)
	cfg := miniostore.Config{
		Endpoint: server.Endpoint, Bucket: server.NewBucket(t), PathStyle: true, AccessKey: server.AccessKey, SecretKey: server.SecretKey,
	}
	remote, err := miniostore.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for at, c := range map[string]struct {
		driver objstore.Driver
		after  int64
	}{
		"put 8 MiB x8": {memstore.New(memstore.Options{}), 3}, "publish": {memstore.New(memstore.Options{}), 2},
		"delete": {memstore.New(memstore.Options{}), 500}, "copy": {memstore.New(memstore.Options{}), 1},
		"publish slot": {remote, 2},
	} {
		t.Run(at, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			d := &interrupting{Driver: c.driver, cancel: cancel}
			d.after.Store(c.after)
			s := storeOn(t, d)
			_, err := Run(ctx, s, Options{Quick: true, Rounds: 1, Only: regexp.MustCompile(at), Progress: func(int, int, string) { d.armed.Store(true) }})
			if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
				t.Fatalf("interrupted: %v; ended with %v", ctx.Err(), err)
			}
			left(t, s)
		})
	}
}

// refusing is a store that takes the first puts and no more.
type refusing struct {
	objstore.Driver
	takes atomic.Int64
}

func (r *refusing) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, o objstore.PutOptions) (objstore.Info, error) {
	if r.takes.Add(-1) < 0 {
		return objstore.Info{}, &objstore.Error{Op: "put", Key: key, Kind: objstore.ErrDenied}
	}
	return r.Driver.Put(ctx, key, body, size, o)
}

// TestTooLong: a run ends before a doctor takes its keys for leftovers, and says what to do.
func TestTooLong(t *testing.T) {
	s := storeOn(t, memstore.New(memstore.Options{}))
	_, err := Run(context.Background(), s, Options{Only: regexp.MustCompile("put 8 MiB x1$"), Rounds: 100_000, limit: time.Second})
	if !errors.Is(err, errLong) {
		t.Errorf("%v", err)
	}
	left(t, s)
}

// TestNotWritable: a store that takes no writes is refused before anything is measured,
// and one that stops taking them fails the run, which cleans up.
func TestNotWritable(t *testing.T) {
	for takes, says := range map[int64]string{1: "takes no writes", 4: "writing what is read"} {
		d := &refusing{Driver: memstore.New(memstore.Options{})}
		d.takes.Store(takes)
		s := storeOn(t, d)
		_, err := Run(context.Background(), s, Options{Quick: true})
		if !errors.Is(err, objstore.ErrDenied) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want it to say %q", err, says)
		}
		left(t, s)
	}
}

func TestMedian(t *testing.T) {
	for want, of := range map[float64][]float64{0: nil, 3: {5, 1, 3}, 2.5: {4, 1, 2, 3}} {
		if got := median(of); got != want {
			t.Errorf("of %v: %v", of, got)
		}
	}
	ours, bare := []sample{{seconds: 2}, {seconds: 1}}, []sample{{seconds: 1}, {seconds: 3}}
	if got := pairs(bare, ours, func(s sample) float64 { return s.seconds }); !slices.Equal(got, []float64{0.5, 3}) {
		t.Errorf("ratios %v", got)
	}
}
