package localtier

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func (w *world) closeChain(shard segment.Shard, change ...func(*Options)) (catalog.ChainRow, error) {
	o := w.options("none")
	o.Dir = ""
	for _, c := range change {
		c(&o)
	}
	return CloseChain(w.t.Context(), o, shard)
}

// TestCloseChain: of an owner that lives, of one that let go, of nobody; again; and cut
// after each step.
func TestCloseChain(t *testing.T) {
	w := newWorld(t, 2)
	a := w.open("a", func(o *Options) { o.Shards = []segment.Shard{0} })
	s := streamOf(t, 0, 2)
	w.mustAppend(a, s, AckShared, "one")
	if _, err := w.closeChain(0); !errors.Is(err, ErrHeld) {
		t.Errorf("of a living owner: %v", err)
	}
	w.mustClose(a)
	for shard := range segment.Shard(2) {
		for range 2 {
			row, err := w.closeChain(shard)
			if err != nil || !row.Closed || !w.chain(shard).Closed {
				t.Errorf("shard %d: %+v, %v", shard, row, err)
			}
		}
		if _, err := w.tryOpen("b", func(o *Options) { o.Shards = []segment.Shard{shard}; o.Steal = true }); !errors.Is(err, ErrChainClosed) {
			t.Errorf("open a closed one: %v", err)
		}
	}
	w.checkStored()
}

func TestCutCloseChain(t *testing.T) {
	for _, step := range []Step{StepAcquired, StepSent, StepFencePlaced, StepFenced} {
		t.Run(string(step), func(t *testing.T) {
			w := newWorld(t, 1)
			a := w.open("a")
			w.mustAppend(a, "s", AckShared, "one")
			w.mustClose(a)
			cut, _ := cutOnce(step, 1)
			if _, err := w.closeChain(0, func(o *Options) { o.Cut = cut }); !errors.Is(err, errPower) {
				t.Fatalf("%v", err)
			}
			if row, err := w.closeChain(0, steal); err != nil || !row.Closed {
				t.Errorf("%+v, %v", row, err)
			}
			w.checkStored()
		})
	}
}

// TestClosedUnderItsOwner: the chain is closed by force. The owner is told; what it had
// acknowledged as local and not published goes to quarantine at its next start, and from there
// into the next epoch.
func TestClosedUnderItsOwner(t *testing.T) {
	w := newWorld(t, 1)
	cut, at := cutOnce(StepBuilt, 2)
	a := w.open("a", func(o *Options) { o.Cut = cut })
	w.mustAppend(a, "s", AckShared, "one")
	w.mustAppend(a, "s", AckLocal, "two")
	mustSeal(t, a.shards[0])
	<-at
	if row, err := w.closeChain(0, steal); err != nil || !row.Closed {
		t.Fatalf("%+v, %v", row, err)
	}
	abandon(t, a)
	if _, err := w.tryOpen("a"); !errors.Is(err, ErrChainClosed) {
		t.Fatalf("%v", err)
	}
	left := w.quarantined("a")
	if len(left) != 1 || !left[0].Judged || left[0].Rows != 1 {
		t.Fatalf("in quarantine: %+v", left)
	}
	w.nextEpoch(t)
	b := w.open("a")
	w.acked["s"] = []string{"one"}
	w.salvage(left[0], b)
	w.mustClose(b)
	w.checkStored()
}

// nextEpoch opens epoch 2, whose predecessor's chains are closed.
func (w *world) nextEpoch(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	var err error
	topo := catalog.Topology{Epoch: 2, Shards: 1, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: true, State: catalog.TopologyOpening}
	if _, err = w.cat.EnsureTopology(ctx, topo); err != nil {
		t.Fatal(err)
	}
	if w.topo, err = w.cat.SetTopologyState(ctx, 2, catalog.TopologyOpening, catalog.TopologyOpen); err != nil {
		t.Fatal(err)
	}
}

// TestEpochOver: a writer whose epoch is closing refuses rows, leaves nothing
// unpublished, lets go, and says that it is over. The next epoch's writer on the same
// directory clears up behind it.
func TestEpochOver(t *testing.T) {
	w := newWorld(t, 2)
	a := w.open("a", func(o *Options) { o.Config.TopologyEvery = 10 * time.Millisecond })
	streams := []string{streamOf(t, 0, 2), streamOf(t, 1, 2)}
	stop := make(chan error, len(streams))
	for _, s := range streams {
		go func() {
			for i := 0; ; i++ {
				if err := w.append(a, s, AckLocal, fmt.Sprintf("%s-%d", s, i)); err != nil {
					stop <- err
					return
				}
			}
		}()
	}
	if _, err := w.cat.SetTopologyState(t.Context(), 1, catalog.TopologyOpen, catalog.TopologyClosing); err != nil {
		t.Fatal(err)
	}
	<-a.Over()
	for range streams {
		err := <-stop
		var over *EpochError
		if !errors.As(err, &over) || over.State != catalog.TopologyClosing || !errors.Is(err, ErrBackpressure) {
			t.Errorf("%v", err)
		}
	}
	w.checkStored() // before the close: nothing was left unpublished
	w.mustClose(a)
	for shard := range segment.Shard(2) {
		if row, err := w.closeChain(shard); err != nil || !row.Closed { // no steal: the leases are released
			t.Errorf("%+v, %v", row, err)
		}
	}
	w.nextEpoch(t)
	b := w.open("a")
	eventually(t, b.shards[0], "the ended chains' directories are cleared up", func() bool {
		ended, err := filepath.Glob(filepath.Join(w.root, "a", "00000001.*"))
		return err == nil && len(ended) == 0 && len(w.quarantined("a")) == 0
	})
	w.mustAppend(b, "s", AckShared, "next")
	w.mustClose(b)
	w.checkStored()
}

// TestConsumersOfTheEpochBefore: a consumer stands in the next epoch without having been
// made there, also behind the loss of a disk that published nothing yet.
func TestConsumersOfTheEpochBefore(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	if _, err := a.CreateConsumer(t.Context(), 0, "late", 0); err != nil {
		t.Fatal(err)
	}
	w.mustAppend(a, "s", AckShared, "one")
	w.mustClose(a)
	if _, err := w.cat.SetTopologyState(t.Context(), 1, catalog.TopologyOpen, catalog.TopologyClosing); err != nil {
		t.Fatal(err)
	}
	if _, err := w.closeChain(0); err != nil {
		t.Fatal(err)
	}
	w.nextEpoch(t)
	stands := func(b *Writer) {
		t.Helper()
		got, err := b.Consumers(t.Context(), 0)
		if err != nil || len(got) != 1 || got[0].Name != "late" || got[0].Cursor != 0 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	stored := func() []segment.Consumer {
		t.Helper()
		row, err := w.cat.Chain(t.Context(), segment.Chain{Epoch: 2})
		if err != nil {
			t.Fatal(err)
		}
		return row.Consumers
	}
	b := w.open("b")
	stands(b)
	abandon(t, b)
	c := w.open("c", steal) // with an empty directory, and nothing of b absorbed
	stands(c)
	w.mustAppend(c, "s", AckShared, "two")
	if got := stored(); len(got) != 1 || got[0].Name != "late" {
		t.Errorf("%+v", got)
	}
	if err := c.RemoveConsumer(t.Context(), 0, "late"); err != nil {
		t.Error(err)
	}
	w.mustAppend(c, "s", AckShared, "three")
	if got := stored(); len(got) != 0 {
		t.Errorf("removed, and %+v", got)
	}
	w.mustClose(c)
}

// TestCutLeaveClosed: the directory of a closed chain is set aside and not judged. Nobody
// will own that chain again: the next epoch's writer judges it.
func TestCutLeaveClosed(t *testing.T) {
	w := newWorld(t, 1)
	w.unpublished("a", "local")
	if _, err := w.closeChain(0, steal); err != nil {
		t.Fatal(err)
	}
	cut, _ := cutOnce(StepSetAside, 1)
	if _, err := w.tryOpen("a", func(o *Options) { o.Cut = cut }); !errors.Is(err, errPower) {
		t.Fatalf("%v", err)
	}
	if left := w.quarantined("a"); len(left) != 1 || left[0].Judged {
		t.Fatalf("in quarantine: %+v", left)
	}
	w.nextEpoch(t)
	b := w.open("a")
	eventually(t, b.shards[0], "it is judged", func() bool {
		left := w.quarantined("a")
		return len(left) == 1 && left[0].Judged && left[0].Rows == 1
	})
	b.stopLoops() // it may still hold what it judged
	w.acked["s"] = nil
	w.salvage(w.quarantined("a")[0], b)
	w.mustClose(b)
	w.checkStored()
}

// TestCloseInTheMiddleOfHydration: what goes on beside serving ends first; nothing is left
// unpublished.
func TestCloseInTheMiddleOfHydration(t *testing.T) {
	w := newWorld(t, 1)
	w.chainOf(t, 3)
	reached, slow := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b := w.open("b", func(o *Options) {
		o.Cut = func(s Step) error {
			if s == StepFetched {
				once.Do(func() { close(reached) })
				<-slow
			}
			return nil
		}
	})
	<-reached
	w.mustAppend(b, "s", AckShared, "last") // while it is under way
	closed := make(chan error, 1)
	go func() { closed <- b.Close(context.Background()) }()
	close(slow)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	w.checkStored()
	if st := b.Status()[0]; st.State != StateClosed {
		t.Errorf("%+v", st)
	}
	if row := w.chain(0); row.LeaseEnd.After(time.Now()) {
		t.Errorf("the lease is not released: %+v", row)
	}
}
