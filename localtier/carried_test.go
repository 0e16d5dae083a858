package localtier

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// checkStarts holds every local SegmentStart against all frames before it: consumers
// and producers must be exactly as of there. It returns the state at the end.
func checkStarts(t *testing.T, log *wal.Log) (consumers []segment.Consumer, producers []segment.Producer) {
	t.Helper()
	var ids []segment.ID
	for _, seg := range log.Sealed() {
		ids = append(ids, seg.ID)
	}
	if st := log.State(); st.Open {
		ids = append(ids, st.Segment)
	}
	var cursors map[string]segment.Seq
	known := segment.NewProducers(nil)
	var last segment.ID
	for _, id := range ids {
		for _, f := range framesOf(t, log, id) {
			switch f.Kind {
			case segment.KindStart:
				start, err := segment.DecodeStart(f.Payload)
				if err != nil {
					t.Fatal(err)
				}
				if last != 0 && id == last+1 {
					if got, want := fmt.Sprint(start.Consumers), fmt.Sprint(segment.ListConsumers(cursors)); got != want {
						t.Errorf("segment %d begins with consumers %s, the frames before it say %s", id, got, want)
					}
					if got, want := fmt.Sprint(start.Producers), fmt.Sprint(known.List()); got != want {
						t.Errorf("segment %d begins with producers %s, the frames before it say %s", id, got, want)
					}
				}
				cursors = make(map[string]segment.Seq)
				for _, c := range start.Consumers {
					cursors[c.Name] = c.Cursor
				}
				known = segment.NewProducers(start.Producers)
			case segment.KindBatch:
				if p, ok, err := segment.BatchProducer(f.Payload); err != nil {
					t.Fatal(err)
				} else if ok {
					segment.ApplyProducer(known, p)
				}
			case segment.KindConsumerCreate, segment.KindAck, segment.KindConsumerRemove:
				c, err := segment.DecodeConsumer(f.Payload)
				if err != nil {
					t.Fatal(err)
				}
				segment.ApplyConsumer(cursors, f.Kind, c)
			}
		}
		last = id
	}
	return segment.ListConsumers(cursors), known.List()
}

func framesOf(t *testing.T, log *wal.Log, id segment.ID) (out []segment.Frame) {
	t.Helper()
	f, err := log.OpenSegment(id)
	if err != nil {
		t.Fatal(err)
	}
	sc, err := segment.NewScanner(f, f.Size())
	for err == nil {
		var frame segment.Frame
		if frame, err = sc.Next(); err == nil {
			frame.Payload = slices.Clone(frame.Payload)
			out = append(out, frame)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatalf("segment %d: %v", id, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// checkCarried holds what the shard knows against what its files say.
func checkCarried(t *testing.T, s *shardLog) {
	t.Helper()
	consumers, producers := checkStarts(t, s.wal)
	haveC, haveP := s.carried.lists()
	if fmt.Sprint(haveC) != fmt.Sprint(consumers) || fmt.Sprint(haveP) != fmt.Sprint(producers) {
		t.Errorf("the shard carries %s and %s, its frames say %s and %s", briefly(haveC), briefly(haveP), briefly(consumers), briefly(producers))
	}
	if got := s.carried.consumers(); fmt.Sprint(got) != fmt.Sprint(consumers) {
		t.Errorf("durable consumers %s, the frames say %s", briefly(got), briefly(consumers))
	}
}

// TestQueuedProducers: the short way gives what the rule gives.
func TestQueuedProducers(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	durable := make([]segment.Producer, segment.MaxProducers-10)
	for i := range durable {
		durable[i] = segment.Producer{ID: fmt.Sprint("p", i), Sequence: 1, First: 1, Last: 1}
	}
	var c carried
	c.restart(nil, durable)
	want := segment.NewProducers(durable)
	for i := range 200 {
		id := fmt.Sprint("p", rng.IntN(40)) // among the oldest, and again and again
		if rng.IntN(4) == 0 {
			id = fmt.Sprint("new", rng.IntN(60))
		}
		p := segment.Producer{ID: id, Sequence: uint64(i), First: segment.Seq(i + 1), Last: segment.Seq(i + 1)}
		ch := &carriedChange{kind: segment.KindBatch, producer: p}
		c.pending, c.producerOf[id] = append(c.pending, ch), ch
		segment.ApplyProducer(want, p)
	}
	if _, got := c.lists(); !slices.Equal(got, want.List()) {
		t.Errorf("%s, want %s", briefly(got), briefly(want.List()))
	}
}

// notDurableYet counts the changes that wait for the disk.
func notDurableYet(s *shardLog) int {
	s.carried.mu.Lock()
	defer s.carried.mu.Unlock()
	s.carried.settle()
	return len(s.carried.pending)
}

// briefly prints a list that may be long.
func briefly[T any](list []T) string {
	if len(list) > 8 {
		return fmt.Sprintf("%d: %v…", len(list), list[:8])
	}
	return fmt.Sprint(list)
}

// cursorsOf prints a shard's consumers as name:cursor.
func cursorsOf(t *testing.T, wr *Writer, shard segment.Shard) string {
	t.Helper()
	cs, err := wr.Consumers(t.Context(), shard)
	if err != nil {
		t.Fatal(err)
	}
	return cursorText(cs)
}

func cursorText(cs []ConsumerStatus) string {
	var out []string
	for _, c := range cs {
		out = append(out, fmt.Sprintf("%s:%d", c.Name, c.Cursor))
	}
	return strings.Join(out, " ")
}
