package wal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

func TestAppendedRowsComeBackInOrder(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	b := batch("a", "b")
	ticket, err := l.AppendBatch(t.Context(), b)
	if err != nil || b.First != 1 {
		t.Fatalf("append: first seq %d, %v", b.First, err)
	}
	first, err := ticket.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second := mustPut(t, l, "c")
	if first.Compare(second) >= 0 || second.Segment != 1 {
		t.Fatalf("offsets %v, %v are out of order", first, second)
	}
	if s := l.State(); s.Next != 4 || s.DurableNext != 4 || s.Durable != second || s.Frames != 3 || !s.Open {
		t.Fatalf("state %+v", s)
	}
	mustClose(t, l)
	l, r := open(t, fsys)
	defer mustClose(t, l)
	wantRows(t, r, "a", "b", "c")
	if r.kinds[0] != segment.KindStart || r.offsets[2] != second {
		t.Fatalf("replay %v at %v", r.kinds, r.offsets)
	}
	if s := l.State(); s.Next != 4 || s.Start.Chain != testChain || s.Start.Term != 1 {
		t.Fatalf("state after reopening %+v", s)
	}
}

func TestManyProducersEachRowOnce(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	const producers, each = 16, 50
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			last := segment.Seq(0)
			for i := range each {
				b := batch(fmt.Sprintf("%d/%d", p, i))
				ticket, err := l.AppendBatch(context.Background(), b)
				if err == nil {
					_, err = ticket.Wait(context.Background())
				}
				if err != nil || b.First <= last {
					t.Errorf("producer %d row %d: seq %d after %d, %v", p, i, b.First, last, err)
					return
				}
				last = b.First
			}
		})
	}
	wg.Wait()
	if m := l.Metrics(); m.Rows != producers*each || m.Frames != m.Rows || m.Syncs > m.Rows+2 {
		t.Errorf("%+v", m)
	}
	mustClose(t, l)
	l, r := open(t, fsys)
	defer mustClose(t, l)
	r.gapless(t)
	next := map[string]int{}
	for _, p := range r.payloads() {
		who, n, _ := strings.Cut(p, "/")
		if n != fmt.Sprint(next[who]) {
			t.Fatalf("producer %s: row %s where %d was due", who, n, next[who])
		}
		next[who]++
	}
	if len(r.rows) != producers*each {
		t.Fatalf("%d rows of %d", len(r.rows), producers*each)
	}
}

// No acknowledgement before the fdatasync: with a disk that does not answer,
// nobody is told.
func TestNoAcknowledgementBeforeSync(t *testing.T) {
	fsys := powercut.New()
	mustClose(t, fresh(t, fsys))
	entered, gate := make(chan struct{}), make(chan struct{})
	slow := &slowSync{FS: fsys, entered: entered, gate: gate}
	l, err := wal.Open(t.Context(), shardDir, config(slow), (&recorder{}).take)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, l)
	slow.on.Store(true)
	ticket, err := l.AppendBatch(t.Context(), batch("a"))
	if err != nil {
		t.Fatal(err)
	}
	<-entered // written, and in the fdatasync
	select {
	case <-ticket.Done():
		t.Fatal("acknowledged before the fdatasync returned")
	default:
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ticket.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("wait with a cancelled context: %v", err)
	}
	// What arrives now is the next group: one fdatasync for all of it.
	var tickets []wal.Ticket
	for range 20 {
		next, err := l.AppendBatch(t.Context(), batch("b"))
		if err != nil {
			t.Fatal(err)
		}
		tickets = append(tickets, next)
	}
	before := l.Metrics().Syncs
	slow.on.Store(false)
	close(gate)
	for _, next := range append(tickets, ticket) {
		if _, err := next.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.Metrics().Syncs - before; got != 2 {
		t.Fatalf("%d fdatasyncs, want the one in flight and one for the group", got)
	}
}

func TestBackpressureIsTypedAndBounded(t *testing.T) {
	fsys := powercut.New()
	mustClose(t, fresh(t, fsys))
	entered, gate := make(chan struct{}), make(chan struct{})
	slow := &slowSync{FS: fsys, entered: entered, gate: gate}
	l, err := wal.Open(t.Context(), shardDir, config(slow), (&recorder{}).take)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, l)
	slow.on.Store(true)
	if _, err := l.AppendBatch(t.Context(), batch("first")); err != nil {
		t.Fatal(err)
	}
	<-entered
	big := strings.Repeat("x", 4<<20)
	limit := int64(2 * segment.MinSegmentBytes)
	var tickets []wal.Ticket
	for {
		next := l.State().Next
		ticket, err := l.AppendBatch(t.Context(), batch(big))
		if errors.Is(err, wal.ErrBackpressure) {
			if l.State().Next != next {
				t.Fatal("a refused append took a seq")
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if u := l.Unflushed(); u > limit {
			t.Fatalf("%d bytes wait, more than %d", u, limit)
		}
		tickets = append(tickets, ticket)
	}
	if l.Unflushed() < limit-5<<20 {
		t.Fatalf("refused at %d bytes of %d", l.Unflushed(), limit)
	}
	slow.on.Store(false)
	close(gate)
	for _, ticket := range tickets {
		if _, err := ticket.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mustPut(t, l, "goes on")
	if u := l.Unflushed(); u != 0 {
		t.Fatalf("%d bytes unflushed on an idle log", u)
	}
}

func TestRefusalsLeaveTheLogAsItWas(t *testing.T) {
	fsys := powercut.New()
	l, _ := open(t, fsys)
	if _, err := l.AppendBatch(t.Context(), batch("a")); !errors.Is(err, wal.ErrNoSegment) {
		t.Fatalf("append before the first segment: %v", err)
	}
	begin(t, l)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	cases := map[string]struct {
		ctx  context.Context
		b    *segment.Batch
		want error
	}{
		"too large":    {t.Context(), batch(strings.Repeat("x", segment.MaxFrameBytes)), segment.ErrTooLarge},
		"no rows":      {t.Context(), batch(), segment.ErrInvalid},
		"no stream":    {t.Context(), &segment.Batch{Rows: batch("a").Rows}, segment.ErrName},
		"bad producer": {t.Context(), &segment.Batch{Stream: "s", Producer: "\xff", Rows: batch("a").Rows}, segment.ErrName},
		"cancelled":    {cancelled, batch("a"), context.Canceled},
	}
	for name, c := range cases {
		before := l.State()
		if _, err := l.AppendBatch(c.ctx, c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if after := l.State(); after.Next != before.Next || after.Segment != before.Segment {
			t.Errorf("%s: the log moved from %+v to %+v", name, before, after)
		}
	}
	if _, err := l.AppendConsumer(t.Context(), segment.KindBatch, segment.Consumer{Name: "c"}); !errors.Is(err, segment.ErrInvalid) {
		t.Errorf("a batch as a consumer frame: %v", err)
	}
	mustPut(t, l, "a")
	mustClose(t, l)
	if _, err := put(l, "b"); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	if err := l.Close(); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
	l, r := open(t, fsys)
	defer mustClose(t, l)
	wantRows(t, r, "a")
}

func TestBatchWindowWaitsAndFlushDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(powercut.New())
		cfg.BatchWindow = 100 * time.Millisecond
		l, err := wal.Open(t.Context(), shardDir, cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		begin(t, l)
		start := time.Now()
		mustPut(t, l, "a")
		if took := time.Since(start); took != cfg.BatchWindow {
			t.Errorf("acknowledged after %v, want exactly the window", took)
		}
		start = time.Now()
		ticket, err := l.AppendBatch(t.Context(), batch("b"))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Sync(t.Context()); err != nil || ticket.Err() != nil {
			t.Fatal(err, ticket.Err())
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("a flush took %v", took)
		}
		mustClose(t, l)
	})
}

func TestSyncCoversEverythingAppended(t *testing.T) {
	l := fresh(t, powercut.New())
	defer mustClose(t, l)
	for i := range 100 {
		ticket, err := l.AppendBatch(t.Context(), batch("a"))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ticket.Done():
		default:
			t.Fatalf("append %d is not durable after Sync", i)
		}
	}
}
