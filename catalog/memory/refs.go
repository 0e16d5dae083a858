package memory

import (
	"fmt"
	"iter"
	"math"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// naming lists the refs that name a key, by (stream, epoch, first).
func (t *tx) naming(key string) iter.Seq[*catalog.Ref] { return View{t.tables}.RefsOf(key) }

// named counts the refs that name a key.
func (t *tx) named(key string) (n int) {
	for range t.naming(key) {
		n++
	}
	return n
}

func (t *tx) isNamed(key string) bool { return View{t.tables}.Named(key) }

// live gives a ref its stream's effective live_from. A ref that names a missing row
// is corruption, and must not look like no ref at all.
func (t *tx) live(r *catalog.Ref) (catalog.LiveRef, error) {
	s, ok := t.stream.get(r.StreamID)
	row, okChain := t.chain.get(r.Chain)
	if !ok || !okChain || r.Kind == "" {
		return catalog.LiveRef{}, fmt.Errorf("%w: ref %s of stream %d names no object, stream or chain that stands; run fsck", catalog.ErrCorrupt, r.FirstPos(), r.StreamID)
	}
	return catalog.LiveRef{Ref: *r, LiveFrom: catalog.EffectiveLiveFrom(s.LiveFrom, r.Chain, row.WatermarkSeq)}, nil
}

// judged is live for who takes dead refs away.
func (t *tx) judged(r *catalog.Ref) (catalog.LiveRef, error) {
	l, err := t.live(r)
	if t.skip[FirstSeq] && l.FirstPos().Less(l.LiveFrom) {
		l.LiveFrom = l.LastPos().Next() // or it would not be dead by its last row
	}
	return l, err
}

// checkObject: one key has one kind, class, revision and generation for ever.
func (t *tx) checkObject(r *catalog.Ref) error {
	for have := range t.naming(r.Key) {
		if have.Kind != r.Kind || have.Class != r.Class || have.Revision != r.Revision || have.Generation != r.Generation {
			return catalog.Conflict("object", r.Key, []any{r.Kind, r.Class, r.Revision, r.Generation}, []any{have.Kind, have.Class, have.Revision, have.Generation})
		}
		return nil // the others are like it
	}
	return nil
}

// checkKinds stops a deleting verb if any ref has a kind that this build does not
// know (K16).
func (t *tx) checkKinds(verb string) error {
	for _, r := range t.refOdd.all() {
		return catalog.ErrUnknownKind(verb, r.Kind, r.Key)
	}
	return nil
}

// chainRefs lists a chain's refs whose last row is at or above from, by last row.
func (t *tx) chainRefs(c segment.Chain, from segment.Seq) iter.Seq[*catalog.Ref] {
	return t.chainRefsFrom(lastKey{c, from, math.MinInt64})
}

func (t *tx) chainRefsFrom(k lastKey) iter.Seq[*catalog.Ref] {
	return func(yield func(*catalog.Ref) bool) {
		for at, r := range t.refLast.from(k) {
			if at.Chain != k.Chain || !yield(r) {
				return
			}
		}
	}
}

// liveNaming appends the refs that name a key and are not dead, and notes the
// live_from of their streams.
func (t *tx) liveNaming(key string, refs []catalog.Ref, from map[int64]segment.Pos) ([]catalog.Ref, error) {
	for r := range t.naming(key) {
		l, err := t.live(r)
		if err != nil {
			return refs, err
		}
		if !l.Dead(l.LiveFrom) {
			refs = append(refs, l.Ref)
			from[l.StreamID] = l.LiveFrom
		}
	}
	return refs, nil
}
