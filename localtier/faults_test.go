package localtier

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/segment"
)

// big is larger than a part of the tests' stores, so its slot is a multipart upload.
func big() string { return fmt.Sprintf("%0*d", 100, 7) + string(noise(150<<10)) }

func noise(n int) []byte {
	b := make([]byte, n)
	x := uint64(88172645463325252)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}

// TestSweepBucket: the i-th call to the bucket fails, for every i, in every form,
// once or again and again until healed.
func TestSweepBucket(t *testing.T) {
	forms := []faultstore.Form{faultstore.FormNotApplied, faultstore.FormAnswerLost}
	for _, sticky := range []bool{false, true} {
		t.Run(fmt.Sprintf("sticky=%v", sticky), func(t *testing.T) {
			faultstore.Sweep(t, faultstore.SweepOptions{Forms: forms, Sticky: sticky}, func(t *testing.T, f *faultstore.Injector) {
				w := newWorldOn(t, 1, f.Wrap)
				publishUnder(t, w, f.Hit, f.Heal, nil)
			})
		})
	}
}

// TestSweepBucketCrash: the process loses the bucket for good at the i-th call, and a
// new process goes on.
func TestSweepBucketCrash(t *testing.T) {
	forms := []faultstore.Form{faultstore.FormCrash, faultstore.FormCrashAfter}
	faultstore.Sweep(t, faultstore.SweepOptions{Forms: forms}, func(t *testing.T, f *faultstore.Injector) {
		w := newWorldOn(t, 1, f.Wrap)
		publishUnder(t, w, f.Hit, f.Heal, nil)
	})
}

// TestSweepTakeover: an empty directory takes the chain of an owner that left a slot
// standing unabsorbed, while a call to the bucket fails.
func TestSweepTakeover(t *testing.T) {
	forms := []faultstore.Form{faultstore.FormNotApplied, faultstore.FormAnswerLost, faultstore.FormCrash, faultstore.FormCrashAfter}
	for _, sticky := range []bool{false, true} {
		t.Run(fmt.Sprintf("sticky=%v", sticky), func(t *testing.T) {
			faultstore.Sweep(t, faultstore.SweepOptions{Forms: forms, Sticky: sticky}, func(t *testing.T, f *faultstore.Injector) {
				w := newWorld(t, 1)
				cut, at := cutOnce(StepPlaced, 2)
				a := w.open("a", func(o *Options) { o.Cut = cut })
				w.mustAppend(a, "x", AckShared, "one")
				w.mustAppend(a, "x", AckLocal, "two")
				mustSeal(t, a.shards[0])
				<-at // position 2 stands and is not absorbed
				abandon(t, a)
				w.set = objstore.Set{newStore(t, f.Wrap(w.mem))}
				b, err := w.tryOpen("b", steal)
				if err != nil {
					if !f.Hit() {
						t.Fatal(err)
					}
					f.Heal()
					b = w.open("b", steal)
				}
				f.Heal()
				w.mustAppend(b, "x", AckShared, "three")
				w.mustClose(b)
				w.checkStored()
			})
		})
	}
}

// TestSweepCatalog: the same for the catalog's verbs.
func TestSweepCatalog(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for i := 1; ; i++ {
			hit := false
			ok := t.Run(fmt.Sprintf("applied=%v/%d", applied, i), func(t *testing.T) {
				w := newWorld(t, 1)
				c := &faultyCatalog{Catalog: w.cat, at: i, applied: applied}
				publishUnder(t, w, c.hit, func() {}, c)
				hit = c.hit()
			})
			if !ok {
				t.Fatalf("call %d", i)
			}
			if !hit {
				if i == 1 {
					t.Fatal("no call was a candidate")
				}
				t.Logf("applied=%v: each of %d calls failed once", applied, i-1)
				break
			}
		}
	}
}

// publishUnder writes and publishes with a fault somewhere, then heals, starts again
// on the same directory, and looks for every acknowledged row.
func publishUnder(t *testing.T, w *world, hit func() bool, heal func(), c Catalog) {
	t.Helper()
	with := func(o *Options) {
		if c != nil {
			o.Catalog = c
		}
	}
	wr, err := w.tryOpen("a", with)
	if err != nil {
		if !hit() {
			t.Fatalf("nothing failed, yet: %v", err)
		}
		heal()
		wr = w.open("a", with)
	}
	if err := w.append(wr, "x", AckLocal, "x1", "x2", big()); err != nil {
		t.Fatal(err)
	}
	s := wr.shards[0]
	mustSeal(t, s)
	eventually(t, s, "the first slot is absorbed, or the fault strikes", func() bool { return hit() || s.chainRow().AbsorbedEnd > 1 })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := wr.Append(ctx, "x", []segment.Row{{Payload: []byte("shared")}}, AckShared)
		done <- err
	}()
	eventually(t, s, "the second slot is absorbed, or the fault strikes", func() bool { return hit() || len(done) > 0 })
	// A fault that is met again and again keeps the append waiting: not for ever here.
	giveUp := time.AfterFunc(50*time.Millisecond, cancel)
	sharedErr := <-done
	giveUp.Stop()
	cancel()
	if sharedErr == nil {
		w.acked["x"] = append(w.acked["x"], "shared")
	} else if !hit() {
		t.Fatalf("nothing failed, yet: %v", sharedErr)
	}
	w.crash(wr, "a", "b")
	heal()
	again, err := w.tryOpen("b", with)
	if err != nil && hit() {
		again, err = w.tryOpen("b", with) // the fault struck in this open
	}
	if err != nil {
		t.Fatal(err)
	}
	w.mustAppend(again, "x", AckShared, "after")
	err = again.Close(t.Context())
	if err != nil && !hit() {
		t.Fatal(err)
	}
	w.checkStored("shared")
}

// faultyCatalog fails one call, before or after it was made.
type faultyCatalog struct {
	Catalog
	at      int
	applied bool

	mu   sync.Mutex
	n    int
	done bool
}

func (c *faultyCatalog) hit() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// fate says whether this call fails.
func (c *faultyCatalog) fate() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	if c.n != c.at {
		return false
	}
	c.done = true
	return true
}

func under[T any](c *faultyCatalog, call func() (T, error)) (T, error) {
	if !c.fate() {
		return call()
	}
	var none T
	if !c.applied {
		return none, fmt.Errorf("%w: injected", catalog.ErrUnavailable)
	}
	if _, err := call(); err != nil {
		return none, err
	}
	return none, fmt.Errorf("%w: injected", catalog.ErrAmbiguous)
}

func (c *faultyCatalog) AcquireChain(ctx context.Context, a catalog.Acquire) (catalog.ChainRow, error) {
	return under(c, func() (catalog.ChainRow, error) { return c.Catalog.AcquireChain(ctx, a) })
}

func (c *faultyCatalog) Chain(ctx context.Context, ch segment.Chain) (catalog.ChainRow, error) {
	return under(c, func() (catalog.ChainRow, error) { return c.Catalog.Chain(ctx, ch) })
}

func (c *faultyCatalog) AbsorbSlot(ctx context.Context, a catalog.Absorb) (catalog.Absorbed, error) {
	return under(c, func() (catalog.Absorbed, error) { return c.Catalog.AbsorbSlot(ctx, a) })
}

func (c *faultyCatalog) ReleaseChain(ctx context.Context, ch segment.Chain, owner segment.UUID, term segment.Term) error {
	_, err := under(c, func() (struct{}, error) { return struct{}{}, c.Catalog.ReleaseChain(ctx, ch, owner, term) })
	return err
}

// TestK13 an ambiguous PUT is read back: its slot stands, and is neither sent again
// nor taken for another's.
func TestK13(t *testing.T) {
	puts, heads := 0, 0
	w := newWorldOn(t, 1, func(d objstore.Driver) objstore.Driver {
		return faultstore.Wrap(d, func(c faultstore.Call) faultstore.Fault {
			// The PUT's answer is lost, and so are those of the Store's own looks after it:
			// the publisher gets "outcome unknown".
			switch {
			case c.Op == objstore.OpPut:
				puts++
			case c.Op == objstore.OpHead && heads < 3:
				heads++
			default:
				return faultstore.Fault{}
			}
			return faultstore.Fault{Kind: faultstore.AnswerLost}
		})
	})
	wr := w.open("a")
	w.mustAppend(wr, "s", AckShared, "one")
	w.mustClose(wr)
	w.checkStored()
	if puts != 1 || heads != 3 {
		t.Errorf("%d PUTs and %d lost looks for one slot", puts, heads)
	}
}

// TestK31 an own earlier attempt answers 412: mine, by UUID, digest and length.
func TestK31(t *testing.T) {
	w := newWorld(t, 1)
	cut, at := cutOnce(StepPlaced, 1)
	wr := w.open("a", func(o *Options) { o.Cut = cut })
	w.mustAppend(wr, "s", AckLocal, names("s", 4)...)
	mustSeal(t, wr.shards[0])
	<-at
	abandon(t, wr)
	if n := len(w.mem.Keys()); n != 1 {
		t.Fatalf("%d objects, one slot was placed", n)
	}
	before := w.set.First().Counters()
	again := w.open("a")
	w.mustClose(again)
	w.checkStored()
	if got := w.set.First().Counters().Sub(before); got.Errors[objstore.OpPut] == 0 {
		t.Error("no 412 was met")
	}
}

// TestK41 after a failed fsync nothing is acknowledged any more, and the shard says so.
func TestK41(t *testing.T) {
	w := newWorld(t, 1)
	disk := &sickFS{FS: osFS()}
	wr := w.open("a", func(o *Options) { o.Config.WAL.FS = disk })
	w.mustAppend(wr, "s", AckLocal, "one")
	disk.fail(true)
	if err := w.append(wr, "s", AckLocal, "two"); err == nil {
		t.Fatal("acknowledged without an fsync")
	}
	disk.fail(false) // the next fsync would "succeed"
	for range 3 {
		if err := w.append(wr, "s", AckLocal, "three"); err == nil {
			t.Fatal("acknowledged after a failed fsync")
		}
	}
	if err := wr.Ready(); err == nil {
		t.Error("ready")
	}
	if st := wr.Status()[0]; st.State != StateHalted {
		t.Errorf("%+v", st)
	}
	if err := wr.Close(t.Context()); err == nil {
		t.Error("closed as if all were well")
	}
	again := w.open("a")
	w.mustAppend(again, "s", AckShared, "four")
	w.mustClose(again)
	w.checkStored("two")
}

// TestFullDiskAtWrite: a write that finds the disk full is taken back; its rows were
// not acknowledged, and once there is room appends go on without a restart, no seq lost.
func TestFullDiskAtWrite(t *testing.T) {
	w := newWorld(t, 1)
	disk := &sickFS{FS: osFS()}
	clock := &handClock{t: time.Now()}
	a := w.open("a", func(o *Options) { o.Config.WAL.FS = disk; o.Now = clock.now })
	w.mustAppend(a, "s", AckLocal, "one")
	disk.full.Store(true)
	if err := w.append(a, "s", AckLocal, "two"); !errors.Is(err, ErrBackpressure) {
		t.Fatalf("%v", err)
	}
	if err := w.append(a, "s", AckLocal, "three"); !errors.Is(err, ErrBackpressure) {
		t.Fatalf("right after: %v", err)
	}
	disk.full.Store(false)
	clock.advance(2 * stallPause)
	w.mustAppend(a, "s", AckLocal, "four")
	if got, err := readLocal(t, a, "s", 1, 0); err != nil || fmt.Sprint(got) != "[one four]" {
		t.Errorf("%q, %v", got, err)
	}
	w.mustClose(a)
	w.checkStored()
}

// TestSharedWaiterLearnsOfPoison: its rows are durable, but their segment can never be
// sealed by this process. It is told, and the next start publishes them.
func TestSharedWaiterLearnsOfPoison(t *testing.T) {
	w := newWorld(t, 1)
	disk := &sickFS{FS: osFS()}
	a := w.open("a", func(o *Options) {
		o.Config.WAL.FS = disk
		o.Config.SharedWindow = 200 * time.Millisecond
	})
	s := a.shards[0]
	got := make(chan error, 1)
	go func() { got <- w.append(a, "s", AckShared, "one") }()
	eventually(t, s, "the row is durable", func() bool { return s.wal.State().DurableNext == 2 })
	disk.fail(true)
	if err := <-got; !errors.Is(err, wal.ErrPoisoned) || !strings.Contains(err.Error(), "durable") {
		t.Errorf("%v", err)
	}
	disk.fail(false)
	abandon(t, a)
	w.mustClose(w.open("a"))
	if rows := w.stored("s"); fmt.Sprint(rows) != "[one]" {
		t.Errorf("%q", rows)
	}
}
