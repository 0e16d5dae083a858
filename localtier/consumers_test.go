package localtier

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

func mustAck(t *testing.T, wr *Writer, name string, seq segment.Seq) {
	t.Helper()
	if _, err := wr.Ack(t.Context(), 0, name, seq); err != nil {
		t.Fatalf("ack %s %d: %v", name, seq, err)
	}
}

func mustCreate(t *testing.T, wr *Writer, name string, after segment.Seq) ConsumerStatus {
	t.Helper()
	c, err := wr.CreateConsumer(t.Context(), 0, name, after)
	if err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
	return c
}

func mustRemove(t *testing.T, wr *Writer, name string) {
	t.Helper()
	if err := wr.RemoveConsumer(t.Context(), 0, name); err != nil {
		t.Fatalf("remove %s: %v", name, err)
	}
}

func pulled(t *testing.T, wr *Writer, name string, limit int) string {
	t.Helper()
	rows, err := wr.Pull(t.Context(), 0, name, limit)
	if err != nil {
		t.Fatalf("pull %s: %v", name, err)
	}
	var out []string
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%s/%d/%s", r.Stream, r.Seq, r.Payload))
	}
	return strings.Join(out, " ")
}

// TestConsumer is the life of one: made, pulling, acknowledging, removed.
func TestConsumer(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppend(a, "x", AckLocal, "x1")
	w.mustAppend(a, "y", AckLocal, "y1")
	w.mustAppend(a, "x", AckLocal, "x2")

	// The first pull makes it, at the oldest row; a pull moves nothing.
	for range 2 {
		if got := pulled(t, a, "c", 2); got != "x/1/x1 y/2/y1" {
			t.Errorf("pulled %q", got)
		}
	}
	if c, err := a.Ack(t.Context(), 0, "c", 2); err != nil || c != (ConsumerStatus{"c", 2, 1}) {
		t.Errorf("%+v, %v", c, err)
	}
	if got := pulled(t, a, "c", 100); got != "x/3/x2" {
		t.Errorf("pulled %q", got)
	}
	mustAck(t, a, "c", 3)
	if got := pulled(t, a, "c", 100); got != "" {
		t.Errorf("pulled %q", got)
	}
	// Never back, never beyond.
	if c, err := a.Ack(t.Context(), 0, "c", 1); err != nil || c.Cursor != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := a.Ack(t.Context(), 0, "c", 4); !errors.Is(err, ErrInvalid) {
		t.Errorf("beyond the end: %v", err)
	}
	w.mustAppend(a, "x", AckLocal, "x3", "x4")
	if got := fmt.Sprint(a.Status()[0].Consumers); got != "[{c 3 2}]" {
		t.Errorf("status says %s", got)
	}

	if c := mustCreate(t, a, "late", 4); c != (ConsumerStatus{"late", 4, 1}) {
		t.Errorf("%+v", c)
	}
	if c := mustCreate(t, a, "end", 1<<40); c.Cursor != 5 || c.Lag != 0 {
		t.Errorf("%+v", c)
	}
	if c := mustCreate(t, a, "c", 0); c.Cursor != 3 {
		t.Errorf("made again: %+v", c)
	}
	if got := cursorsOf(t, a, 0); got != "c:3 end:5 late:4" {
		t.Errorf("%q", got)
	}
	mustRemove(t, a, "c")
	if got := cursorsOf(t, a, 0); got != "end:5 late:4" {
		t.Errorf("%q", got)
	}
	if err := a.RemoveConsumer(t.Context(), 0, "c"); !errors.Is(err, ErrNoConsumer) || !strings.Contains(err.Error(), "consumers ls 0 --epoch 1") || strings.Contains(err.Error(), "create") {
		t.Errorf("removed twice: %v", err)
	}
	if _, err := a.Ack(t.Context(), 0, "c", 5); !errors.Is(err, ErrNoConsumer) {
		t.Errorf("ack of a removed one: %v", err)
	}
	checkCarried(t, a.shards[0])
	w.mustClose(a)
	w.checkStored()
	if _, err := a.Ack(t.Context(), 0, "late", 5); !errors.Is(err, ErrClosed) {
		t.Errorf("after close: %v", err)
	}
}

func TestConsumerRefusals(t *testing.T) {
	w := newWorld(t, 2)
	a := w.open("a", func(o *Options) { o.Shards = []segment.Shard{0} })
	b := w.open("b", func(o *Options) { o.Shards = []segment.Shard{1} })
	ctx := t.Context()
	calls := func(shard segment.Shard, name string) map[string]error {
		_, create := a.CreateConsumer(ctx, shard, name, 0)
		_, ack := a.Ack(ctx, shard, name, 0)
		_, pull := a.Pull(ctx, shard, name, 1)
		return map[string]error{"create": create, "ack": ack, "pull": pull, "remove": a.RemoveConsumer(ctx, shard, name)}
	}
	for _, name := range []string{"", "\xff", strings.Repeat("n", 201)} {
		for call, err := range calls(0, name) {
			if !errors.Is(err, segment.ErrName) {
				t.Errorf("%s %q: %v", call, name, err)
			}
		}
	}
	others := calls(1, "c")
	_, others["list"] = a.Consumers(ctx, 1)
	for call, err := range others {
		var not *NotOwnerError
		if !errors.As(err, &not) || not.Shard != 1 || not.Owner != "b:8420" || not.Stream != "" || !strings.Contains(err.Error(), "shard 1") {
			t.Errorf("%s on another's shard: %v", call, err)
		}
	}
	for call, err := range calls(2, "c") {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s on no shard: %v", call, err)
		}
	}
	if _, err := a.Pull(ctx, 0, "c", 0); !errors.Is(err, ErrInvalid) {
		t.Errorf("pull of nothing: %v", err)
	}
	if st := a.Status()[0]; len(st.Consumers) != 0 || st.UnpublishedSegments != 0 {
		t.Errorf("refusals wrote something: %+v", st)
	}
	w.mustClose(a)
	w.mustClose(b)
}

// TestConsumersSurvive: after each act, by a clean close and by a crash, with and
// without index.json, and over a takeover on an empty disk, cursors are what was
// acknowledged, and who was removed stays away.
func TestConsumersSurvive(t *testing.T) {
	acts := []struct {
		act  func(t *testing.T, w *world, wr *Writer)
		want string
	}{
		{func(t *testing.T, w *world, wr *Writer) { mustCreate(t, wr, "c", 0) }, "c:0"},
		{func(t *testing.T, w *world, wr *Writer) { w.mustAppend(wr, "s", AckLocal, names("1", 5)...) }, "c:0"},
		{func(t *testing.T, w *world, wr *Writer) { mustAck(t, wr, "c", 3); mustCreate(t, wr, "d", 2) }, "c:3 d:2"},
		{func(t *testing.T, w *world, wr *Writer) { mustSeal(t, wr.shards[0]) }, "c:3 d:2"},
		{func(t *testing.T, w *world, wr *Writer) { mustAck(t, wr, "d", 5); mustAck(t, wr, "c", 4) }, "c:4 d:5"},
		{func(t *testing.T, w *world, wr *Writer) { mustRemove(t, wr, "c") }, "d:5"},
		{func(t *testing.T, w *world, wr *Writer) {
			mustSeal(t, wr.shards[0])
			w.mustAppend(wr, "s", AckLocal, names("2", 3)...)
		}, "d:5"},
		{func(t *testing.T, w *world, wr *Writer) { mustCreate(t, wr, "c", 0); mustRemove(t, wr, "d") }, "c:0"},
		{func(t *testing.T, w *world, wr *Writer) { mustAck(t, wr, "c", 8) }, "c:8"},
	}
	restarts := map[string]func(w *world, wr *Writer, from, to string) *Writer{
		"close": func(w *world, wr *Writer, from, to string) *Writer {
			w.mustClose(wr)
			return w.open(from)
		},
		"crash": func(w *world, wr *Writer, from, to string) *Writer {
			w.crash(wr, from, to)
			return w.open(to)
		},
		"crash, no index": func(w *world, wr *Writer, from, to string) *Writer {
			w.crash(wr, from, to)
			index := filepath.Join(w.root, to, wr.shards[0].chain.String(), segment.IndexFile)
			if err := os.Remove(index); err != nil && !errors.Is(err, os.ErrNotExist) {
				w.t.Fatal(err)
			}
			return w.open(to)
		},
		"takeover": func(w *world, wr *Writer, from, to string) *Writer {
			if err := wr.Flush(w.t.Context()); err != nil {
				w.t.Fatal(err)
			}
			abandon(w.t, wr)
			return w.open(to, steal)
		},
	}
	for name, restart := range restarts {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			dir := "d0"
			wr := w.open(dir)
			for i, a := range acts {
				a.act(t, w, wr)
				if got := cursorsOf(t, wr, 0); got != a.want {
					t.Errorf("act %d: %q, want %q", i, got, a.want)
				}
				next := fmt.Sprint("d", i+1)
				wr = restart(w, wr, dir, next)
				if _, err := os.Stat(filepath.Join(w.root, next)); err == nil {
					dir = next
				}
				if got := cursorsOf(t, wr, 0); got != a.want {
					t.Errorf("after act %d and a restart: %q, want %q", i, got, a.want)
				}
				checkCarried(t, wr.shards[0])
			}
			w.mustClose(wr)
			w.checkStored()
			var row []ConsumerStatus
			for _, c := range w.chain(0).Consumers {
				row = append(row, ConsumerStatus{Name: c.Name, Cursor: c.Cursor})
			}
			if got, want := cursorText(row), acts[len(acts)-1].want; got != want {
				t.Errorf("the chain row says %q, want %q", got, want)
			}
		})
	}
}

// TestConsumerMadeAgain: one that is removed and made again begins anew, in the catalog
// as here, although both came at once and the catalog lowers no cursor.
func TestConsumerMadeAgain(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppend(a, "s", AckLocal, names("s", 9)...)
	mustCreate(t, a, "c", 0)
	mustAck(t, a, "c", 9)
	mustRemove(t, a, "c")
	if c := mustCreate(t, a, "c", 2); c.Cursor != 2 {
		t.Errorf("made again at %d", c.Cursor)
	}
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(w.chain(0).Consumers); got != "[{c 2}]" {
		t.Errorf("the chain row says %s", got)
	}
	checkCarried(t, a.shards[0])
	w.mustClose(a)
}

// TestConsumerStartsAtTheWatermark: what retention gave up is nobody's to read.
func TestConsumerStartsAtTheWatermark(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppend(a, "s", AckLocal, names("s", 9)...)
	s := a.shards[0]
	s.progress.mu.Lock()
	s.progress.row.WatermarkSeq = 4
	s.progress.mu.Unlock()
	for _, after := range []segment.Seq{0, 3, 4, 7} {
		if c := mustCreate(t, a, fmt.Sprint("c", after), after); c.Cursor != max(4, after) {
			t.Errorf("after %d: %+v", after, c)
		}
	}
	w.mustClose(a)
}

// TestRetentionCountsConsumersInTheMaking: a plan holds the cursors lock, and sees the
// consumer whose frame is numbered and not durable yet.
func TestRetentionCountsConsumersInTheMaking(t *testing.T) {
	w := newWorld(t, 1)
	disk := &sickFS{FS: osFS(), syncing: make(chan struct{}), goOn: make(chan struct{})}
	a := w.open("a", func(o *Options) { o.Config.WAL.FS = disk })
	w.mustAppend(a, "s", AckLocal, names("s", 9)...)
	s := a.shards[0]
	mustCreate(t, a, "old", 5)
	disk.stall.Store(true)
	made := make(chan error, 1)
	go func() {
		_, err := a.CreateConsumer(t.Context(), 0, "new", 2)
		made <- err
	}()
	<-disk.syncing
	disk.stall.Store(false)
	s.cursors.Lock()
	holding := fmt.Sprint(s.carried.holding())
	s.cursors.Unlock()
	if holding != "[{new 2} {old 5}]" {
		t.Errorf("retention sees %s", holding)
	}
	if got := cursorsOf(t, a, 0); got != "old:5" {
		t.Errorf("before it is durable: %q", got)
	}
	disk.goOn <- struct{}{}
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	w.mustClose(a)
}

// TestConsumersAndFullDisk: what the disk refused is taken back: no cursor moves, none
// stands or is gone, and a segment that begins later says so.
func TestConsumersAndFullDisk(t *testing.T) {
	w := newWorld(t, 1)
	disk := &sickFS{FS: osFS()}
	clock := &handClock{t: time.Now()}
	a := w.open("a", func(o *Options) { o.Config.WAL.FS = disk; o.Now = clock.now })
	ctx := t.Context()
	w.mustAppend(a, "s", AckLocal, names("s", 9)...)
	mustCreate(t, a, "c", 0)
	mustCreate(t, a, "d", 0)
	mustAck(t, a, "c", 3)
	for round := range 3 {
		disk.full.Store(true)
		var err error
		switch round {
		case 0:
			_, err = a.Ack(ctx, 0, "c", 7)
		case 1:
			_, err = a.CreateConsumer(ctx, 0, "e", 0)
		case 2:
			err = a.RemoveConsumer(ctx, 0, "d")
		}
		if !errors.Is(err, ErrBackpressure) {
			t.Fatalf("round %d: %v", round, err)
		}
		if _, err := a.Ack(ctx, 0, "d", 1); !errors.Is(err, ErrBackpressure) {
			t.Errorf("round %d, right after: %v", round, err)
		}
		disk.full.Store(false)
		clock.advance(2 * stallPause)
		mustSeal(t, a.shards[0])
		w.mustAppend(a, "s", AckLocal, fmt.Sprint("after", round))
		if got := cursorsOf(t, a, 0); got != "c:3 d:0" {
			t.Errorf("round %d: %q", round, got)
		}
		checkCarried(t, a.shards[0])
	}
	mustAck(t, a, "c", 7)
	mustRemove(t, a, "d")
	w.crash(a, "a", "b")
	b := w.open("b")
	if got := cursorsOf(t, b, 0); got != "c:7" {
		t.Errorf("after a crash: %q", got)
	}
	w.mustClose(b)
	w.checkStored()
}

// TestConsumersAndFailedFsync: an acknowledgement whose fsync failed was never given,
// nothing is given after it, and the next start has a cursor that is one or the other.
func TestConsumersAndFailedFsync(t *testing.T) {
	w := newWorld(t, 1)
	disk := &sickFS{FS: osFS()}
	a := w.open("a", func(o *Options) { o.Config.WAL.FS = disk })
	w.mustAppend(a, "s", AckLocal, names("s", 9)...)
	mustCreate(t, a, "c", 0)
	mustAck(t, a, "c", 3)
	disk.fail(true)
	if _, err := a.Ack(t.Context(), 0, "c", 7); !errors.Is(err, wal.ErrPoisoned) {
		t.Fatalf("acknowledged without an fsync: %v", err)
	}
	disk.fail(false)
	for _, seq := range []segment.Seq{1, 7, 8} { // also what would need no frame
		if _, err := a.Ack(t.Context(), 0, "c", seq); !errors.Is(err, wal.ErrPoisoned) {
			t.Errorf("ack %d on a poisoned log: %v", seq, err)
		}
	}
	abandon(t, a)
	b := w.open("a")
	if got := cursorsOf(t, b, 0); got != "c:3" && got != "c:7" {
		t.Errorf("%q", got)
	}
	mustAck(t, b, "c", 8)
	checkCarried(t, b.shards[0])
	w.mustClose(b)
	w.checkStored()
}

// TestAnswersRestOnDurableFrames: an ack or a removal that needs no frame of its own
// waits for the one that it rests on, and is not given if that is taken back.
func TestAnswersRestOnDurableFrames(t *testing.T) {
	w := newWorld(t, 1)
	disk := &sickFS{FS: osFS(), syncing: make(chan struct{}), goOn: make(chan struct{})}
	clock := &handClock{t: time.Now()}
	a := w.open("a", func(o *Options) { o.Config.WAL.FS = disk; o.Now = clock.now })
	s := a.shards[0]
	ctx := t.Context()
	w.mustAppend(a, "s", AckLocal, names("s", 9)...)
	mustCreate(t, a, "c", 0)
	mustCreate(t, a, "d", 0)

	disk.stall.Store(true)
	held := make(chan error, 1)
	go func() { held <- w.append(a, "s", AckLocal, "held") }()
	<-disk.syncing // everything from here on is queued behind it
	disk.stall.Store(false)
	got := make(chan error, 4)
	numbered := func(n int) func() bool { return func() bool { return notDurableYet(s) == n } }
	ack := func(seq segment.Seq) { _, err := a.Ack(ctx, 0, "c", seq); got <- err }
	remove := func() { got <- a.RemoveConsumer(ctx, 0, "d") }
	go ack(5)
	eventually(t, s, "the ack is queued", numbered(1))
	go remove()
	eventually(t, s, "the removal is queued", numbered(2))
	go ack(4)
	go remove()
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := a.Ack(stopped, 0, "c", 4); !errors.Is(err, context.Canceled) {
		t.Errorf("answered before it was durable: %v", err)
	}
	disk.full.Store(true)
	disk.goOn <- struct{}{}
	if err := <-held; err != nil {
		t.Error(err)
	}
	for range 4 {
		if err := <-got; !errors.Is(err, ErrBackpressure) {
			t.Errorf("%v", err)
		}
	}
	disk.full.Store(false)
	clock.advance(2 * stallPause)
	if c, err := a.Ack(ctx, 0, "c", 1); err != nil || c.Cursor != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if got := cursorsOf(t, a, 0); got != "c:1 d:0" {
		t.Errorf("%q", got)
	}
	checkCarried(t, s)
	w.mustClose(a)
}

// TestFencedConsumers: who lost the chain, or may have, moves no cursor and gives no rows.
func TestFencedConsumers(t *testing.T) {
	w := newWorld(t, 1)
	clock := &handClock{t: time.Now()}
	away := &awayCatalog{Catalog: w.cat}
	a := w.open("a", func(o *Options) { o.Now = clock.now; o.Catalog = away; o.Config.LeaseTime = time.Minute })
	w.mustAppend(a, "s", AckShared, names("s", 5)...)
	mustCreate(t, a, "c", 0)
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused := func(wr *Writer, want error) {
		t.Helper()
		ctx := t.Context()
		_, ack := wr.Ack(ctx, 0, "c", 3)
		_, create := wr.CreateConsumer(ctx, 0, "d", 0)
		_, pull := wr.Pull(ctx, 0, "c", 1)
		_, list := wr.Consumers(ctx, 0)
		for call, err := range map[string]error{"ack": ack, "create": create, "pull": pull, "list": list, "remove": wr.RemoveConsumer(ctx, 0, "c")} {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", call, err, want)
			}
		}
	}
	away.away.Store(true)
	clock.advance(2 * time.Minute)
	refused(a, ErrLeaseLost)
	away.away.Store(false)
	b := w.open("b", steal)
	if _, err := b.Ack(t.Context(), 0, "c", 4); err != nil {
		t.Fatal(err)
	}
	a.shards[0].stop(a.shards[0].fenced("seen by the test"))
	refused(a, ErrFenced)
	abandon(t, a)
	w.mustClose(b)
	if got := fmt.Sprint(w.chain(0).Consumers); got != "[{c 4}]" {
		t.Errorf("the chain row says %s", got)
	}
}

// TestAcksRaceRotations: consumers acknowledge, come and go while segments begin; every
// SegmentStart is exact, and no cursor that was given is lost.
func TestAcksRaceRotations(t *testing.T) {
	w := newWorld(t, 1)
	disk := powercut.New()
	a := w.open("a", func(o *Options) { o.Config.WAL.FS = disk })
	s := a.shards[0]
	const clients, rounds = 8, 40
	var wg sync.WaitGroup
	done := make(chan struct{})
	for i := range clients {
		wg.Go(func() {
			name, stream := fmt.Sprint("c", i), fmt.Sprint("s", i)
			mustCreate(t, a, name, 0)
			for n := range rounds {
				if err := w.append(a, stream, AckLocal, fmt.Sprint(stream, n)); err != nil {
					t.Error(err)
					return
				}
				res, err := a.Ack(t.Context(), 0, name, segment.Seq(n+1))
				if err != nil || res.Cursor != segment.Seq(n+1) {
					t.Errorf("%+v, %v", res, err)
					return
				}
				if n%10 == 9 && i%2 == 0 {
					brief := fmt.Sprintf("brief-%d-%d", i, n)
					mustCreate(t, a, brief, 0)
					mustRemove(t, a, brief)
				}
			}
		})
	}
	go func() { wg.Wait(); close(done) }()
	for rotating := true; rotating; {
		select {
		case <-done:
			rotating = false
		default:
			mustSeal(t, s)
		}
	}
	checkCarried(t, s)
	want := cursorsOf(t, a, 0)
	if strings.Count(want, fmt.Sprint(":", rounds)) != clients {
		t.Errorf("%q", want)
	}
	abandon(t, a)
	for seed := range uint64(4) {
		disk = disk.Cut(seed)
		a = w.open("a", func(o *Options) { o.Config.WAL.FS = disk })
		if got := cursorsOf(t, a, 0); got != want {
			t.Errorf("after power cut %d: %q, want %q", seed, got, want)
		}
		if seed < 3 {
			abandon(t, a)
		}
	}
	w.mustClose(a)
	w.checkStored()
}
