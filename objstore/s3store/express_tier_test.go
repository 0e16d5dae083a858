//go:build unix

package s3store

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/sqlite"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3express"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

// zone is a directory bucket that may be away.
type zone struct {
	server *s3express.Server
	store  *objstore.Store
	away   atomic.Bool
}

func newZone(t *testing.T, seed uint64) *zone {
	t.Helper()
	z := &zone{server: newExpress(s3express.Options{Seed: seed, PageSize: 3, EmptyPages: true})}
	d := openExpress(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if z.away.Load() {
			panic(http.ErrAbortHandler) // the connection ends without an answer
		}
		z.server.ServeHTTP(w, r)
	}), "tier")
	store, err := objstore.New(d, objstore.Config{Attempts: 2})
	if err != nil {
		t.Fatal(err)
	}
	z.store = store
	return z
}

func (z *zone) keys(t *testing.T, prefix string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for o, err := range z.store.List(t.Context(), prefix, "") {
		if err != nil {
			t.Fatal(err)
		}
		out[o.Key] = o.Size
	}
	return out
}

// expressTier is a deployment whose slots go to two zones and whose settled objects go to
// a regional bucket.
type expressTier struct {
	*testing.T
	cat     *sqlite.DB
	classes objstore.Classes
	topo    catalog.Topology
	root    string
}

func newExpressTier(t *testing.T, zones ...*zone) *expressTier {
	t.Helper()
	regional, err := objstore.New(memstore.New(memstore.Options{}), objstore.Config{})
	x := &expressTier{T: t, root: t.TempDir(), classes: objstore.Classes{"standard": {regional}}}
	x.must(err)
	for _, z := range zones {
		x.classes["express"] = append(x.classes["express"], z.store)
	}
	x.cat, err = sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(x.root, "catalog.db"), Create: true})
	x.must(err)
	t.Cleanup(func() { x.must(x.cat.Close()) })
	_, err = check.Ensure(t.Context(), x.cat, x.classes)
	x.must(err)
	x.topo, err = check.EnsureEpoch(t.Context(), x.cat, x.classes, catalog.Topology{
		Epoch: 1, Shards: 2, Class: "express", Buckets: []string{"one", "two"}, Settle: true, State: catalog.TopologyOpen,
	})
	x.must(err)
	return x
}

func (x *expressTier) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

func (x *expressTier) open(dir string, steal bool) *localtier.Writer {
	x.Helper()
	w, err := localtier.Open(x.Context(), localtier.Options{
		Dir: filepath.Join(x.root, dir), Catalog: x.cat, Classes: x.classes, Topology: x.topo,
		Address: dir, Steal: steal, Logger: slog.New(slog.DiscardHandler), Config: localtier.Config{MinFreeDisk: -1},
	})
	x.must(err)
	return w
}

func (x *expressTier) append(w *localtier.Writer, ack localtier.Ack, want map[string]int) {
	x.Helper()
	for i := range 6 {
		stream := fmt.Sprintf("stream-%d", i)
		_, err := w.Append(x.Context(), stream, []segment.Row{{Payload: []byte("a row")}, {Payload: make([]byte, 2000)}}, ack)
		x.must(err)
		want[stream] += 2
	}
}

// reads every stream and counts its rows.
func (x *expressTier) reads(want map[string]int) {
	x.Helper()
	r, err := coldload.New(x.cat, x.classes, coldload.Config{})
	x.must(err)
	got := map[string]int{}
	for stream := range want {
		for _, err := range r.Rows(x.Context(), stream, segment.Pos{}, segment.Pos{}) {
			x.must(err)
			got[stream]++
		}
	}
	if !maps.Equal(got, want) {
		x.Errorf("read %v, want %v", got, want)
	}
}

func (x *expressTier) fsck(missing int64) {
	x.Helper()
	r, err := check.Fsck(x.Context(), x.cat, x.classes, check.Config{})
	x.must(err)
	if r.DamageTotal != 0 || r.GarbageTotal != 0 || r.MissingTotal != missing {
		x.Errorf("fsck: %+v", *r)
	}
}

// TestTierOnExpress: a tier on two directory buckets, through the real client: each zone
// away once, a takeover, settle to the regional bucket, and no slot left in either.
func TestTierOnExpress(t *testing.T) {
	one, two := newZone(t, 1), newZone(t, 2)
	x := newExpressTier(t, one, two)
	want := map[string]int{}
	w := x.open("a", false)
	x.append(w, localtier.AckShared, want)
	if a, b := one.keys(t, segment.SegPrefix), two.keys(t, segment.SegPrefix); len(a) == 0 || !maps.Equal(a, b) {
		t.Errorf("the zones hold %v and %v", a, b)
	}
	two.away.Store(true)
	x.append(w, localtier.AckShared, want) // the first decides
	x.reads(want)
	two.away.Store(false)
	x.must(w.Close(t.Context()))
	k := absorb.Checker{Catalog: x.cat, Classes: x.classes}
	_, err := k.RunOnce(context.WithoutCancel(t.Context()))
	x.must(err)
	if a, b := one.keys(t, segment.SegPrefix), two.keys(t, segment.SegPrefix); !maps.Equal(a, b) {
		t.Errorf("after the absorb-check the zones hold %v and %v", a, b)
	}
	x.fsck(0)
	one.away.Store(true)
	x.reads(want) // from the copies
	one.away.Store(false)

	w = x.open("b", true) // a new disk: fences, and goes on
	x.append(w, localtier.AckShared, want)
	x.must(w.Close(t.Context()))
	x.settle()
	x.reads(want)
	keys := slices.Sorted(maps.Keys(one.keys(t, segment.SegPrefix)))
	results, err := orphan.NewDeleter(x.classes).Slots(t.Context(), "express", keys)
	x.must(err)
	for _, r := range results {
		x.must(r.Err)
	}
	if a, b := one.keys(t, segment.SegPrefix), two.keys(t, segment.SegPrefix); len(a)+len(b) != 0 {
		t.Errorf("slots are left: %v and %v", a, b)
	}
	x.reads(want)
	x.fsck(0)
}

// settle moves every slot to the regional bucket.
func (x *expressTier) settle() {
	x.Helper()
	s, err := settle.New(settle.Deps{
		Catalog: x.cat, Classes: x.classes, Clock: time.Now, Logger: slog.New(slog.DiscardHandler), NewNonce: uuid.NewString, NewUUID: uuid.New,
	}, settle.Config{SettleAge: -1, SettleBytes: -1, SpoolDir: x.TempDir()})
	x.must(err)
	for shard := range segment.Shard(2) {
		for {
			rep, err := s.RunOnce(x.Context(), segment.Chain{Epoch: 1, Shard: shard}, "test")
			x.must(err)
			if len(rep.Failures) > 0 {
				x.Fatalf("%+v", rep.Failures)
			}
			if rep.Idle != "" {
				break
			}
		}
	}
}
