package localtier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Scenario RFC0008.10: recovery ends before anything is served; publisher, index and
// durable consumers each go on from their own horizon. Here seed 001's Parquet path is
// the publisher, whose horizon is the chain's absorbed end, and its miner a durable
// consumer, whose snapshot is its cursor, repeated by every SegmentStart. The listeners
// themselves are cmd's.
func TestRFC0008_10_StartupRecovery(t *testing.T) {
	t.Run("recovery before serving", rfc10RecoveryFirst)
	for name, h := range map[string]rfc10Horizons{
		"consumer ahead of the publisher":    {absorbed: 2, cursor: 8, cut: StepBuilt},
		"consumer at the publisher":          {absorbed: 2, cursor: 6, cut: StepBuilt},
		"consumer behind the publisher":      {absorbed: 3, cursor: 4, cut: StepBuilt},
		"consumer that acknowledged nothing": {absorbed: 3, cursor: 0, cut: StepBuilt},
		"nothing published":                  {absorbed: 0, cursor: 2, cut: StepBuilt},
		"CHECKPOINT behind the chain":        {absorbed: 2, cursor: 4, cut: StepAbsorbed},
	} {
		t.Run(name, h.run)
		h.housekept = true
		t.Run(name+", housekept", h.run)
	}
	t.Run("rotation carries the cursors", rfc10Cadence)
}

// gatedFS holds whoever opens a segment file while it recovers.
type gatedFS struct {
	wal.FS
	entered, gate chan struct{}
}

func (g *gatedFS) Open(name string) (wal.File, error) {
	if strings.HasSuffix(name, ".seg") {
		select {
		case g.entered <- struct{}{}:
		case <-g.gate:
		}
		<-g.gate
	}
	return g.FS.Open(name)
}

// rfc10RecoveryFirst stops the recovery in the middle: nothing is served, the chain is
// not taken, the directory is locked. Then it ends, and every row is there.
func rfc10RecoveryFirst(t *testing.T) {
	w := newWorld(t, 1)
	cut, _ := cutOnce(StepBuilt, 1)
	first := w.open("a", func(o *Options) { o.Cut = cut })
	for i := range 3 {
		w.mustAppend(first, "x", AckLocal, fmt.Sprint(i))
		mustSeal(t, first.shards[0])
	}
	w.mustAppend(first, "x", AckLocal, "open")
	abandon(t, first)

	g := &gatedFS{FS: wal.OSFS(false), entered: make(chan struct{}), gate: make(chan struct{})}
	type opened struct {
		wr  *Writer
		err error
	}
	done := make(chan opened, 1)
	o := w.options("a")
	o.Config.WAL.FS = g
	go func() {
		wr, err := Open(t.Context(), o)
		done <- opened{wr, err}
	}()
	<-g.entered
	select {
	case got := <-done:
		t.Fatalf("served before recovery ended: %v", got.err)
	default:
	}
	if row := w.chain(0); row.Term != 1 {
		t.Errorf("the chain was taken, term %d, before recovery ended", row.Term)
	}
	if _, err := w.tryOpen("a"); !errors.Is(err, wal.ErrLocked) {
		t.Errorf("a second open meanwhile: %v", err)
	}
	close(g.gate)
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	rows, err := readLocal(t, got.wr, "x", 1, 0)
	if errors.Is(err, ErrNotLocal) { // published meanwhile
		rows, err = w.acked["x"], nil
	}
	if err != nil || !slices.Equal(rows, w.acked["x"]) {
		t.Errorf("right after the open: %q, %v", rows, err)
	}
	w.mustAppend(got.wr, "x", AckShared, "live")
	w.mustClose(got.wr)
	w.checkStored()
}

// putCount counts the completing requests of each key.
type putCount struct {
	objstore.Driver
	mu   sync.Mutex
	puts map[string]int
}

func (p *putCount) count(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.puts[key]++
}

func (p *putCount) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	p.count(key)
	return p.Driver.Put(ctx, key, body, size, opts)
}

func (p *putCount) Complete(ctx context.Context, key, id string, parts []objstore.Part, opts objstore.PutOptions) (objstore.Info, error) {
	p.count(key)
	return p.Driver.Complete(ctx, key, id, parts, opts)
}

// slots checks that n slots were sent, each once, and says which.
func (p *putCount) slots(t *testing.T, n int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	found := 0
	for key, times := range p.puts {
		if !strings.HasPrefix(key, segment.SegPrefix) {
			continue
		}
		found++
		if times != 1 {
			t.Errorf("%s was sent %d times", key, times)
		}
	}
	if found != n {
		t.Errorf("%d slots were sent, want %d", found, n)
	}
}

// rfc10Horizons is a crash with four segments of three rows and an open one of two:
// the first `absorbed` segments are absorbed, the consumer has acknowledged through
// `cursor`.
type rfc10Horizons struct {
	absorbed  int
	cursor    segment.Seq
	cut       Step
	housekept bool
}

const rfc10Rows = 4*3 + 2

func (h rfc10Horizons) run(t *testing.T) {
	counter := &putCount{puts: map[string]int{}}
	w := newWorldOn(t, 1, func(d objstore.Driver) objstore.Driver { counter.Driver = d; return counter })
	h.crash(t, w)
	counter.slots(t, h.absorbed)

	// The publisher stands still once more, so that horizons are seen as they are.
	cut, _ := cutOnce(StepBuilt, 1)
	again := w.open("b", func(o *Options) { o.Cut = cut })
	h.index(t, again)
	h.consumer(t, w, again)
	abandon(t, again)

	last := w.open("b")
	h.consumer(t, w, last) // pulling moves nothing
	w.mustAppend(last, "x", AckShared, "after")
	if _, err := last.Ack(t.Context(), 0, "miner", rfc10Rows+1); err != nil {
		t.Error(err)
	}
	w.mustClose(last)
	w.checkStored()
	h.once(t, w, counter)
}

func (h rfc10Horizons) crash(t *testing.T, w *world) {
	t.Helper()
	n := h.absorbed + 1
	if h.cut == StepAbsorbed {
		n = h.absorbed
	}
	cut, at := cutOnce(h.cut, n)
	wr := w.open("a", func(o *Options) { o.Cut = cut })
	s := wr.shards[0]
	if _, err := wr.CreateConsumer(t.Context(), 0, "miner", 0); err != nil {
		t.Fatal(err)
	}
	for i := range rfc10Rows {
		w.mustAppend(wr, "x", AckLocal, fmt.Sprint("row ", i+1))
		if segment.Seq(i+1) == h.cursor {
			if _, err := wr.Ack(t.Context(), 0, "miner", h.cursor); err != nil {
				t.Fatal(err)
			}
		}
		if i%3 == 2 {
			mustSeal(t, s)
		}
	}
	<-at
	if row := w.chain(0); int(row.AbsorbedEnd)-1 != h.absorbed {
		t.Fatalf("%d slots are absorbed, want %d", row.AbsorbedEnd-1, h.absorbed)
	}
	if h.housekept {
		s.housekeep(t.Context())
	}
	w.crash(wr, "a", "b")
}

// index: every row above its horizon is read from local files, in order, once; what
// is below may be local or the bucket's, and is never half there.
func (h rfc10Horizons) index(t *testing.T, wr *Writer) {
	t.Helper()
	first, next, err := wr.Local(t.Context(), "x")
	if err != nil || int(first) > 3*h.absorbed+1 || next != rfc10Rows+1 {
		t.Errorf("local rows go from %d to before %d, %v; %d are absorbed", first, next, err, 3*h.absorbed)
	}
	for from := segment.Seq(1); from <= rfc10Rows; from++ {
		got, err := readLocal(t, wr, "x", from, 0)
		if not := (*NotLocalError)(nil); errors.As(err, &not) {
			if int(from) > 3*h.absorbed || int(not.First) > 3*h.absorbed+1 || not.First <= from || len(got) != 0 {
				t.Errorf("from %d: %q, %v; rows above %d are not in the bucket", from, got, err, 3*h.absorbed)
			}
			continue
		}
		if want := rfc10Payloads(from); err != nil || !slices.Equal(got, want) {
			t.Errorf("from %d: %q, %v; want %q", from, got, err, want)
		}
	}
}

func rfc10Payloads(from segment.Seq) (out []string) {
	for i := int(from); i <= rfc10Rows; i++ {
		out = append(out, fmt.Sprint("row ", i))
	}
	return out
}

// consumer: exactly the rows after its cursor, from local files or, below them, from
// the bucket, which must have them.
func (h rfc10Horizons) consumer(t *testing.T, w *world, wr *Writer) {
	t.Helper()
	all, err := wr.Consumers(t.Context(), 0)
	if err != nil || len(all) != 1 || all[0].Cursor != h.cursor || all[0].Lag != uint64(rfc10Rows-h.cursor) {
		t.Fatalf("consumers after the restart: %+v, %v; want the cursor at %d", all, err, h.cursor)
	}
	var got []string
	rows, err := wr.Pull(t.Context(), 0, "miner", 100)
	if not := (*NotLocalError)(nil); errors.As(err, &not) {
		stored := w.stored("x")
		if len(stored) < int(not.First)-1 {
			t.Fatalf("rows below %d are not local, and the bucket has %d", not.First, len(stored))
		}
		got = append(got, stored[h.cursor:not.First-1]...)
		rows, err = nil, nil
		for row, rerr := range wr.ReadShard(t.Context(), 0, not.First, 0) {
			rows, err = append(rows, row), errors.Join(err, rerr)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		got = append(got, string(row.Payload))
	}
	if want := rfc10Payloads(h.cursor + 1); !slices.Equal(got, want) {
		t.Errorf("the consumer gets %q, want %q", got, want)
	}
}

// once: whatever was absorbed before the crash was not sent again.
func (h rfc10Horizons) once(t *testing.T, w *world, counter *putCount) {
	t.Helper()
	counter.slots(t, int(w.chain(0).AbsorbedEnd)-1)
	seen := map[segment.Seq]int{}
	for i := range w.stored("x") {
		seen[segment.Seq(i+1)]++
	}
	if len(seen) != rfc10Rows+1 {
		t.Errorf("%d rows are stored, want %d", len(seen), rfc10Rows+1)
	}
}

// rfc10Cadence: a rotation records the cursors as of that point; the floor follows the
// cursor, and a directory that has only what the floor left knows them still.
func rfc10Cadence(t *testing.T) {
	w := newWorld(t, 1)
	wr := w.open("a")
	s := wr.shards[0]
	ack := func(seq segment.Seq) {
		t.Helper()
		if _, err := wr.Ack(t.Context(), 0, "miner", seq); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := wr.CreateConsumer(t.Context(), 0, "miner", 0); err != nil {
		t.Fatal(err)
	}
	for seq := segment.Seq(1); seq <= 6; seq++ {
		w.mustAppend(wr, "x", AckShared, fmt.Sprint("row ", seq)) // each in a segment of its own
		if seq%2 == 0 {
			ack(seq - 1)
		}
	}
	mustSeal(t, s) // the last ack opened a segment
	w.mustAppend(wr, "x", AckLocal, "row 7")
	start := s.wal.State().Start
	if want := []segment.Consumer{{Name: "miner", Cursor: 5}}; !slices.Equal(start.Consumers, want) {
		t.Errorf("segment %d starts with %v, want %v", start.ID, start.Consumers, want)
	}
	held := func() segment.Seq {
		s.housekeep(t.Context())
		if sealed := s.wal.Sealed(); len(sealed) > 0 {
			return sealed[0].Next - 1 // the last row of the oldest segment
		}
		return 0
	}
	if got := held(); got != 6 {
		t.Errorf("the cursor is at 5; the oldest segment on disk ends at row %d", got)
	}
	w.mustAppend(wr, "x", AckShared, "row 8")
	ack(8)
	w.mustAppend(wr, "x", AckShared, "row 9")
	s.housekeep(t.Context())
	for _, seg := range s.wal.Sealed() {
		if seg.Next <= 9 && seg.Next > seg.Base {
			t.Errorf("the cursor is at 8; segment %d to row %d still stands", seg.ID, seg.Next-1)
		}
	}
	abandon(t, wr)
	wr = w.open("a")
	all, err := wr.Consumers(t.Context(), 0)
	if err != nil || len(all) != 1 || all[0].Cursor != 8 {
		t.Errorf("after a restart on what was left: %+v, %v", all, err)
	}
	w.mustClose(wr)
	w.checkStored()
	if names, err := filepath.Glob(filepath.Join(s.dir, "*.torn")); err != nil || len(names) != 0 {
		t.Errorf("something was cut: %v, %v", names, err)
	}
}
