package memory

import (
	"context"
	"iter"
	"maps"
	"math"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// objectsFrom lists one ref of each object whose key is at or above from, by key. It
// costs a look-up an object, however many refs name each.
func (t *tx) objectsFrom(from string) iter.Seq[*catalog.Ref] {
	return func(yield func(*catalog.Ref) bool) {
		k := objectKey{key: from, refKey: refKey{stream: math.MinInt64}}
		for {
			var next *catalog.Ref
			for _, r := range t.refName.from(k) {
				next = r
				break
			}
			if next == nil || !yield(next) {
				return
			}
			k = objectKey{next.Key, refKey{math.MaxInt64, math.MaxUint32, math.MaxUint64}}
		}
	}
}

// packsOf lists the packs of a chain's generation that live refs name, in order of
// their first slots, which is that of their keys. A dead pack's look ends with its
// refs, and the teardown that retires them is owed already.
func (t *tx) packsOf(c segment.Chain, generation uint32) iter.Seq[string] {
	prefix := segment.PackChainPrefix(c)
	return func(yield func(string) bool) {
		for r := range t.objectsFrom(prefix) {
			if !strings.HasPrefix(r.Key, prefix) {
				return
			}
			if r.Kind == catalog.RefPack && r.Generation == generation && t.hasLive(r.Key) && !yield(r.Key) {
				return
			}
		}
	}
}

// hasLive says whether a live ref names the key.
func (t *tx) hasLive(key string) bool {
	for r := range t.naming(key) {
		if l, err := t.live(r); err == nil && !l.Dead(l.LiveFrom) {
			return true
		}
	}
	return false
}

// armNext arms what a commit makes the other policies owe (03 §4), due at once.
func (t *tx) armNext(next catalog.Next, committed []catalog.Ref) {
	if next.TailTarget > 0 {
		t.armTails(next.TailTarget, committed)
	}
	if next.PackFan <= 0 || len(committed) == 0 || committed[0].Kind != catalog.RefPack {
		return
	}
	r, n := &committed[0], 0 // one commit, one pack
	for range t.packsOf(r.Chain, r.Generation) {
		if n++; n == next.PackFan {
			t.arm(catalog.DutyPackMerge, catalog.PackMergeID(r.Chain, r.Generation), "", 0)
			return
		}
	}
}

// armTails arms the tail-fills of the stream objects right before the committed refs.
func (t *tx) armTails(target int64, committed []catalog.Ref) {
	var tails []catalog.LiveRef
	for i := range committed {
		for _, prev := range t.ref.below(keyOf(&committed[i])) {
			if l, err := t.live(prev); err == nil {
				tails = append(tails, l)
			}
			break
		}
	}
	t.armAll(catalog.DutyTailFill, catalog.TailsDue(committed, tails, target), 0)
}

// PackWindow is what a pack-merge may take.
func (c *Catalog) PackWindow(ctx context.Context, ch segment.Chain, generation uint32, packs int) (w catalog.PackWindow, err error) {
	if packs <= 0 {
		return w, catalog.Invalid("PackWindow", "%d packs", packs)
	}
	err = c.read(ctx, "PackWindow", func(t *tx) (err error) {
		w.Now, w.LiveFrom = t.now, map[int64]segment.Pos{}
		if w.Chain, err = t.row(ch); err != nil {
			return err
		}
		for key := range t.packsOf(ch, generation) {
			if len(w.Packs) == min(packs, catalog.MaxPage) || len(w.Refs) >= c.windowRefs || len(w.Packs)+len(w.Passed) == 2*min(packs, catalog.MaxPage) {
				break
			}
			from := map[int64]segment.Pos{}
			refs, err := t.liveNaming(key, nil, from)
			if err != nil {
				return err
			}
			if len(refs) >= c.windowRefs {
				w.Passed = append(w.Passed, key)
				continue
			}
			w.Packs, w.Refs = append(w.Packs, key), append(w.Refs, refs...)
			maps.Copy(w.LiveFrom, from)
		}
		catalog.SortRefs(w.Refs)
		return nil
	})
	return w, err
}
