package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/segment"
)

// refs holds all refs to I1 and I2: together they serve every live row of the history
// once, with the bytes that it has.
func (k *checker) refs(v memory.View) {
	named := make(map[string]bool, len(k.named))
	served := map[string]int{}
	var last *catalog.Ref
	for r := range v.Refs() {
		named[r.Key] = true
		if last != nil && last.Stream == r.Stream {
			k.follows(last, r)
		}
		last = r
		served[r.Stream] += k.ref(v, r)
	}
	for _, name := range slices.Sorted(maps.Keys(k.model.streams)) {
		if want := k.liveRows(v, name); served[name] != want {
			k.unserved(v, name, served[name], want)
		}
	}
	now := time.Now()
	for key := range k.named {
		if !named[key] {
			k.died[key] = now
		}
	}
	for key := range named {
		delete(k.died, key)
	}
	k.named = named
}

func (k *checker) follows(last, r *catalog.Ref) {
	if !last.LastPos().Less(r.FirstPos()) {
		k.violated("I1", "stream %q: refs overlap: %s to %s in %s, %s to %s in %s", r.Stream, last.FirstPos(), last.LastPos(), last.Key, r.FirstPos(), r.LastPos(), r.Key)
	}
}

// ref holds one to its object and to the history, and counts the live rows it serves.
func (k *checker) ref(v memory.View, r *catalog.Ref) int {
	t := k.model.stream(r.Stream)
	live, _ := t.span(later(r.FirstPos(), v.LiveFrom(r)), r.LastPos())
	if r.Kind == catalog.RefLost {
		k.givenUp(r)
		return int(live)
	}
	o := k.objects[r.Key]
	if o == nil && k.sim.back.gone[r.Key] {
		return int(live)
	}
	if o == nil {
		k.violated("I2", "stream %q: ref %s to %s names %s, which does not stand", r.Stream, r.FirstPos(), r.LastPos(), r.Key)
		return 0
	}
	var rows, sum uint64
	if has := o.streams[r.Stream]; has != nil {
		rows, sum = has.span(r.FirstPos(), r.LastPos())
	}
	want, wantSum := t.span(r.FirstPos(), r.LastPos())
	if rows != want || sum != wantSum {
		k.violated("I2", "stream %q: ref %s to %s: %s holds %d rows (sum %x), the history %d (sum %x)", r.Stream, r.FirstPos(), r.LastPos(), r.Key, rows, sum, want, wantSum)
	}
	if r.Rows != want || r.RowSum != wantSum {
		k.violated("I2", "stream %q: ref %s to %s in %s says %d rows (sum %x), the history has %d (sum %x)", r.Stream, r.FirstPos(), r.LastPos(), r.Key, r.Rows, r.RowSum, want, wantSum)
	}
	k.linked(v, t, r)
	return int(live)
}

// linked: a ref follows the row before it; if that is dead, maybe an earlier one.
func (k *checker) linked(v memory.View, t *timeline, r *catalog.Ref) {
	i := t.find(r.FirstPos()) - 1
	var before segment.Pos
	if i >= 0 {
		before = t.at[i]
	}
	if r.PrevLast == before || i >= 0 && r.PrevLast.Less(before) && !k.isLive(v, r.Stream, t.chain[i], before) {
		return
	}
	k.violated("I1", "stream %q: ref at %s in %s follows %s, the row before it is %s", r.Stream, r.FirstPos(), r.Key, r.PrevLast, before)
}

// liveRows counts a stream's rows at or above its effective live_from.
func (k *checker) liveRows(v memory.View, name string) int {
	t := k.model.streams[name]
	var from segment.Pos
	if s := v.Stream(name); s != nil {
		from = s.LiveFrom
	}
	n := 0
	for i := t.find(from); i < len(t.at); {
		c := t.chain[i]
		end := t.find(segment.Pos{Epoch: c.Epoch + 1})
		first := i
		if row := v.Chain(c); row != nil && row.WatermarkSeq > 0 {
			first = max(first, t.find(segment.Pos{Epoch: c.Epoch, Seq: row.WatermarkSeq + 1}))
		}
		n += max(0, end-first)
		i = end
	}
	return n
}

// unserved says which row is missing.
func (k *checker) unserved(v memory.View, name string, have, want int) {
	t := k.model.streams[name]
	s := v.Stream(name)
	if s == nil {
		k.violated("I1", "stream %q has %d rows in the history, and the catalog does not know it", name, len(t.at))
		return
	}
	covered := func(at segment.Pos) bool {
		for r := range v.StreamRefs(s.ID) {
			if !at.Less(r.FirstPos()) && !r.LastPos().Less(at) {
				return true
			}
		}
		return false
	}
	for i, at := range t.at {
		if k.isLive(v, name, t.chain[i], at) && !covered(at) {
			k.violated("I1", "stream %q: row %s is live and no ref serves it (%d of %d are served)", name, at, have, want)
			return
		}
	}
	k.violated("I1", "stream %q: refs serve %d live rows, the history has %d", name, have, want)
}

// overtaken says whether a reader that has yet to give from a position on may be told
// that it was trimmed: by the stream's own live_from, or by the watermark of the chain
// that the position lies in, or the stream's next row behind it. Rows of an older epoch
// that its own chain keeps are never given up by a newer one's.
func (k *checker) overtaken(v memory.View, stream string, at segment.Pos) bool {
	if s := v.Stream(stream); s != nil && at.Less(s.LiveFrom) {
		return true
	}
	t := k.model.stream(stream)
	i := t.find(at)
	if i > 0 && t.chain[i-1].Epoch == at.Epoch && !k.isLive(v, stream, t.chain[i-1], at) {
		return true
	}
	return i < len(t.at) && !k.isLive(v, stream, t.chain[i], t.at[i])
}

// isLive says whether a row is neither trimmed nor given up by its own chain.
func (k *checker) isLive(v memory.View, stream string, c segment.Chain, at segment.Pos) bool {
	if s := v.Stream(stream); s != nil && at.Less(s.LiveFrom) {
		return false
	}
	row := v.Chain(c)
	return row == nil || at.Seq > row.WatermarkSeq
}
