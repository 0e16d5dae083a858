package localtier

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// unsent keeps a writer from publishing anything.
func unsent(o *Options) {
	o.Cut = func(s Step) error {
		if s == StepBuilt {
			return errPower
		}
		return nil
	}
}

// TestHydratedIsProven: a taker's directory holds segments of the writers before it, too,
// which the chain has by definition. Set aside after their slots were trimmed, it is
// left with the taker's own rows only.
func TestHydratedIsProven(t *testing.T) {
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprintf("trimmed=%v", gone), func(t *testing.T) {
			w := newWorld(t, 1)
			w.chainOf(t, 3)
			b := w.open("b", unsent)
			w.hydrated(t, b, 3)
			w.mustAppend(b, "s", AckLocal, "mine")
			abandon(t, b)
			w.acked["s"] = []string{"0", "1", "2"}
			c := w.open("c", steal)
			w.mustAppend(c, "s", AckShared, "fourth")
			w.mustClose(c)
			b = w.open("b", func(o *Options) {
				if gone {
					o.Catalog = noSlots{trimmedChain{o.Catalog}}
				}
			})
			left := w.quarantined("b")
			if len(left) != 1 || left[0].Rows != 1 {
				t.Fatalf("in quarantine: %+v", left)
			}
			if n := w.salvage(left[0], b); n != 1 {
				t.Errorf("%d rows salvaged", n)
			}
			w.mustClose(b)
			w.checkStored()
		})
	}
}

// TestCopyOfARunningDirectory: a copy resumes with what the open segment held, while the
// original goes on in it. What the original has beyond that is left, and nothing of what
// the copy brought into the chain.
func TestCopyOfARunningDirectory(t *testing.T) {
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprintf("trimmed=%v", gone), func(t *testing.T) {
			w := newWorld(t, 1)
			a := w.open("a", unsent)
			w.mustAppend(a, "s", AckLocal, "one", "two")
			if err := os.CopyFS(filepath.Join(w.root, "b"), os.DirFS(filepath.Join(w.root, "a"))); err != nil {
				t.Fatal(err)
			}
			w.mustAppend(a, "s", AckLocal, "three")
			mustSeal(t, a.shards[0])
			w.mustAppend(a, "s", AckLocal, "four")
			w.acked["s"] = []string{"one", "two"}
			b := w.open("b")
			w.mustAppend(b, "s", AckShared, "five")
			w.mustClose(b)
			abandon(t, a)
			a = w.open("a", func(o *Options) {
				if gone {
					o.Catalog = noSlots{trimmedChain{o.Catalog}}
				}
			})
			left := w.quarantined("a")
			if len(left) != 1 || left[0].Rows != 2 || left[0].Segments != 2 {
				t.Fatalf("in quarantine: %+v", left)
			}
			if n := w.salvage(left[0], a); n != 2 {
				t.Errorf("%d rows salvaged", n)
			}
			w.mustClose(a)
			w.checkStored()
		})
	}
}

// TestProofByMergedSlots: the row of a trimmed slot tells of those before it, too, and of
// the last one's segment.
func TestProofByMergedSlots(t *testing.T) {
	leftsRows(t, 3, func(c Catalog) Catalog { return mergedSlots{trimmedChain{c}} })
}

// leftsRows: of five rows that were set aside, so many are not proven by what cat tells.
func leftsRows(t *testing.T, rows uint64, cat func(Catalog) Catalog) {
	t.Helper()
	w := newWorld(t, 1)
	w.leftOverRows(t)
	a := w.open("a", func(o *Options) { o.Catalog = cat(o.Catalog) })
	if left := w.quarantined("a"); len(left) != 1 || left[0].Rows != rows {
		t.Errorf("in quarantine: %+v", left)
	}
	w.mustClose(a)
}

// trimmedChain has the chain's slots trimmed: only then are their rows forgotten or merged.
type trimmedChain struct{ Catalog }

func (c trimmedChain) Chain(ctx context.Context, chain segment.Chain) (catalog.ChainRow, error) {
	row, err := c.Catalog.Chain(ctx, chain)
	row.Trimmed = max(row.Trimmed, row.AbsorbedEnd)
	return row, err
}

type mergedSlots struct{ trimmedChain }

func (c mergedSlots) Slots(ctx context.Context, chain segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error) {
	rows, err := c.Catalog.Slots(ctx, chain, 1, slotPage)
	out := catalog.MergeTrimmed(rows[:2])
	if err == nil && (len(out) != 1 || out[0].UUID != rows[1].UUID) {
		err = fmt.Errorf("nothing is merged: %+v", rows)
	}
	return out, err
}

// TestProofOfATermGivenTwice: behind a catalog that was rolled back another writer may have had
// the same term. Where the slots' rows stand, and none is of these segments, it proves nothing.
func TestProofOfATermGivenTwice(t *testing.T) {
	leftsRows(t, 5, func(c Catalog) Catalog { return othersSlots{c} })
}

type othersSlots struct{ Catalog }

func (c othersSlots) Slots(ctx context.Context, chain segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error) {
	rows, err := c.Catalog.Slots(ctx, chain, from, limit)
	for i := range rows {
		rows[i].UUID[0] ^= 1
	}
	return rows, err
}
