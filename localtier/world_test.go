package localtier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/sqlite"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a bucket, a catalog and the directories of some writers.
type world struct {
	t    *testing.T
	mem  *memstore.Driver
	set  objstore.Set
	cat  *sqlite.DB
	topo catalog.Topology
	root string

	// recreatable are keys that the referee lets be created anew after a delete.
	recreatable map[string]bool

	mu    sync.Mutex
	acked map[string][]string // by stream, in order of seq
}

func newWorld(t *testing.T, shards uint32) *world {
	t.Helper()
	return newWorldOn(t, shards, func(d objstore.Driver) objstore.Driver { return d })
}

// newWorldOn puts wrap between the store and its memory.
func newWorldOn(t *testing.T, shards uint32, wrap func(objstore.Driver) objstore.Driver) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{t: t, root: t.TempDir(), acked: map[string][]string{}, recreatable: map[string]bool{}}
	w.mem = memstore.New(memstore.Options{Mutable: func(key string) bool { return w.recreatable[key] }})
	w.set = objstore.Set{newStore(t, wrap(w.mem))}
	cat, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(w.root, "catalog.db"), Create: true, CacheBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	w.cat = cat
	if _, err := cat.Init(ctx, uuid.New()); err != nil {
		t.Fatal(err)
	}
	w.topo, err = cat.EnsureTopology(ctx, catalog.Topology{
		Epoch: 1, Shards: shards, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: true, State: catalog.TopologyOpen,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, v := range w.mem.Violations() {
			t.Errorf("the bucket's referee: %s", v)
		}
		if err := cat.Close(); err != nil {
			t.Errorf("close the catalog: %v", err)
		}
	})
	return w
}

func newStore(t *testing.T, d objstore.Driver) *objstore.Store {
	t.Helper()
	store, err := objstore.New(d, objstore.Config{
		Attempts: 3, PartSize: 64 << 10,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// options of a writer on a directory of the world, with everything fast.
func (w *world) options(dir string) Options {
	return Options{
		Dir: filepath.Join(w.root, dir), Catalog: w.cat,
		Classes:  objstore.Classes{string(segment.ClassStandard): w.set},
		Topology: w.topo, Address: dir + ":8420",
		Config: Config{
			Backoff: time.Millisecond, MaxBackoff: 4 * time.Millisecond, SharedWindow: time.Millisecond,
			LeaseTime: time.Hour, MinFreeDisk: -1, Housekeeping: time.Hour,
		},
		Logger: slog.New(slog.NewTextHandler(testWriter{w.t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	if os.Getenv("LOCALTIER_LOG") != "" {
		w.t.Log(string(p))
	}
	return len(p), nil
}

func (w *world) open(dir string, change ...func(*Options)) *Writer {
	w.t.Helper()
	wr, err := w.tryOpen(dir, change...)
	if err != nil {
		w.t.Fatalf("open %s: %v", dir, err)
	}
	return wr
}

func (w *world) tryOpen(dir string, change ...func(*Options)) (*Writer, error) {
	o := w.options(dir)
	for _, c := range change {
		c(&o)
	}
	return Open(w.t.Context(), o)
}

// append appends one row a call and remembers those that were acknowledged.
func (w *world) append(wr *Writer, stream string, ack Ack, payloads ...string) error {
	w.t.Helper()
	return w.appendWith(w.t.Context(), wr, stream, ack, payloads...)
}

func (w *world) appendWith(ctx context.Context, wr *Writer, stream string, ack Ack, payloads ...string) error {
	w.t.Helper()
	for _, p := range payloads {
		if _, err := wr.Append(ctx, stream, []segment.Row{{Payload: []byte(p)}}, ack); err != nil {
			return err
		}
		w.mu.Lock()
		w.acked[stream] = append(w.acked[stream], p)
		w.mu.Unlock()
	}
	return nil
}

func (w *world) mustAppend(wr *Writer, stream string, ack Ack, payloads ...string) {
	w.t.Helper()
	if err := w.append(wr, stream, ack, payloads...); err != nil {
		w.t.Fatalf("append to %s: %v", stream, err)
	}
}

func (w *world) mustClose(wr *Writer) {
	w.t.Helper()
	if err := wr.Close(w.t.Context()); err != nil {
		w.t.Fatalf("close: %v", err)
	}
}

// abandon ends a writer as a killed process does: nothing is sealed, published or
// released by it any more.
func abandon(t *testing.T, wr *Writer) {
	t.Helper()
	wr.stopLoops()
	for _, s := range wr.shards {
		s.closed.Do(func() {
			s.end()
			s.hydrating.Wait()
			s.running.Wait()
			_ = s.wal.Close() // it may be poisoned, as its test wanted it
			s.retire()
		})
	}
}

// crash kills a writer and gives what its directory held at that moment, as the
// kernel has it: the log is not even closed before the copy.
func (w *world) crash(wr *Writer, from, to string) {
	w.t.Helper()
	wr.stopLoops()
	for _, s := range wr.shards {
		s.end()
		s.hydrating.Wait()
		s.running.Wait()
	}
	if err := os.CopyFS(filepath.Join(w.root, to), os.DirFS(filepath.Join(w.root, from))); err != nil {
		w.t.Fatal(err)
	}
	abandon(w.t, wr)
}

// quarantined lists what was set aside under a writer's directory.
func (w *world) quarantined(dir string) []Quarantine {
	w.t.Helper()
	out, err := ListQuarantine(w.t.Context(), filepath.Join(w.root, dir))
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// salvager appends what a salvage sends, and remembers it.
func (w *world) salvager(wr *Writer) Salvager {
	return func(ctx context.Context, p Producer, stream string, rows []segment.Row) error {
		if _, err := wr.AppendAs(ctx, p, stream, rows, AckShared); err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, r := range rows {
			w.acked[stream] = append(w.acked[stream], string(r.Payload))
		}
		return nil
	}
}

func (w *world) salvage(q Quarantine, wr *Writer) uint64 {
	w.t.Helper()
	n, err := Salvage(w.t.Context(), q, wr.opts.Topology.Shards, w.salvager(wr))
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// stored reads a stream from bucket and catalog alone, checking that the refs link,
// that seqs rise, and that bytes match their checksums.
func (w *world) stored(stream string) []string {
	w.t.Helper()
	ctx := w.t.Context()
	var out []string
	var last segment.Pos
	from := segment.Pos{}
	for {
		plan, err := w.cat.Plan(ctx, catalog.PlanRequest{Stream: stream, From: from, Limit: 7})
		if errors.Is(err, catalog.ErrNotFound) {
			return nil
		}
		if err != nil {
			w.t.Fatal(err)
		}
		for _, ref := range plan.Refs {
			if ref.PrevLast != last {
				w.t.Fatalf("stream %q: ref at %v follows %v, its prev_last is %v", stream, ref.FirstPos(), last, ref.PrevLast)
			}
			out = append(out, w.readRef(ref)...)
			last = ref.LastPos()
		}
		if !plan.More {
			return out
		}
		from = last.Next()
	}
}

func (w *world) readRef(ref catalog.Ref) (out []string) {
	w.t.Helper()
	stored, _, err := w.set.First().ReadRange(w.t.Context(), ref.Key, ref.Offset, ref.Stored)
	if err != nil {
		w.t.Fatal(err)
	}
	raw, err := segment.DecodeChunk(&segment.Chunk{Stored: ref.Stored, Raw: ref.Raw, Codec: ref.Codec, CRC: ref.CRC, Sum: ref.Sum}, stored)
	if err != nil {
		w.t.Fatal(err)
	}
	next := ref.First
	var rows uint64
	for len(raw) > 0 {
		f, n, err := segment.ParseChunkFrame(raw)
		if err != nil {
			w.t.Fatal(err)
		}
		b, err := segment.DecodeBatch(f.Payload)
		if err != nil || b.Stream != ref.Stream || b.First < next {
			w.t.Fatalf("ref %v of %q: batch of %q at %d: %v", ref.FirstPos(), ref.Stream, b.Stream, b.First, err)
		}
		for _, r := range b.Rows {
			out = append(out, string(r.Payload))
			rows++
		}
		next, raw = b.Last()+1, raw[n:]
	}
	if rows != ref.Rows || next != ref.Last+1 {
		w.t.Fatalf("ref %v of %q says %d rows to %d, holds %d to %d", ref.FirstPos(), ref.Stream, ref.Rows, ref.Last, rows, next-1)
	}
	return out
}

// checkStored: every acknowledged row is in the shared tier, exactly once, in order.
// extra rows that were never acknowledged may stand between them (their append
// failed after the fsync), but each at most once.
func (w *world) checkStored(extra ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for stream, want := range w.acked {
		got := w.stored(stream)
		for _, e := range extra {
			if n := count(got, e); n > 1 {
				w.t.Errorf("stream %q: %q is stored %d times", stream, e, n)
			}
			if !slices.Contains(want, e) {
				got = slices.DeleteFunc(got, func(s string) bool { return s == e })
			}
		}
		if !slices.Equal(got, want) {
			w.t.Errorf("stream %q: stored %s, acknowledged %s", stream, brief(got), brief(want))
		}
	}
	w.fsck()
}

// fsck looks from outside: no damage, and nothing that is owed to nobody.
func (w *world) fsck() {
	w.t.Helper()
	rep, err := check.Fsck(w.t.Context(), w.cat, objstore.Classes{string(segment.ClassStandard): w.set}, check.Config{})
	if err != nil {
		w.t.Errorf("fsck: %v", err)
		return
	}
	for _, d := range rep.Damage {
		w.t.Errorf("fsck: damage: %+v", d)
	}
	for _, r := range rep.Rotten {
		w.t.Errorf("fsck: rotten: %+v", r)
	}
	for _, g := range rep.Garbage {
		if g.State == check.Leaked {
			w.t.Errorf("fsck: leaked: %+v", g)
		}
	}
}

func count(in []string, s string) (n int) {
	for _, x := range in {
		if x == s {
			n++
		}
	}
	return n
}

func brief(s []string) string {
	if len(s) > 24 {
		return fmt.Sprintf("%d rows, %q…", len(s), s[:24])
	}
	return fmt.Sprintf("%q", s)
}

func (w *world) chain(shard segment.Shard) catalog.ChainRow {
	w.t.Helper()
	row, err := w.cat.Chain(w.t.Context(), segment.Chain{Epoch: 1, Shard: shard})
	if err != nil {
		w.t.Fatal(err)
	}
	return row
}

func (w *world) bucket() absorb.Bucket {
	return absorb.Bucket{Set: w.set, Class: segment.ClassStandard}
}

// names gives n payloads, long and random enough not to compress.
func names(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%d-%x", prefix, i, rand.Uint64())
	}
	return out
}

// eventually waits for a state that other goroutines bring about, on the shard's own
// signal of change.
func eventually(t *testing.T, s *shardLog, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute) // no measure: for a machine that does much else
	for {
		s.progress.mu.Lock()
		changed := s.progress.changed
		s.progress.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-time.After(5 * time.Millisecond): // states without a signal
		case <-deadline:
			t.Fatalf("never: %s; status %+v", what, s.status())
		}
	}
}
