package absorb

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// scene is four slots in a set of two buckets, the third a late one of an old owner,
// which is voided.
func scene(t *testing.T, wrap func(objstore.Driver) objstore.Driver) *world {
	t.Helper()
	w := newWorld(t, nil)
	w.put(w.makeSlot(1, "a", "b"))
	w.who = w.acquire(uuid.New())
	w.put(w.makeSlot(2, "a"))
	prev, next := w.prev, w.next
	w.put(w.makeSlot(1, "a"))
	w.prev, w.next = prev, next
	w.put(w.makeSlot(2, "a"))
	w.b.Set = objstore.Set{newStore(t, wrap(w.mem)), newStore(t, wrap(memstore.New(memstore.Options{})))}
	return w
}

// converges runs the absorb again, without faults, and wants what one undisturbed run
// gives: every slot once, the stray voided once, and by what the absorb-check mends a copy
// of each.
func (w *world) converges() {
	w.t.Helper()
	if _, err := w.all(w.who); err != nil {
		w.t.Fatalf("without faults: %v", err)
	}
	if _, err := Mend(w.t.Context(), w.cat, w.b, []catalog.ChainRow{w.row()}); err != nil {
		w.t.Fatalf("mend without faults: %v", err)
	}
	if a, b := w.plan("a"), w.plan("b"); a != "[1-2@1 5-6@2 7-8@4]" || b != "[3-4@1]" {
		w.t.Errorf("a: %s, b: %s", a, b)
	}
	if row := w.row(); row.AbsorbedEnd != 5 || row.NextSeq != 9 || row.LastUUID != w.prev {
		w.t.Errorf("%+v", row)
	}
	for id := segment.ID(1); id <= 4; id++ {
		for _, s := range w.b.Set {
			if _, err := s.Head(w.t.Context(), segment.SlotKey(w.chain, id)); err != nil && id != 3 {
				w.t.Errorf("slot %d in %s: %v", id, s.Name(), err)
			}
		}
	}
}

// TestSweepAbsorbStore: the i-th call to a bucket fails, or the process is cut after it.
// A cut before a call is that call not applied, which All does not go past either.
func TestSweepAbsorbStore(t *testing.T) {
	forms := []faultstore.Form{faultstore.FormNotApplied, faultstore.FormAnswerLost, faultstore.FormCrashAfter}
	faultstore.Sweep(t, faultstore.SweepOptions{Forms: forms, Sticky: true}, func(t *testing.T, f *faultstore.Injector) {
		w := scene(t, f.Wrap)
		if _, err := w.all(w.who); err != nil && !f.Hit() {
			t.Fatal(err)
		}
		f.Heal()
		w.converges()
	})
}

// TestSweepAbsorbCatalog: the same for the catalog's verbs. A cut after a step is the
// call after it that is not applied.
func TestSweepAbsorbCatalog(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for i, hit := 1, true; hit; i++ {
			ok := t.Run(fmt.Sprintf("applied=%t/%d", applied, i), func(t *testing.T) {
				w := scene(t, func(d objstore.Driver) objstore.Driver { return d })
				sick := &sickCatalog{Catalog: w.cat, at: i, applied: applied}
				_, err := All(t.Context(), sick, w.b, w.chain, w.who)
				if hit = sick.calls >= i; !hit && err != nil {
					t.Fatal(err)
				}
				if i == 1 && err == nil {
					t.Fatal("the first call's fault was swallowed")
				}
				w.converges()
			})
			if !ok {
				t.Fatalf("call %d", i)
			}
		}
	}
}

// sickCatalog fails the at-th call: not applied, or applied and its answer lost.
type sickCatalog struct {
	Catalog
	at, calls int
	applied   bool
}

func under[T any](c *sickCatalog, call func() (T, error)) (T, error) {
	var none T
	if c.calls++; c.calls != c.at {
		return call()
	}
	if !c.applied {
		return none, catalog.ErrUnavailable
	}
	if _, err := call(); err != nil {
		return none, err
	}
	return none, catalog.ErrAmbiguous
}

func (c *sickCatalog) Chain(ctx context.Context, ch segment.Chain) (catalog.ChainRow, error) {
	return under(c, func() (catalog.ChainRow, error) { return c.Catalog.Chain(ctx, ch) })
}

func (c *sickCatalog) AbsorbSlot(ctx context.Context, a catalog.Absorb) (catalog.Absorbed, error) {
	return under(c, func() (catalog.Absorbed, error) { return c.Catalog.AbsorbSlot(ctx, a) })
}

func (c *sickCatalog) Audit(ctx context.Context, kind, subject, detail string) error {
	_, err := under(c, func() (struct{}, error) { return struct{}{}, c.Catalog.Audit(ctx, kind, subject, detail) })
	return err
}
