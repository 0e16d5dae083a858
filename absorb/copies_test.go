package absorb

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// pair is a world whose set has a second bucket, which may be away.
type pair struct {
	*world
	second *memstore.Driver
	away   atomic.Bool
	lists  atomic.Bool // all but listings works
}

func newPair(t *testing.T, opts memstore.Options) *pair {
	t.Helper()
	p := &pair{world: newWorld(t, nil), second: memstore.New(opts)}
	p.b.Set = append(p.b.Set, newStore(t, faultstore.Wrap(p.second, func(c faultstore.Call) faultstore.Fault {
		if p.away.Load() || p.lists.Load() && c.Op == objstore.OpList {
			return faultstore.Fault{Kind: faultstore.NotApplied}
		}
		return faultstore.Fault{}
	})))
	return p
}

// copied says which of the slots from 1 on the second bucket has, byte-equal.
func (p *pair) copied() (ids []segment.ID) {
	p.t.Helper()
	first, second := p.mem.Dump(), p.second.Dump()
	for id := segment.ID(1); id < p.row().AbsorbedEnd; id++ {
		key := segment.SlotKey(p.chain, id)
		body, ok := second[key]
		if ok && !bytes.Equal(body, first[key]) {
			p.t.Errorf("the copy of slot %d differs", id)
		}
		if ok {
			ids = append(ids, id)
		}
	}
	return ids
}

func (p *pair) wantCopied(want ...segment.ID) {
	p.t.Helper()
	if got := p.copied(); !slices.Equal(got, want) {
		p.t.Errorf("copies of %v, want %v", got, want)
	}
}

// TestSecondBucketAwayHoldsNothingBack: the first bucket decided; what it holds is
// absorbed, and the owner makes the copies when the second is back.
func TestSecondBucketAwayHoldsNothingBack(t *testing.T) {
	p := newPair(t, memstore.Options{})
	p.b.Owed = NewOwed()
	p.away.Store(true)
	for range 3 {
		p.put(p.makeSlot(1, "a"))
	}
	if done, err := p.all(p.who); err != nil || done.Absorbed != 3 {
		t.Fatalf("%+v, %v", done, err)
	}
	p.wantCopied()
	if n := p.b.Owed.Len(); n != 3 {
		t.Fatalf("%d owed", n)
	}
	select {
	case <-p.b.Owed.More():
	default:
		t.Error("nobody was told that copies are owed")
	}
	if err := p.b.Owed.Pay(t.Context(), p.cat, p.b); !errors.Is(err, objstore.ErrUnavailable) || p.b.Owed.Len() != 3 {
		t.Errorf("%d owed, %v", p.b.Owed.Len(), err)
	}
	p.away.Store(false)
	// While it is behind, the absorb does not wait for it, and its turn comes.
	p.put(p.makeSlot(1, "a"))
	if _, err := p.all(p.who); err != nil {
		t.Fatal(err)
	}
	p.wantCopied()
	if err := p.b.Owed.Pay(t.Context(), p.cat, p.b); err != nil || p.b.Owed.Len() != 0 {
		t.Fatalf("%d owed, %v", p.b.Owed.Len(), err)
	}
	p.wantCopied(1, 2, 3, 4)
	p.put(p.makeSlot(1, "a"))
	if _, err := p.all(p.who); err != nil {
		t.Fatal(err)
	}
	p.wantCopied(1, 2, 3, 4, 5) // before its absorb again
}

// TestMendFindsWhatNobodyRemembers: the owner died with what it owed. The absorb-check
// copies under anybody's lease, from listings in any order, and only what is missing.
func TestMendFindsWhatNobodyRemembers(t *testing.T) {
	for name, opts := range map[string]memstore.Options{"ordered": {}, "K39": {Shuffle: 3, PageSize: 1, EmptyPages: true, DirectoryPrefix: true}} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, opts)
			p.put(p.makeSlot(1, "a"))
			if _, err := p.all(p.who); err != nil {
				t.Fatal(err)
			}
			p.away.Store(true)
			for range 3 {
				p.put(p.makeSlot(1, "a"))
				if _, err := p.all(p.who); err != nil {
					t.Fatal(err)
				}
			}
			p.away.Store(false)
			p.put(p.makeSlot(1, "a"))
			if _, err := p.all(p.who); err != nil {
				t.Fatal(err)
			}
			p.wantCopied(1, 5)
			k := Checker{Catalog: p.cat, Classes: objstore.Classes{"standard": p.b.Set}}
			p.lists.Store(true)
			if done, err := k.RunOnce(t.Context()); !errors.Is(err, objstore.ErrUnavailable) || done.Copied != 0 {
				t.Errorf("%+v, %v: what a failed listing lacks is not missing (K16)", done, err)
			}
			p.wantCopied(1, 5)
			p.lists.Store(false)
			if done, err := k.RunOnce(t.Context()); err != nil || done.Copied != 3 || done.Absorbed != 0 {
				t.Errorf("%+v, %v", done, err)
			}
			p.wantCopied(1, 2, 3, 4, 5)
			before := p.b.Set.First().Counters()
			if done, err := k.RunOnce(t.Context()); err != nil || done.Copied != 0 {
				t.Errorf("again: %+v, %v", done, err)
			}
			if n := p.b.Set.First().Counters().Sub(before).Requests; n[objstore.OpGet]+n[objstore.OpHead] != 0 {
				t.Errorf("nothing was missing, and the first bucket was asked: %v", n)
			}
		})
	}
}

// TestMendLeavesWhatGoes: a slot that is condemned, or gone from the first bucket, is not
// brought back anywhere.
func TestMendLeavesWhatGoes(t *testing.T) {
	p := newPair(t, memstore.Options{})
	p.away.Store(true)
	for range 3 {
		p.put(p.makeSlot(1, "a"))
	}
	if _, err := p.all(p.who); err != nil {
		t.Fatal(err)
	}
	p.away.Store(false)
	row := p.row()
	row.Condemned = 2
	if _, err := p.mem.Delete(t.Context(), []string{segment.SlotKey(p.chain, 2)}); err != nil {
		t.Fatal(err)
	}
	if made, err := Mend(t.Context(), p.cat, p.b, []catalog.ChainRow{row}); err != nil || made != 1 {
		t.Fatalf("%d copies made, %v", made, err)
	}
	p.wantCopied(3)
}

// TestMendReportsADifference, and goes on behind it.
func TestMendReportsADifference(t *testing.T) {
	p := newPair(t, memstore.Options{})
	p.away.Store(true)
	s := p.put(p.makeSlot(1, "a"))
	if _, err := p.all(p.who); err != nil {
		t.Fatal(err)
	}
	p.away.Store(false)
	p.at, p.next, p.prev = 1, 1, uuid.Nil
	other := p.makeSlot(1, "z")
	if _, err := p.b.Set[1].PutOnce(t.Context(), other.key, other.body, other.meta); err != nil {
		t.Fatal(err)
	}
	p.b.Owed = NewOwed()
	p.b.Owed.add(p.b.Set[1], s.key)
	if err := p.b.Owed.Pay(t.Context(), p.cat, p.b); err != nil || p.b.Owed.Len() != 0 {
		t.Fatalf("%d owed, %v", p.b.Owed.Len(), err)
	}
	rows, err := p.cat.AuditRows(t.Context(), 0, 100)
	if err != nil || !slices.ContainsFunc(rows, func(r catalog.AuditRow) bool { return r.Kind == "damage" && r.Subject == s.key }) {
		t.Errorf("not reported: %+v, %v", rows, err)
	}
	if !bytes.Equal(p.second.Dump()[s.key], other.body) {
		t.Error("the copy was changed")
	}
}

// TestDamagedCopyHoldsUpNoOther: a copy that the second bucket says is damaged is
// reported and left alone; those behind it are made.
func TestDamagedCopyHoldsUpNoOther(t *testing.T) {
	for _, op := range []objstore.Op{objstore.OpHead, objstore.OpGet} {
		p := newPair(t, memstore.Options{})
		damaged := segment.SlotKey(p.chain, 1)
		p.b.Set[1] = newStore(t, faultstore.Wrap(p.second, func(c faultstore.Call) faultstore.Fault {
			if c.Op == op && c.Key == damaged {
				return faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrCorrupt}
			}
			return faultstore.Fault{}
		}))
		p.b.Owed = NewOwed()
		s := p.put(p.makeSlot(1, "a"))
		if _, err := p.b.Set[1].PutOnce(t.Context(), s.key, s.body, s.meta); err != nil {
			t.Fatal(err)
		}
		p.put(p.makeSlot(1, "a"))
		if _, err := p.all(p.who); err != nil || p.b.Owed.Len() != 0 {
			t.Fatalf("%s: %d owed, %v", op, p.b.Owed.Len(), err)
		}
		p.wantCopied(1, 2)
		rows, err := p.cat.AuditRows(t.Context(), 0, 100)
		if err != nil || !slices.ContainsFunc(rows, func(r catalog.AuditRow) bool { return r.Kind == "damage" && r.Subject == s.key }) {
			t.Errorf("%s: not reported: %+v, %v", op, rows, err)
		}
	}
}

// slow is a bucket that answers when its caller gives up.
type slow struct {
	objstore.Driver
	waited time.Duration
}

func (s *slow) Head(ctx context.Context, key string) (objstore.Info, error) {
	if end, ok := ctx.Deadline(); ok {
		s.waited = time.Until(end)
	}
	return objstore.Info{}, &objstore.Error{Op: "head", Key: key, Kind: objstore.ErrUnavailable, Err: context.DeadlineExceeded}
}

// TestCopyPatience: an absorb gives a bucket that hangs its bounded time, once.
func TestCopyPatience(t *testing.T) {
	w := newWorld(t, nil)
	hangs := &slow{Driver: memstore.New(memstore.Options{})}
	w.b.Set, w.b.Owed = append(w.b.Set, newStore(t, hangs)), NewOwed()
	w.put(w.makeSlot(1, "a"))
	if _, err := w.all(w.who); err != nil {
		t.Fatal(err)
	}
	if hangs.waited <= 0 || hangs.waited > copyPatience {
		t.Errorf("it would have waited %v", hangs.waited)
	}
	hangs.waited = 0
	w.put(w.makeSlot(1, "a"))
	if _, err := w.all(w.who); err != nil || hangs.waited != 0 || w.b.Owed.Len() != 2 {
		t.Errorf("waited again, %v; %d owed; %v", hangs.waited, w.b.Owed.Len(), err)
	}
}

// TestOwedIsBounded: what is beyond it is for Mend.
func TestOwedIsBounded(t *testing.T) {
	o, to := NewOwed(), new(objstore.Store)
	for range maxOwed + 10 {
		o.add(to, "k")
	}
	if o.Len() != maxOwed {
		t.Errorf("%d", o.Len())
	}
	var none *Owed
	none.add(to, "k")
	if none.Len() != 0 || none.behind(to) || none.More() != nil {
		t.Error("a nil Owed remembers")
	}
}
