package localtier

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/segment"
)

// longName is unique and as long as names may be.
func longName(kind string, i int) string {
	return fmt.Sprintf("%s-%0*d", kind, segment.MaxConsumerName-len(kind)-1, i)
}

// fillCarried makes as many consumers and producers as a chain may have.
func fillCarried(t testing.TB, wr *Writer) {
	t.Helper()
	var wg sync.WaitGroup
	const clients = 50
	for c := range clients {
		wg.Go(func() {
			for i := c; i < segment.MaxConsumers; i += clients {
				if _, err := wr.CreateConsumer(t.Context(), 0, longName("c", i), 0); err != nil {
					t.Error(err)
					return
				}
				if _, err := appendAs(t.Context(), wr, longName("p", i), 1, "s", "row", AckLocal); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// TestFullCarried: the most that a segment repeats fits its frame, index.json, the
// slot's footer and the chain's head; one more consumer is refused, and it all survives.
func TestFullCarried(t *testing.T) {
	w := newWorld(t, 1)
	disk := powercut.New()
	with := func(o *Options) { o.Config.WAL.FS = disk }
	a := w.open("a", with)
	fillCarried(t, a)
	if _, err := a.CreateConsumer(t.Context(), 0, "one more", 0); !errors.Is(err, ErrTooManyConsumers) {
		t.Errorf("one more: %v", err)
	}
	mustSeal(t, a.shards[0])
	mustAck(t, a, longName("c", 7), 7) // begins a segment
	start := segment.Start{Chain: a.shards[0].chain, ID: 1, Base: 1, Prev: uuid.New()}
	a.shards[0].fillStart(&start)
	frame, err := segment.AppendStart(nil, &start)
	if err != nil || len(frame) > segment.MaxFrameBytes/2 {
		t.Errorf("a SegmentStart of %d bytes, %v", len(frame), err)
	}
	checkCarried(t, a.shards[0])
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	abandon(t, a)
	check := func(wr *Writer) {
		t.Helper()
		cs, err := wr.Consumers(t.Context(), 0)
		if err != nil || len(cs) != segment.MaxConsumers || cs[7].Cursor != 7 {
			t.Errorf("%d consumers, %v", len(cs), err)
		}
		if _, ps := wr.shards[0].carried.lists(); len(ps) != segment.MaxProducers {
			t.Errorf("%d producers", len(ps))
		}
	}
	disk = disk.Cut(1)
	a = w.open("a", with)
	check(a)
	abandon(t, a)
	b := w.open("b", steal)
	check(b)
	w.mustClose(b)
	w.fsck()
}

// BenchmarkAck is an acknowledgement by one of few and of many consumers, with company.
func BenchmarkAck(b *testing.B) {
	for _, many := range []bool{false, true} {
		b.Run(fmt.Sprintf("full=%v", many), func(b *testing.B) {
			wr := benchWriter(b)
			if many {
				fillCarried(b, wr)
			}
			rows := make([]segment.Row, 1<<16)
			if _, err := wr.Append(b.Context(), "s", rows, AckLocal); err != nil {
				b.Fatal(err)
			}
			if !many {
				for i := range 64 {
					if _, err := wr.CreateConsumer(b.Context(), 0, longName("c", i), 0); err != nil {
						b.Fatal(err)
					}
				}
			}
			var client sync.Mutex
			n := 0
			b.SetParallelism(32)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				client.Lock()
				name := longName("c", n)
				n++
				client.Unlock()
				for seq := segment.Seq(1); pb.Next(); seq++ {
					if _, err := wr.Ack(b.Context(), 0, name, min(seq, 1<<16)); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.StopTimer()
			if err := wr.Close(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
}

// BenchmarkFillStart is what a rotation asks of a shard whose consumers and producers are
// as many as may be, with some of their frames on their way to the disk.
func BenchmarkFillStart(b *testing.B) {
	var c carried
	consumers := make([]segment.Consumer, segment.MaxConsumers)
	producers := make([]segment.Producer, segment.MaxProducers)
	for i := range consumers {
		consumers[i].Name = longName("c", i)
		producers[i] = segment.Producer{ID: longName("p", i), Sequence: 1, First: 1, Last: 1}
	}
	c.restart(consumers, producers)
	for _, pending := range []int{0, 256} {
		b.Run(fmt.Sprintf("pending=%d", pending), func(b *testing.B) {
			c.pending = nil
			for i := range pending {
				ch := &carriedChange{kind: segment.KindBatch, producer: producers[i]}
				c.pending, c.producerOf[producers[i].ID] = append(c.pending, ch), ch
			}
			b.ReportAllocs()
			for b.Loop() {
				c.lists()
			}
		})
	}
}
