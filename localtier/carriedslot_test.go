package localtier

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/segment"
)

// TestProducersOutliveTheDisk: another directory takes the chain: what was absorbed is
// remembered, over the slots of many takers that wrote nothing, and what never was is
// appended by its retry.
func TestProducersOutliveTheDisk(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	mustCreate(t, a, "c", 0)
	w.mustAppendAs(a, "p", 1, "p1", false)
	w.mustAppendAs(a, "q", 5, "q5", false)
	mustSeal(t, a.shards[0])
	last := w.mustAppendAs(a, "p", 2, "p2", false)
	mustAck(t, a, "c", 2)
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	cut, _ := cutOnce(StepBuilt, 1)
	abandon(t, a)
	a = w.open("a", func(o *Options) { o.Cut = cut })
	lost, err := appendAs(t.Context(), a, "p", 3, "s", "p3", AckLocal)
	if err != nil || lost.First != 4 {
		t.Fatalf("%+v, %v", lost, err)
	}
	abandon(t, a)

	for i := range 3 {
		b := w.open(fmt.Sprint("b", i), steal)
		if res := w.mustAppendAs(b, "p", 2, "p2", true); res.First != last.First || res.Last != last.Last {
			t.Errorf("taker %d: %+v, then %+v", i, last, res)
		}
		if res, err := appendAs(t.Context(), b, "p", 2, "s", "p2", AckShared); err != nil || res.First != last.First {
			t.Errorf("taker %d: shared: %+v, %v", i, res, err)
		}
		refusedSequence(t, b, "q", 4, 6)
		if got := cursorsOf(t, b, 0); got != "c:2" {
			t.Errorf("taker %d: %q", i, got)
		}
		abandon(t, b)
	}
	c := w.open("c", steal)
	refusedSequence(t, c, "p", 4, 3) // its producer learns that 3 is gone
	if res := w.mustAppendAs(c, "p", 3, "p3", false); res.First != lost.First {
		t.Errorf("%+v", res)
	}
	checkCarried(t, c.shards[0])
	w.mustClose(c)
	w.checkStored()
}

// TestFromSlot: a slot's frames come by stream, its producers in the order of the segment.
func TestFromSlot(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	rng := rand.New(rand.NewPCG(3, 3))
	next := make([]uint64, 40)
	for range 300 {
		i := rng.IntN(len(next))
		next[i]++
		if _, err := appendAs(t.Context(), a, fmt.Sprint("p", i), next[i], fmt.Sprint("s", rng.IntN(9)), "row", AckLocal); err != nil {
			t.Fatal(err)
		}
		if rng.IntN(80) == 0 {
			mustSeal(t, a.shards[0])
		}
	}
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, want := a.shards[0].carried.lists()
	w.mustClose(a)
	var c carried
	if err := c.fromSlot(t.Context(), w.bucket(), w.chain(0)); err != nil {
		t.Fatal(err)
	}
	if _, got := c.lists(); !slices.Equal(got, want) {
		t.Errorf("of the slot: %s, of the log: %s", briefly(got), briefly(want))
	}

	// A read that fails is no answer; a slot that is gone is one.
	down := false
	store := newStore(t, faultstore.Wrap(w.mem, func(faultstore.Call) faultstore.Fault {
		if down {
			return faultstore.Fault{Kind: faultstore.NotApplied}
		}
		return faultstore.Fault{}
	}))
	down = true
	c = carried{}
	if err := c.fromSlot(t.Context(), absorb.Bucket{Set: objstore.Set{store}, Class: segment.ClassStandard}, w.chain(0)); err == nil {
		t.Error("a bucket that is away has no producers")
	}
	row := w.chain(0)
	row.Trimmed = row.AbsorbedEnd
	if err := c.fromSlot(t.Context(), w.bucket(), row); err != nil {
		t.Fatal(err)
	}
	if _, got := c.lists(); len(got) != 0 {
		t.Errorf("of a slot that was trimmed: %s", briefly(got))
	}
}

// TestFromDamagedSlot: a chain can always be taken; its producers are forgotten, and the
// caller is told why.
func TestFromDamagedSlot(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	mustCreate(t, a, "c", 0)
	w.mustAppendAs(a, "p", 1, "p1", false)
	w.mustClose(a)
	row := w.chain(0)
	damaged := newStore(t, faultstore.Wrap(w.mem, func(faultstore.Call) faultstore.Fault {
		return faultstore.Fault{Kind: faultstore.WrongBytes}
	}))
	var c carried
	err := c.fromSlot(t.Context(), absorb.Bucket{Set: objstore.Set{damaged}, Class: segment.ClassStandard}, row)
	if !segment.IsStructural(err) {
		t.Errorf("%v", err)
	}
	consumers, producers := c.lists()
	if fmt.Sprint(consumers) != "[{c 0}]" || len(producers) != 0 {
		t.Errorf("%v, %v", consumers, producers)
	}
	if errors.Is(err, objstore.ErrNotFound) {
		t.Error("damage is not absence")
	}
}

// TestSlotProducersAreBounded: a slot may have any number of producers; those used last
// are kept, whatever order its frames come in.
func TestSlotProducersAreBounded(t *testing.T) {
	const n = 5 * segment.MaxProducers
	p := slotProducers{last: make(map[string]producerAt)}
	p.start = []segment.Producer{{ID: "before", First: 1, Last: 1}}
	for i := range uint32(n) {
		ordinal := i*7919%n + 1 // a permutation: 7919 is prime
		id := fmt.Sprint("p", ordinal/2)
		p.add(producerAt{segment.Producer{ID: id, Sequence: uint64(ordinal), First: 1, Last: 1}, ordinal})
		if len(p.last) > 4*segment.MaxProducers {
			t.Fatalf("%d are held", len(p.last))
		}
	}
	got := p.merged()
	if len(got) != segment.MaxProducers {
		t.Fatalf("%d are remembered", len(got))
	}
	top := uint64(n)
	for i := range got {
		last := got[len(got)-1-i]
		want := top - uint64(i)*2
		if i > 0 {
			want = (top/2-uint64(i))*2 + 1
		}
		if last.Sequence != want {
			t.Fatalf("%d from the end: %+v, want sequence %d", i, last, want)
		}
	}
}
