package segment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// applySlice is the rule in five lines.
func applySlice(ps []Producer, p Producer) []Producer {
	ps = slices.DeleteFunc(ps, func(q Producer) bool { return q.ID == p.ID })
	ps = append(ps, p)
	return ps[max(0, len(ps)-MaxProducers):]
}

func TestApplyProducerFollowsTheRule(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var want []Producer
	got := &Producers{}
	for i := range 4000 {
		p := Producer{ID: fmt.Sprint(rng.IntN(50)), Sequence: rng.Uint64(), First: Seq(i + 1), Last: Seq(i + 2)}
		want = applySlice(want, p)
		ApplyProducer(got, p)
		if last, ok := got.Get(p.ID); !ok || last != p {
			t.Fatalf("append %d: the last of %q is %+v, %v", i, p.ID, last, ok)
		}
	}
	if !slices.Equal(got.List(), want) || got.Len() != len(want) {
		t.Fatalf("producers are\n%+v\nwant\n%+v", got.List(), want)
	}
	if again := NewProducers(got.List()); !slices.Equal(again.List(), want) {
		t.Fatal("a list does not give the same producers again")
	}
}

func TestLeastRecentlyUsedProducerIsForgotten(t *testing.T) {
	s := &Producers{}
	if s.List() != nil {
		t.Fatal("no producers are a list")
	}
	for i := range MaxProducers {
		ApplyProducer(s, Producer{ID: fmt.Sprint(i), First: 1, Last: 1})
	}
	ApplyProducer(s, Producer{ID: "0", First: 2, Last: 2}) // used again: now "1" is the oldest
	ApplyProducer(s, Producer{ID: "new", First: 3, Last: 3})
	for id, there := range map[string]bool{"0": true, "1": false, "2": true, "new": true} {
		if _, ok := s.Get(id); ok != there {
			t.Errorf("producer %s is remembered: %v", id, ok)
		}
	}
	if s.Len() != MaxProducers || checkProducers(s.List()) != nil {
		t.Errorf("%d producers", s.Len())
	}
}

func TestBatchProducer(t *testing.T) {
	rows := []Row{{Payload: []byte("a")}, {Payload: []byte("b")}}
	plain, err := AppendBatch(nil, &Batch{Stream: "s", First: 7, Rows: rows})
	if err != nil {
		t.Fatal(err)
	}
	if p, ok, err := BatchProducer(plain); ok || err != nil {
		t.Fatalf("a plain batch has producer %+v, %v", p, err)
	}
	with, err := AppendBatch(nil, &Batch{Stream: "s", First: 7, Producer: "p", Sequence: 9, Rows: rows})
	if err != nil {
		t.Fatal(err)
	}
	p, ok, err := BatchProducer(with)
	if want := (Producer{ID: "p", Sequence: 9, First: 7, Last: 8}); err != nil || !ok || p != want {
		t.Fatalf("producer is %+v, %v, %v", p, ok, err)
	}
	for n := range 8 {
		if _, ok, err := BatchProducer(with[:n]); ok || err == nil {
			t.Fatalf("%d bytes are a batch", n)
		}
	}
}
