//go:build unix

package auditbench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/internal/storebench"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/fsstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/objstore/miniostore"
)

func TestMain(m *testing.M) { os.Exit(realstore.Main(m)) }

// foreign is a key of somebody else, under the same folder.
const foreign = Prefix + "somebody-else/1"

func storeOn(t testing.TB, d objstore.Driver) *objstore.Store {
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

// s3like is a store in memory with the bounds of AWS.
func s3like() objstore.Driver {
	return memstore.New(memstore.Options{MinPart: 5 << 20, MinCopy: 5 << 20})
}

// left holds the store to the foreign key alone, to no upload, and the disk to no catalog.
func left(t *testing.T, s *objstore.Store, dir string) {
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
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("catalogs are left: %v %v", files, err)
	}
}

// tiny is everything once, in a second or two.
func tiny(t *testing.T) Options {
	return Options{
		Quick: true, Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Sizes: Sizes{RawBytes: 1 << 20, Move: 40 << 20, Streams: []int{3, 40}, Batch: 256 << 10, Objects: 12, Standing: 4, Debt: 3},
	}
}

// TestEveryPart runs all parts on each kind of store, and what was written is gone. No
// time is held against anything; counts are.
func TestEveryPart(t *testing.T) {
	ctx := context.Background()
	t.Run("memstore", func(t *testing.T) {
		o := tiny(t)
		s := storeOn(t, s3like())
		r, err := Run(ctx, s, o)
		if err != nil {
			t.Fatal(err)
		}
		complete(t, r)
		left(t, s, o.Dir)
	})
	t.Run("directory", func(t *testing.T) {
		o := tiny(t)
		d, err := fsstore.Open(t.TempDir(), fsstore.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		s := storeOn(t, d)
		r, err := Run(ctx, s, o)
		if err != nil {
			t.Fatal(err)
		}
		complete(t, r)
		left(t, s, o.Dir)
	})
	t.Run("MinIO", func(t *testing.T) {
		server := realstore.Minio(t)
		cfg := miniostore.Config{
			Endpoint: server.Endpoint, Bucket: server.NewBucket(t), Prefix: "a/tier", PathStyle: true,
			AccessKey: server.AccessKey, SecretKey: server.SecretKey,
		}
		d, err := miniostore.Open(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		bare, err := storebench.Minio(ctx, cfg, false)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = bare.Close() }()
		o := tiny(t)
		o.Bare = &bare
		s := storeOn(t, d)
		before := bare.Requests()
		r, err := Run(ctx, s, o)
		if err != nil {
			t.Fatal(err)
		}
		complete(t, r)
		if r.Reap.BareName != storebench.NameBare || bare.Requests() == before {
			t.Errorf("beside %q, which sent %d requests", r.Reap.BareName, bare.Requests()-before)
		}
		left(t, s, o.Dir)
	})
}

// complete reads a report as a machine would, and holds its counts.
func complete(t *testing.T, r Report) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Settle == nil || len(got.Moves) != 2 || len(got.Streams) != 2 || got.Reap == nil || got.Debt == nil || len(got.Expected) != 8 {
		t.Fatalf("parts are missing: %s", text)
	}
	positive := map[string]float64{
		"settle MB/s": got.Settle.RawMBPerSecond, "settle rows/s": got.Settle.RowsPerSecond, "settle PUT-like": float64(got.Settle.PutLike),
		"probes/s": got.Reap.ProbesPerSecond, "confirms/s": got.Reap.ConfirmsPerSec, "reaps/s": got.Reap.ReapsPerSecond,
		"bare deletes/s": got.Reap.BareDeletesPerSecond, "delete ratio": got.Reap.DeleteRatio, "reap ratio": got.Reap.ReapRatio,
		"verbs": got.Debt.Few.Verbs, "debt ratio": got.Debt.Ratios.Seconds, "settle heap": float64(got.Settle.PeakHeapBytes),
	}
	for _, m := range got.Moves {
		positive[m.Policy+" MB/s"], positive[m.Policy+" through"] = m.MBPerSecond, float64(m.ThroughBytes)
		if m.ServerSideShare < 0.5 {
			t.Errorf("%s: %.2f of the bytes were moved by the store, want most", m.Policy, m.ServerSideShare)
		}
	}
	for _, s := range got.Streams {
		positive["requests/GB"] = s.RequestsPerGB
		if s.PackMerges < 1 || s.Batches != 4 {
			t.Errorf("%d streams: %d pack-merges in %d batches, want one at the last", s.Streams, s.PackMerges, s.Batches)
		}
	}
	for what, v := range positive {
		if v <= 0 {
			t.Errorf("%s: %v", what, v)
		}
	}
	if got.Debt.Many.StandingObjects != 10*got.Debt.Few.StandingObjects || got.Debt.Ratios.Requests != 1 || got.Debt.Ratios.Verbs > mostDebtRatio {
		t.Errorf("the same debt among ten times as many objects: %+v", got.Debt)
	}
	for _, e := range got.Expected {
		if e.Binding {
			t.Errorf("%s: figures of a tiny run say nothing", e.Figure)
		}
	}
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

// CreateUpload begins two: the answer of the first was lost, and nobody knows its id.
func (i *interrupting) CreateUpload(ctx context.Context, key string, meta map[string]string) (string, error) {
	if _, err := i.Driver.CreateUpload(ctx, key, meta); err != nil {
		return "", err
	}
	return i.Driver.CreateUpload(ctx, key, meta)
}

// TestCancel: a run that is interrupted in a call leaves nothing.
func TestCancel(t *testing.T) {
	for part, after := range map[string]int64{"settle": 2, "moves": 6, "streams": 9, "reap": 20, "debt": 10} {
		t.Run(part, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			d := &interrupting{Driver: s3like(), cancel: cancel}
			d.after.Store(after)
			s := storeOn(t, d)
			o := tiny(t)
			o.Only = regexp.MustCompile("^" + part + "$")
			d.armed.Store(true)
			_, err := Run(ctx, s, o)
			d.armed.Store(false)
			if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
				t.Fatalf("interrupted: %v; ended with %v", ctx.Err(), err)
			}
			left(t, s, o.Dir)
		})
	}
}

// TestTooLong: a run ends before a doctor takes its keys for leftovers, and says what to do.
func TestTooLong(t *testing.T) {
	s := storeOn(t, s3like())
	o := tiny(t)
	o.Rounds, o.Only, o.limit = 100_000, regexp.MustCompile("reap"), time.Second
	_, err := Run(context.Background(), s, o)
	if !errors.Is(err, errLong) {
		t.Errorf("%v", err)
	}
	left(t, s, o.Dir)
}

// TestNothingChosen: a part that does not exist is refused by name.
func TestNothingChosen(t *testing.T) {
	o := tiny(t)
	o.Only = regexp.MustCompile("speed")
	s := storeOn(t, s3like())
	if _, err := Run(context.Background(), s, o); err == nil {
		t.Error("nothing was measured, and nothing said so")
	}
	left(t, s, o.Dir)
}

func TestValidate(t *testing.T) {
	for name, o := range map[string]Options{
		"rounds": {Sizes: Sizes{Rounds: -1}}, "move": {Sizes: Sizes{Move: 1 << 20}}, "order": {Sizes: Sizes{Streams: []int{10, 10}}},
		"zero streams": {Sizes: Sizes{Streams: []int{0}}}, "objects": {Sizes: Sizes{Objects: -5}},
	} {
		if err := o.Validate(); err == nil {
			t.Errorf("%s: %+v is taken", name, o.Sizes)
		}
	}
	if err := (&Options{}).Validate(); err != nil {
		t.Error(err)
	}
}
