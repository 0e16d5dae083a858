package localtier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/segment"
)

func appendAs(ctx context.Context, wr *Writer, id string, seq uint64, stream, payload string, ack Ack) (Result, error) {
	return wr.AppendAs(ctx, Producer{ID: id, Sequence: seq}, stream, []segment.Row{{Payload: []byte(payload)}}, ack)
}

// mustAppendAs appends as a producer and remembers the row if it is the first time.
func (w *world) mustAppendAs(wr *Writer, id string, seq uint64, payload string, again bool) Result {
	w.t.Helper()
	res, err := appendAs(w.t.Context(), wr, id, seq, "s", payload, AckLocal)
	if err != nil {
		w.t.Fatalf("append as %s %d: %v", id, seq, err)
	}
	if !again {
		w.acked["s"] = append(w.acked["s"], payload)
	}
	return res
}

func refusedSequence(t *testing.T, wr *Writer, id string, seq, expect uint64) {
	t.Helper()
	_, err := appendAs(t.Context(), wr, id, seq, "s", "never", AckLocal)
	var out *SequenceError
	if !errors.As(err, &out) || !errors.Is(err, ErrSequence) || out.Expect != expect || out.Taken() != (seq < expect) || !strings.Contains(err.Error(), "per shard") {
		t.Errorf("%s %d: %v, want one that expects %d", id, seq, err, expect)
	}
}

// TestProducer: the last sequence again is answered with the first result, others are
// refused, and so it stays over restarts of every sort and a takeover.
func TestProducer(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	first := w.mustAppendAs(a, "p", 7, "p7", false) // an unknown one begins anywhere
	w.mustAppend(a, "s", AckLocal, "other")
	if again := w.mustAppendAs(a, "p", 7, "p7", true); again != first {
		t.Errorf("%+v, then %+v", first, again)
	}
	refusedSequence(t, a, "p", 6, 8)
	refusedSequence(t, a, "p", 9, 8)
	w.mustAppendAs(a, "q", 0, "q0", false)
	second := w.mustAppendAs(a, "p", 8, "p8", false)
	refusedSequence(t, a, "p", 7, 9)
	if second.First != 4 || second.Token(4).String() != "e1.t1.4" {
		t.Errorf("%+v, token %s", second, second.Token(4))
	}
	for _, r := range []struct {
		name    string
		restart func()
	}{
		{"rotation", func() { mustSeal(t, a.shards[0]) }},
		{"clean", func() { w.mustClose(a); a = w.open("a") }},
		{"crash", func() { w.crash(a, "a", "b"); a = w.open("b") }},
		{"published", func() { w.mustClose(a); a = w.open("b") }},
	} {
		r.restart()
		again := w.mustAppendAs(a, "p", 8, "p8", true)
		if again.First != second.First || again.Last != second.Last {
			t.Errorf("%s: %+v, then %+v", r.name, second, again)
		}
		refusedSequence(t, a, "p", 7, 9)
		refusedSequence(t, a, "p", 10, 9)
		refusedSequence(t, a, "q", 5, 1)
		checkCarried(t, a.shards[0])
	}
	w.mustAppendAs(a, "p", 9, "p9", false)
	w.mustClose(a)
	w.checkStored()
}

// TestOtherRowsUnderASequence: a client that numbers other rows like an append whose
// answer it never got is not told that they are written.
func TestOtherRowsUnderASequence(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppendAs(a, "p", 1, "one", false)
	two := []segment.Row{{Payload: []byte("two")}, {Payload: []byte("three")}}
	_, err := a.AppendAs(t.Context(), Producer{"p", 1}, "s", two, AckLocal)
	var said *SequenceError
	if !errors.As(err, &said) || !said.Others || !said.Taken() || said.Expect != 2 {
		t.Fatalf("two rows under the number of one: %v", err)
	}
	if next := a.Status()[0].NextSeq; next != 2 {
		t.Errorf("the refusal took seqs up to %d", next)
	}
	w.mustClose(a)
	w.checkStored()
}

func TestProducerRefusals(t *testing.T) {
	w := newWorld(t, 2)
	a := w.open("a", func(o *Options) { o.Shards = []segment.Shard{1} })
	ctx := t.Context()
	mine, theirs := streamOf(t, 1, 2), streamOf(t, 0, 2)
	rows := []segment.Row{{Payload: []byte("r")}}
	half := make([]byte, segment.MaxFrameBytes/2)
	for name, c := range map[string]struct {
		p      Producer
		stream string
		rows   []segment.Row
		ack    Ack
		want   error
	}{
		"no id":       {Producer{Sequence: 1}, mine, rows, AckLocal, segment.ErrName},
		"not UTF-8":   {Producer{ID: "\xff"}, mine, rows, AckLocal, segment.ErrName},
		"others":      {Producer{ID: "p"}, theirs, rows, AckLocal, ErrNotOwner},
		"no rows":     {Producer{ID: "p"}, mine, nil, AckLocal, ErrInvalid},
		"two frames":  {Producer{ID: "p"}, mine, []segment.Row{{Payload: half}, {Payload: half}}, AckLocal, ErrTooLarge},
		"bad ack":     {Producer{ID: "p"}, mine, rows, "quorum", ErrInvalid},
		"reserved":    {Producer{ID: "p"}, "~audit/1", rows, AckLocal, segment.ErrName},
		"barely over": {Producer{ID: "p"}, mine, []segment.Row{{Payload: make([]byte, segment.MaxFrameBytes-headBytes-3*10)}}, AckLocal, ErrTooLarge},
	} {
		if _, err := a.AppendAs(ctx, c.p, c.stream, c.rows, c.ack); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if next := a.Status()[0].NextSeq; next != 1 {
		t.Errorf("refusals took seqs up to %d", next)
	}
	// No producer is a plain append.
	if res, err := a.AppendAs(ctx, Producer{}, mine, rows, AckLocal); err != nil || res.First != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	if _, producers := a.shards[1].carried.lists(); len(producers) != 0 {
		t.Errorf("carried: %v", producers)
	}
	w.mustClose(a)
}

// TestRetryWaitsForTheFirst: while the first is under way a retry waits for it, whoever
// still listens, and answers alike.
func TestRetryWaitsForTheFirst(t *testing.T) {
	w := newWorld(t, 1)
	disk := &sickFS{FS: osFS(), syncing: make(chan struct{}), goOn: make(chan struct{})}
	a := w.open("a", func(o *Options) { o.Config.WAL.FS = disk })
	w.mustAppend(a, "s", AckLocal, "one")
	disk.stall.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	lost := make(chan error, 1)
	go func() { _, err := appendAs(ctx, a, "p", 1, "s", "two", AckLocal); lost <- err }()
	<-disk.syncing
	disk.stall.Store(false)
	cancel()
	if err := <-lost; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	answers := make(chan Result, 3)
	for range 3 {
		go func() {
			res, err := appendAs(t.Context(), a, "p", 1, "s", "two", AckLocal)
			if err != nil {
				t.Error(err)
			}
			answers <- res
		}()
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := appendAs(gone, a, "p", 1, "s", "two", AckLocal); !errors.Is(err, context.Canceled) {
		t.Errorf("answered before it was durable: %v", err)
	}
	disk.goOn <- struct{}{}
	for range 3 {
		if res := <-answers; res.First != 2 || res.Last != 2 {
			t.Errorf("%+v", res)
		}
	}
	w.acked["s"] = append(w.acked["s"], "two")
	checkCarried(t, a.shards[0])
	w.mustClose(a)
	w.checkStored()
}

// TestRetryAfterTheFirstFailed: what the disk refused is forgotten with its sequence,
// and that of what was queued behind it; a retry appends anew.
func TestRetryAfterTheFirstFailed(t *testing.T) {
	w := newWorld(t, 1)
	disk := &sickFS{FS: osFS(), syncing: make(chan struct{}), goOn: make(chan struct{})}
	clock := &handClock{t: time.Now()}
	a := w.open("a", func(o *Options) { o.Config.WAL.FS = disk; o.Now = clock.now })
	s := a.shards[0]
	w.mustAppendAs(a, "p", 1, "p1", false)

	disk.stall.Store(true)
	held := make(chan error, 1)
	go func() { held <- w.append(a, "s", AckLocal, "held") }()
	<-disk.syncing
	disk.stall.Store(false)
	queued := func(n int) {
		t.Helper()
		eventually(t, s, "it is queued", func() bool { return notDurableYet(s) == n })
	}
	got := make(chan error, 4)
	ask := func(seq uint64) {
		_, err := appendAs(t.Context(), a, "p", seq, "s", fmt.Sprint("p", seq), AckLocal)
		got <- err
	}
	go ask(2)
	queued(1)
	go ask(3) // a producer that does not wait for its answers
	queued(2)
	go ask(3)
	go ask(2) // looks taken, and is not
	disk.full.Store(true)
	disk.goOn <- struct{}{}
	if err := <-held; err != nil {
		t.Error(err)
	}
	for range 4 {
		// The one that comes first again after the failure meets the pause, or the gap that
		// the failure of 2 left behind.
		if err := <-got; !errors.Is(err, ErrBackpressure) && !errors.Is(err, ErrSequence) {
			t.Errorf("%v", err)
		}
	}
	disk.full.Store(false)
	clock.advance(2 * stallPause)
	if res := w.mustAppendAs(a, "p", 1, "p1", true); res.First != 1 {
		t.Errorf("%+v", res)
	}
	refusedSequence(t, a, "p", 3, 2)
	for seq := uint64(2); seq < 4; seq++ {
		res := w.mustAppendAs(a, "p", seq, fmt.Sprint("p", seq), false)
		if again := w.mustAppendAs(a, "p", seq, fmt.Sprint("p", seq), true); again != res || res.First != segment.Seq(seq+1) {
			t.Errorf("%+v, then %+v", res, again)
		}
	}
	checkCarried(t, s)
	w.mustClose(a)
	w.checkStored()
}

// TestRetryAfterFailedFsync: nobody knows whether the first became durable until the
// next start has looked; then the retry is answered or made, and the row is there once.
func TestRetryAfterFailedFsync(t *testing.T) {
	w := newWorld(t, 1)
	disk := &sickFS{FS: osFS()}
	a := w.open("a", func(o *Options) { o.Config.WAL.FS = disk })
	w.mustAppendAs(a, "p", 1, "p1", false)
	disk.fail(true)
	for range 2 {
		if _, err := appendAs(t.Context(), a, "p", 2, "s", "p2", AckLocal); err == nil {
			t.Fatal("acknowledged without an fsync")
		}
	}
	disk.fail(false)
	abandon(t, a)
	b := w.open("a")
	res := w.mustAppendAs(b, "p", 2, "p2", false)
	if again := w.mustAppendAs(b, "p", 2, "p2", true); again != res || res.First != 2 {
		t.Errorf("%+v, then %+v", res, again)
	}
	checkCarried(t, b.shards[0])
	w.mustClose(b)
	w.checkStored()
}

// TestSharedRetry: a retry that asks for more than the first waits for the absorb of the
// first's segment, also after a restart, and wants nothing of the open segment.
func TestSharedRetry(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted=%v", restarted), func(t *testing.T) {
			w := newWorld(t, 1)
			away := &awayCatalog{Catalog: w.cat}
			with := func(o *Options) { o.Catalog = away }
			a := w.open("a", with)
			away.away.Store(true)
			first := w.mustAppendAs(a, "p", 1, "p1", false)
			if restarted {
				w.crash(a, "a", "b")
				a = w.open("b", with)
			}
			s := a.shards[0]
			got := make(chan Result, 1)
			go func() {
				res, err := appendAs(t.Context(), a, "p", 1, "s", "p1", AckShared)
				if err != nil {
					t.Error(err)
				}
				got <- res
			}()
			eventually(t, s, "its slot stands", func() bool { return len(w.mem.Keys()) > 0 })
			select {
			case res := <-got:
				t.Fatalf("answered before its absorb: %+v", res)
			default:
			}
			away.away.Store(false)
			if res := <-got; res.First != first.First || res.Last != first.Last || s.chainRow().NextSeq <= res.Last {
				t.Errorf("%+v, then %+v; absorbed before %d", first, res, s.chainRow().NextSeq)
			}
			// And again, once it is absorbed: at once.
			if res, err := appendAs(t.Context(), a, "p", 1, "s", "p1", AckShared); err != nil || res.First != first.First {
				t.Errorf("%+v, %v", res, err)
			}
			w.mustClose(a)
			w.checkStored()
		})
	}
}

// TestProducersAreForgotten: a shard remembers those used last; one that it forgot begins
// anywhere.
func TestProducersAreForgotten(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	s := a.shards[0]
	old := make([]segment.Producer, segment.MaxProducers)
	for i := range old {
		old[i] = segment.Producer{ID: fmt.Sprint("old", i), Sequence: 3, First: 1, Last: 1}
	}
	s.carried.restart(nil, old)
	w.mustAppendAs(a, "old0", 4, "a", false) // used: old1 is the oldest now
	w.mustAppendAs(a, "new", 1, "b", false)
	if _, ps := s.carried.lists(); len(ps) != segment.MaxProducers {
		t.Errorf("%d are remembered", len(ps))
	}
	refusedSequence(t, a, "old0", 3, 5)
	refusedSequence(t, a, "old2", 9, 4)
	w.mustAppendAs(a, "old1", 77, "c", false)
	w.mustClose(a)
	w.checkStored()
}

// TestProducersAgainstModel: 16 producers lose answers at random and ask again until
// they have one, while segments begin and some of the disk's writes are refused. Every
// append's row is there once, in its producer's order.
func TestProducersAgainstModel(t *testing.T) {
	w := newWorld(t, 1)
	disk := powercut.New()
	clock := &handClock{t: time.Now()}
	a := w.open("a", func(o *Options) { o.Config.WAL.FS = disk; o.Now = clock.now; o.Config.AckAfterLease = true })
	s := a.shards[0]
	const producers, appends, rollbacks = 16, 60, 4
	var wg sync.WaitGroup
	for i := range producers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 9))
			id, stream := fmt.Sprint("p", i), fmt.Sprint("s", i%4)
			for n := range uint64(appends) {
				row := fmt.Sprint(id, "/", n)
				res := untilAnswered(t, a, rng, Producer{id, n}, stream, row)
				if rng.IntN(4) == 0 {
					again, err := appendAs(t.Context(), a, id, n, stream, row, AckLocal)
					if err != nil || again != res {
						t.Errorf("%s: %+v, then %+v, %v", row, res, again, err)
					}
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	running := func() bool {
		select {
		case <-done:
			return false
		default:
			return true
		}
	}
	for n := int64(1); running(); n++ {
		mustSeal(t, s)
		if n > rollbacks {
			clock.advance(2 * stallPause)
			continue
		}
		disk.SetFree(0)
		eventually(t, s, "a write is taken back", func() bool {
			clock.advance(2 * stallPause) // one who heard of the last failure late may have stalled all again
			return s.wal.Metrics().Rollbacks >= n || !running()
		})
		disk.SetFree(-1)
		// Those who come again must find the pause over, and the log may not know that it
		// failed yet.
		eventually(t, s, "appends go on", func() bool {
			clock.advance(2 * stallPause)
			return w.append(a, "filler", AckLocal, fmt.Sprint(n)) == nil
		})
	}
	checkCarried(t, s)
	if rolled := s.wal.Metrics().Rollbacks; rolled < rollbacks {
		t.Errorf("%d writes were taken back: the producers were done too soon", rolled)
	}
	w.mustClose(a)
	checkOnce(t, w, producers, appends, 4)
	w.fsck()
}

// untilAnswered asks until there is an answer, and walks away from some of them.
func untilAnswered(t *testing.T, wr *Writer, rng *rand.Rand, p Producer, stream, row string) (res Result) {
	var err error
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) {
		ctx, cancel := context.WithCancel(t.Context())
		if rng.IntN(3) == 0 {
			time.AfterFunc(time.Duration(rng.IntN(int(6*time.Millisecond))), cancel)
		}
		res, err = appendAs(ctx, wr, p.ID, p.Sequence, stream, row, AckLocal)
		cancel()
		switch {
		case err == nil:
			return res
		case errors.Is(err, ErrBackpressure):
			time.Sleep(time.Millisecond) // as its RetryAfter wants, in short
		case errors.Is(err, context.Canceled):
		default:
			t.Errorf("%s: %v", row, err)
			return res
		}
	}
	t.Errorf("%s: never answered, at last %v", row, err)
	return res
}

// checkOnce: each producer's rows are in the shared tier once, in their order.
func checkOnce(t *testing.T, w *world, producers, appends, streams int) {
	t.Helper()
	stored := make([][]string, streams)
	for i := range stored {
		stored[i] = w.stored(fmt.Sprint("s", i))
	}
	total := 0
	for i := range producers {
		prefix := fmt.Sprint("p", i, "/")
		var got []string
		for _, row := range stored[i%streams] {
			if len(row) > len(prefix) && row[:len(prefix)] == prefix {
				got = append(got, row[len(prefix):])
			}
		}
		var want []string
		for n := range appends {
			want = append(want, fmt.Sprint(n))
		}
		if !slices.Equal(got, want) {
			t.Errorf("producer %d: stored %s, want 0 to %d", i, brief(got), appends-1)
		}
		total += len(got)
	}
	n := 0
	for _, rows := range stored {
		n += len(rows)
	}
	if n != total {
		t.Errorf("%d rows stand, %d of them are some producer's", n, total)
	}
}

// TestProducersOverPowerCuts: producers ask again what they have no answer to, over one
// power cut after another. Every row is there once.
func TestProducersOverPowerCuts(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 7))
			w := newWorld(t, 1)
			const producers, appends = 6, 40
			next := make([]uint64, producers)
			disk := powercut.New()
			for cuts := 0; slices.Min(next) < appends; cuts++ {
				if cuts == 200 {
					t.Fatalf("no end: %v", next)
				}
				disk.PowerOffAfter(60 + rng.IntN(200))
				if wr, err := w.tryOpen("a", func(o *Options) { o.Config.WAL.FS = disk }); err == nil {
					var wg sync.WaitGroup
					for i := range next {
						wg.Go(func() {
							for ; next[i] < appends; next[i]++ {
								if _, err := appendAs(t.Context(), wr, fmt.Sprint("p", i), next[i], fmt.Sprint("s", i%4), fmt.Sprint("p", i, "/", next[i]), AckLocal); err != nil {
									return
								}
							}
						})
					}
					wg.Wait()
					abandon(t, wr)
				}
				disk = disk.Cut(rng.Uint64())
			}
			last := w.open("a", func(o *Options) { o.Config.WAL.FS = disk })
			checkCarried(t, last.shards[0])
			w.mustClose(last)
			checkOnce(t, w, producers, appends, 4)
			w.fsck()
		})
	}
}
