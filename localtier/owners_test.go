package localtier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/segment"
)

func steal(o *Options) { o.Steal = true }

// TestK20 two owners: the second is refused while the lease lives; with steal the
// first is fenced, and as a zombie it changes nothing.
func TestK20(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppend(a, "s", AckShared, "one")
	if _, err := w.tryOpen("b"); !errors.Is(err, ErrHeld) {
		t.Fatalf("second owner: %v", err)
	}
	fencedOwner := a.shards[0].owner
	b := w.open("c", steal)
	w.mustAppend(b, "s", AckShared, "two")

	// The zombie appends locally, as far as its lease goes, and publishes: fenced.
	res, err := a.Append(t.Context(), "s", []segment.Row{{Payload: []byte("zombie")}}, AckShared)
	if !errors.Is(err, ErrFenced) {
		t.Fatalf("zombie: %+v, %v", res, err)
	}
	var fenced *FencedError
	if !errors.As(err, &fenced) || fenced.Left != 1 || !strings.Contains(fenced.Error(), fenced.Dir) {
		t.Errorf("%v", err)
	}
	if err := w.append(a, "s", AckLocal, "zombie"); !errors.Is(err, ErrFenced) {
		t.Errorf("append after the fence: %v", err)
	}
	for _, err := range a.Read(t.Context(), "s", 1, 0) {
		if !errors.Is(err, ErrFenced) {
			t.Errorf("read after the fence: %v", err)
		}
	}
	if st := a.Status()[0]; st.State != StateFenced || st.UnpublishedSegments == 0 {
		t.Errorf("%+v", st)
	}
	w.mustAppend(b, "s", AckShared, "three")
	if err := a.Close(t.Context()); !errors.Is(err, ErrUnpublished) || strings.Contains(err.Error(), "on this directory again") {
		t.Errorf("close of the fenced one: %v", err)
	}
	w.mustClose(b)
	w.checkStored("zombie")
	if got := w.stored("s"); count(got, "zombie") != 0 {
		t.Errorf("the zombie's row is in the history: %q", got)
	}
	if row := w.chain(0); row.Term != 2 {
		t.Errorf("%+v", row)
	}
	// When it starts again its directory is set aside, and its row is there to be had.
	again := w.open("a")
	if row := w.chain(0); row.Term != 3 || row.Owner == fencedOwner {
		t.Errorf("%+v", row)
	}
	left := w.quarantined("a")
	if len(left) != 1 || !left[0].Judged || left[0].Rows != 1 || left[0].Writer != fencedOwner {
		t.Fatalf("in quarantine: %+v", left)
	}
	w.salvage(left[0], again)
	w.mustClose(again)
	w.checkStored()
	if got := w.stored("s"); fmt.Sprint(got) != "[one two three zombie]" {
		t.Errorf("history %q", got)
	}
}

// TestFencedMayBeSalvagedWhileHeld: a fenced writer that starts again while the new owner
// lives is refused, and takes nothing from it; its rows are set aside all the same, and go
// to that owner.
func TestFencedMayBeSalvagedWhileHeld(t *testing.T) {
	for _, step := range []Step{"", StepSetAside} {
		t.Run(string(step), func(t *testing.T) {
			w := newWorld(t, 1)
			a := w.open("a")
			w.mustAppend(a, "s", AckShared, "one")
			b := w.open("b", steal)
			w.mustAppend(a, "s", AckLocal, "two")
			w.acked["s"] = []string{"one"}
			if err := a.Close(t.Context()); !errors.Is(err, ErrUnpublished) {
				t.Fatalf("close of the fenced one: %v", err)
			}
			if step != "" {
				cut, _ := cutOnce(step, 1)
				if _, err := w.tryOpen("a", func(o *Options) { o.Cut = cut }); !errors.Is(err, errPower) {
					t.Fatal(err)
				}
			}
			for range 2 { // the second time there is nothing left to set aside
				if _, err := w.tryOpen("a"); !errors.Is(err, ErrHeld) {
					t.Fatalf("the new owner lives, and yet: %v", err)
				}
				if left := w.quarantined("a"); len(left) != 1 || !left[0].Judged || left[0].Rows != 1 {
					t.Fatalf("in quarantine: %+v", left)
				}
			}
			if n := w.salvage(w.quarantined("a")[0], b); n != 1 {
				t.Errorf("%d rows salvaged", n)
			}
			w.mustClose(b)
			w.checkStored()
			if row, got := w.chain(0), w.stored("s"); row.Term != 2 || fmt.Sprint(got) != "[one two]" {
				t.Errorf("term %d, history %q", row.Term, got)
			}
		})
	}
}

// TestK1 a stalled, fenced writer creates a key again that was removed: its publish
// fails loudly and nothing is acknowledged.
func TestK1(t *testing.T) {
	w := newWorld(t, 1)
	// Position 2 will be trimmed and created again; the referee is to let it happen.
	key := segment.SlotKey(segment.Chain{Epoch: 1}, 2)
	w.recreatable[key] = true
	resume, reached := make(chan struct{}), make(chan struct{})
	puts := 0
	a := w.open("a", func(o *Options) {
		o.Cut = func(s Step) error {
			if s == StepSent {
				if puts++; puts == 2 {
					close(reached) // stalled right before the PUT at position 2
					<-resume
				}
			}
			return nil
		}
	})
	w.mustAppend(a, "s", AckShared, "one")
	got := make(chan error, 1)
	go func() {
		_, err := a.Append(context.Background(), "s", []segment.Row{{Payload: []byte("zombie")}}, AckShared)
		got <- err
	}()
	<-reached
	b := w.open("b", steal)
	w.mustAppend(b, "s", AckShared, "two")
	// The collector removes position 2 (b's fence), as it may once it is trimmed.
	if _, err := w.set.First().Delete(t.Context(), []string{key}); err != nil {
		t.Fatal(err)
	}
	close(resume)
	if err := <-got; !errors.Is(err, ErrFenced) {
		t.Errorf("acknowledged or unclear: %v", err)
	}
	if err := a.Close(t.Context()); !errors.Is(err, ErrUnpublished) {
		t.Errorf("close: %v", err)
	}
	w.mustClose(b)
	if _, err := w.set.First().Head(t.Context(), key); err != nil {
		t.Errorf("the zombie's PUT did not succeed, so nothing was proven: %v", err)
	}
	if rows := w.stored("s"); fmt.Sprint(rows) != "[one two]" {
		t.Errorf("history %q", rows)
	}
}

// TestK22 a local segment is dropped only below the contiguous absorbed prefix.
func TestK22(t *testing.T) {
	w := newWorld(t, 1)
	cut, at := cutOnce(StepPlaced, 3) // two segments are absorbed, the third only stands
	wr := w.open("a", func(o *Options) { o.Cut = cut })
	s := wr.shards[0]
	for i := range 5 {
		w.mustAppend(wr, "s", AckLocal, fmt.Sprint(i))
		mustSeal(t, s)
	}
	<-at
	s.housekeep(t.Context())
	files, err := filepath.Glob(filepath.Join(s.dir, "*.seg"))
	if err != nil || len(files) != 3 {
		t.Errorf("local segments %v, %v: those of 3, 4 and 5 must stay", files, err)
	}
	abandon(t, wr)
	again := w.open("a")
	w.mustClose(again)
	w.checkStored()
}

// TestStrayIsVoided: a slot of an older term at the position that the present owner
// was to take is absorbed as void, and the next position taken.
func TestStrayIsVoided(t *testing.T) {
	for _, kind := range []string{"late slot", "garbage"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, 1)
			a := w.open("a")
			w.mustAppend(a, "s", AckShared, "one")
			w.mustAppend(a, "s", AckLocal, "stray")
			zombie := a.shards[0]
			abandon(t, a)
			b := w.open("b", steal)
			w.mustAppend(b, "s", AckShared, "two")
			// The old owner's PUT lands late, right where the new one goes on.
			at := w.chain(0).AbsorbedEnd
			if kind == "garbage" {
				w.put(segment.SlotKey(zombie.chain, at), []byte("no slot at all"), nil)
			} else {
				w.putStray(zombie, at)
			}
			w.mustAppend(b, "s", AckShared, "three")
			w.mustAppend(b, "s", AckShared, "four")
			w.mustClose(b)
			w.acked["s"] = []string{"one", "two", "three", "four"}
			w.checkStored()
			slots, err := w.cat.Slots(t.Context(), zombie.chain, at, 1)
			if err != nil || len(slots) != 1 || !slots[0].Void {
				t.Errorf("slot at %d: %+v, %v", at, slots, err)
			}
			w.mustClose(w.open("b"))
		})
	}
}

// putStray publishes what the zombie would have, at a position of its choice.
func (w *world) putStray(s *shardLog, at segment.ID) {
	w.t.Helper()
	file, err := fenceFile(segment.UUID{1}, &segment.Start{Chain: s.chain, ID: at, Base: 2, Term: 1, Prev: segment.UUID{2}})
	if err != nil {
		w.t.Fatal(err)
	}
	b, err := segment.PlanBundle(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		w.t.Fatal(err)
	}
	var body bytes.Buffer
	if _, err := b.WriteTo(&body, segment.BundleOptions{ID: at}); err != nil {
		w.t.Fatal(err)
	}
	w.put(segment.SlotKey(s.chain, at), body.Bytes(), b.Meta())
}

func (w *world) put(key string, body []byte, meta map[string]string) {
	w.t.Helper()
	if _, err := w.set.First().PutOnce(w.t.Context(), key, body, meta); err != nil {
		w.t.Fatal(err)
	}
}

// TestSlotOfTheSameTermFences: only a lower term is a stray.
func TestSlotOfTheSameTermFences(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppend(a, "s", AckShared, "one")
	w.putStray(a.shards[0], w.chain(0).AbsorbedEnd)
	if err := w.append(a, "s", AckShared, "two"); !errors.Is(err, ErrFenced) {
		t.Errorf("%v", err)
	}
	if err := a.Close(t.Context()); !errors.Is(err, ErrUnpublished) {
		t.Errorf("close: %v", err)
	}
}

// TestVanishedSlotFences: a 412 and then a 404 is a position that was trimmed.
func TestVanishedSlotFences(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	s := a.shards[0]
	p, err := s.fenceParcel(1, 1, segment.UUID{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.readBack(t.Context(), p, &objstore.Error{Op: "put", Key: p.key, Kind: objstore.ErrExists})
	if !errors.Is(err, errVanished) {
		t.Errorf("after a 412: %v", err)
	}
	_, err = s.readBack(t.Context(), p, &objstore.Error{Op: "put", Key: p.key, Kind: objstore.ErrAmbiguous})
	if errors.Is(err, errVanished) || !errors.Is(err, objstore.ErrAmbiguous) {
		t.Errorf("after an unknown outcome: %v", err)
	}
	w.mustClose(a)
}

// TestRolledBack: the chain's head in the bucket is ahead of the catalog.
func TestRolledBack(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppend(a, "s", AckShared, "one")
	w.mustClose(a)
	row := w.chain(0)
	head, err := segment.EncodeHead(&segment.Head{
		Epoch: 1, Term: row.Term, AbsorbedEnd: row.AbsorbedEnd + 1, NextSeq: row.NextSeq,
		LastUUID: row.LastUUID, Condemned: 1, Trimmed: 1, Nonce: "n",
	})
	if err != nil {
		t.Fatal(err)
	}
	w.put(segment.HeadKey(row.Chain), head, nil)
	_, err = w.tryOpen("a")
	if !errors.Is(err, ErrRolledBack) || !strings.Contains(err.Error(), "rebuild") {
		t.Errorf("%v", err)
	}
	if after := w.chain(0); after.Term != row.Term {
		t.Errorf("the refused start took term %d", after.Term)
	}
}

// TestK21: a head that cannot be read is not "no head", and one that does not decode
// is not an empty one. The start is refused before it takes anything.
func TestK21(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppend(a, "s", AckShared, "one")
	w.mustClose(a)
	row := w.chain(0)
	healthy := w.set
	for _, kind := range []error{objstore.ErrUnavailable, objstore.ErrDenied, objstore.ErrShort} {
		w.set = objstore.Set{newStore(t, faultstore.Wrap(w.mem, func(c faultstore.Call) faultstore.Fault {
			if c.Key == segment.HeadKey(row.Chain) {
				return faultstore.Fault{Kind: faultstore.NotApplied, Err: kind}
			}
			return faultstore.Fault{}
		}))}
		if _, err := w.tryOpen("a"); !errors.Is(err, kind) {
			t.Errorf("%v: %v", kind, err)
		}
	}
	w.set = healthy
	w.put(segment.HeadKey(row.Chain), []byte(`{"half a head`), nil)
	if _, err := w.tryOpen("a"); !segment.IsStructural(err) {
		t.Errorf("a head that does not decode: %v", err)
	}
	if after := w.chain(0); after.Term != row.Term || after.Owner != row.Owner {
		t.Errorf("a refused start took the chain: %+v", after)
	}
}

// TestLocalTermAheadOfCatalog: the same, seen by the directory itself.
func TestLocalTermAheadOfCatalog(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppend(a, "s", AckShared, "one")
	w.mustClose(a)
	a = w.open("a")
	w.mustAppend(a, "s", AckLocal, "two")
	w.mustClose(a)
	_, err := w.tryOpen("a", func(o *Options) { o.Catalog = backThen{o.Catalog} })
	if !errors.Is(err, ErrRolledBack) {
		t.Errorf("%v", err)
	}
}

type backThen struct{ Catalog }

func (c backThen) Chain(ctx context.Context, ch segment.Chain) (catalog.ChainRow, error) {
	row, err := c.Catalog.Chain(ctx, ch)
	row.Term = 1
	return row, err
}

// TestLostTerms: the bucket holds a slot of a higher term than the catalog knows.
// Whoever takes the chain acquires above it.
func TestLostTerms(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppend(a, "s", AckShared, "one")
	s := a.shards[0]
	abandon(t, a)
	row := w.chain(0)
	s.term = 5
	p, err := s.fenceParcel(row.AbsorbedEnd, row.NextSeq, row.LastUUID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.place(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	b := w.open("b", steal)
	if term := b.Status()[0].Term; term != 6 {
		t.Errorf("term %d, above 5 is right", term)
	}
	w.mustAppend(b, "s", AckShared, "two")
	w.mustClose(b)
	w.checkStored()
}

// TestSecondProcess: one process a directory.
func TestSecondProcess(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	if _, err := w.tryOpen("a"); !errors.Is(err, wal.ErrLocked) {
		t.Errorf("%v", err)
	}
	w.mustAppend(a, "s", AckShared, "one")
	w.mustClose(a)
}

// TestNoIdentity: somebody else's segments are refused.
func TestNoIdentity(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppend(a, "s", AckLocal, "one")
	w.mustClose(a)
	if err := os.Remove(filepath.Join(a.shards[0].dir, segment.IdentityFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.tryOpen("a"); !errors.Is(err, wal.ErrNoIdentity) {
		t.Errorf("%v", err)
	}
}

// TestLease: what the process believes of its lease, by both clocks.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lease{life: time.Minute, now: time.Now}
		if l.good() {
			t.Error("good before it was ever renewed")
		}
		l.extend(time.Now())
		time.Sleep(59 * time.Second)
		if !l.good() {
			t.Error("over too soon")
		}
		time.Sleep(time.Second)
		if l.good() {
			t.Error("good at its end")
		}
		l.extend(time.Now().Add(-30 * time.Second))
		l.extend(time.Now().Add(-50 * time.Second)) // an older answer arrives later
		if got := time.Until(l.end()); got != 30*time.Second {
			t.Errorf("ends in %v", got)
		}
	})
}

// TestLeaseLost: local acknowledgements stop with the lease, and go on with a renewal.
func TestLeaseLost(t *testing.T) {
	w := newWorld(t, 1)
	c := &awayCatalog{Catalog: w.cat}
	a := w.open("a", func(o *Options) { o.Catalog = c; o.Config.LeaseTime = time.Second })
	w.mustAppend(a, "s", AckLocal, "one")
	c.away.Store(true)
	s := a.shards[0]
	eventually(t, s, "the lease runs out", func() bool { return !s.lease.good() })
	if err := w.append(a, "s", AckLocal, "two"); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("append: %v", err)
	}
	if err := a.Ready(); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("ready: %v", err)
	}
	if st := a.Status()[0]; st.State != StateLeaseLost || st.LastError == "" {
		t.Errorf("%+v", st)
	}
	for _, err := range a.Read(t.Context(), "s", 1, 0) {
		if !errors.Is(err, ErrLeaseLost) {
			t.Errorf("read: %v", err)
		}
	}
	c.away.Store(false)
	eventually(t, s, "the lease is renewed", s.lease.good)
	w.mustAppend(a, "s", AckShared, "three")
	w.mustClose(a)
	w.checkStored()
}

// TestStalledPastLease: a process that stalls between fsync and answer does not
// acknowledge what another may own by then.
func TestStalledPastLease(t *testing.T) {
	w := newWorld(t, 1)
	clock := &handClock{t: time.Now()}
	disk := &sickFS{FS: osFS(), syncing: make(chan struct{}), goOn: make(chan struct{})}
	a := w.open("a", func(o *Options) { o.Now = clock.now; o.Config.WAL.FS = disk })
	w.mustAppend(a, "s", AckLocal, "one")
	disk.stall.Store(true)
	got := make(chan error, 1)
	go func() { got <- w.append(a, "s", AckLocal, "two") }()
	<-disk.syncing
	disk.stall.Store(false)
	clock.advance(2 * time.Hour)
	close(disk.goOn)
	if err := <-got; !errors.Is(err, ErrLeaseLost) {
		t.Errorf("%v", err)
	}
	w.mustClose(a)
	w.checkStored("two")
}

// TestOldCopyOfTheDirectory: the same writer by its IDENTITY, and yet it does not
// continue the chain. It is not resumed, and while the original may live nothing of it is
// touched. Then it is set aside, and the chain has all of it.
func TestOldCopyOfTheDirectory(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppend(a, "s", AckLocal, "one")
	w.crash(a, "a", "copy")
	a = w.open("a")
	w.mustAppend(a, "s", AckShared, "two")
	before := w.chain(0)
	if _, err := w.tryOpen("copy"); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "copy") {
		t.Errorf("%v", err)
	}
	if got := w.chain(0); got.Term != before.Term || len(w.quarantined("copy")) != 0 {
		t.Errorf("the refused start changed something: %+v", got)
	}
	w.mustClose(a)
	c := w.open("copy")
	if left := w.quarantined("copy"); len(left) != 0 {
		t.Errorf("the chain has all of the copy, and yet: %+v", left)
	}
	w.mustAppend(c, "s", AckShared, "three")
	w.mustClose(c)
	w.mustClose(w.open("a")) // which does not link any more
	w.checkStored()
}

// TestRefusedCopyTakesNoChain: a copy of a writer's directory that is refused one
// chain has not taken the others from their living owner.
func TestRefusedCopyTakesNoChain(t *testing.T) {
	w := newWorld(t, 2)
	a := w.open("a")
	for shard := range segment.Shard(2) {
		w.mustAppend(a, streamOf(t, shard, 2), AckLocal, "one")
	}
	w.crash(a, "a", "copy")
	a = w.open("a")
	w.mustAppend(a, streamOf(t, 1, 2), AckShared, "two") // only this chain moves on
	before := w.chain(0)
	if _, err := w.tryOpen("copy"); !errors.Is(err, ErrHeld) {
		t.Fatalf("%v", err)
	}
	if after := w.chain(0); after.Term != before.Term {
		t.Errorf("the refused copy took chain 0: term %d, then %d", before.Term, after.Term)
	}
	w.mustAppend(a, streamOf(t, 0, 2), AckShared, "three")
	w.mustClose(a)
	w.checkStored()
}

// TestAckAfterLease: by an operator's choice they go on.
func TestAckAfterLease(t *testing.T) {
	w := newWorld(t, 1)
	c := &awayCatalog{Catalog: w.cat}
	a := w.open("a", func(o *Options) {
		o.Catalog = c
		o.Config.LeaseTime, o.Config.AckAfterLease = time.Second, true
	})
	c.away.Store(true)
	s := a.shards[0]
	eventually(t, s, "the lease runs out", func() bool { return !s.lease.good() })
	w.mustAppend(a, "s", AckLocal, "two")
	c.away.Store(false)
	w.mustClose(a)
	w.checkStored()
}

// TestHigherTermStopsAbsorb is the auditor's view of lost terms.
func TestHigherTermStopsAbsorb(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppend(a, "s", AckShared, "one")
	s := a.shards[0]
	abandon(t, a)
	row := w.chain(0)
	s.term = 9
	p, err := s.fenceParcel(row.AbsorbedEnd, row.NextSeq, row.LastUUID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.place(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	_, err = absorb.All(t.Context(), w.cat, w.bucket(), row.Chain, absorb.Caller{})
	if !errors.Is(err, absorb.ErrHigherTerm) {
		t.Errorf("%v", err)
	}
	if after := w.chain(0); after.AbsorbedEnd != row.AbsorbedEnd {
		t.Errorf("absorbed_end moved to %d", after.AbsorbedEnd)
	}
}

// TestDamageIsRefusedAndRecorded: a flipped bit in a sealed segment that was not
// published yet. Nothing is cut, nothing is served, and the audit table says so.
func TestDamageIsRefusedAndRecorded(t *testing.T) {
	w := newWorld(t, 1)
	cut, at := cutOnce(StepBuilt, 1)
	a := w.open("a", func(o *Options) { o.Cut = cut })
	w.mustAppend(a, "s", AckLocal, "one", "two")
	mustSeal(t, a.shards[0])
	w.mustAppend(a, "s", AckLocal, "three")
	<-at
	path := filepath.Join(a.shards[0].dir, segment.FileName(1))
	abandon(t, a)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 4
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err = w.tryOpen("a")
	if err == nil {
		// Opening reads no older segment through; publishing does.
		err = a.Flush(t.Context())
		if cerr := a.Close(t.Context()); !errors.Is(cerr, ErrUnpublished) {
			t.Errorf("close: %v", cerr)
		}
	}
	var damage *segment.CorruptionError
	if !errors.As(err, &damage) || !strings.Contains(damage.File, segment.FileName(1)) {
		t.Errorf("%v", err)
	}
	rows, err := w.cat.AuditRows(t.Context(), 0, 100)
	if err != nil || !strings.Contains(fmt.Sprint(rows), "corruption") {
		t.Errorf("no record: %+v, %v", rows, err)
	}
	if got := w.stored("s"); len(got) != 0 {
		t.Errorf("published from damage: %q", got)
	}
}
