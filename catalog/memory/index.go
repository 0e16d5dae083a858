package memory

import (
	"iter"
	"slices"
)

// blockMax is how many entries a block holds: few enough that shifting them is
// cheap, many enough that the list of blocks stays short (16 k of them at a million).
const blockMax = 96

// index is a table sorted by key: a list of sorted blocks, none of them empty.
//
// Values are never changed in place, only replaced, so that a clone may share them.
// Blocks are shared with clones until one side writes: a block whose owner is not the
// index's is copied first.
type index[K, V any] struct {
	cmp    func(a, b K) int
	blocks []*block[K, V]
	own    *owner
	n      int
	undo   []change[K, V]
}

type block[K, V any] struct {
	own   *owner
	items []item[K, V]
}

type item[K, V any] struct {
	k K
	v V
}

// owner tells the blocks of an index from those it shares. It is not empty: pointers
// to empty things need not differ.
type owner struct{ _ byte }

// change is how an entry was before the verb under way touched it.
type change[K, V any] struct {
	item[K, V]
	stood bool
}

func newIndex[K, V any](cmp func(a, b K) int) *index[K, V] {
	return &index[K, V]{cmp: cmp, own: new(owner)}
}

// clone is an index of the same entries. Neither side sees what the other writes.
func (x *index[K, V]) clone() *index[K, V] {
	x.own = new(owner)
	return &index[K, V]{cmp: x.cmp, blocks: slices.Clone(x.blocks), own: new(owner), n: x.n}
}

// find is the block that holds k or would, and k's place in it.
func (x *index[K, V]) find(k K) (b, at int, found bool) {
	lo, hi := 0, len(x.blocks)
	for lo < hi { // the first block that begins above k
		mid := int(uint(lo+hi) >> 1)
		if x.cmp(x.blocks[mid].items[0].k, k) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return 0, 0, false
	}
	b = lo - 1
	items := x.blocks[b].items
	lo, hi = 0, len(items)
	for lo < hi { // the first entry that is not below k
		mid := int(uint(lo+hi) >> 1)
		if x.cmp(items[mid].k, k) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return b, lo, lo < len(items) && x.cmp(items[lo].k, k) == 0
}

func (x *index[K, V]) get(k K) (v V, ok bool) {
	b, at, ok := x.find(k)
	if !ok {
		return v, false
	}
	return x.blocks[b].items[at].v, true
}

// writable is block b, the index's own.
func (x *index[K, V]) writable(b int) *block[K, V] {
	old := x.blocks[b]
	if old.own == x.own {
		return old
	}
	items := make([]item[K, V], len(old.items), blockMax+1)
	copy(items, old.items)
	x.blocks[b] = &block[K, V]{own: x.own, items: items}
	return x.blocks[b]
}

// set puts an entry, in the place of the one that stands.
func (x *index[K, V]) set(k K, v V) {
	old, stood := x.put(k, v)
	x.undo = append(x.undo, change[K, V]{item[K, V]{k, old}, stood})
}

func (x *index[K, V]) put(k K, v V) (old V, stood bool) {
	if len(x.blocks) == 0 {
		items := make([]item[K, V], 1, blockMax+1)
		items[0] = item[K, V]{k, v}
		x.blocks = append(x.blocks, &block[K, V]{own: x.own, items: items})
		x.n++
		return old, false
	}
	b, at, found := x.find(k)
	w := x.writable(b)
	if found {
		old, w.items[at].v = w.items[at].v, v
		return old, true
	}
	w.items = slices.Insert(w.items, at, item[K, V]{k, v})
	x.n++
	if len(w.items) > blockMax {
		x.split(b, at)
	}
	return old, false
}

// split halves a block that is too long. Entries that come in order leave full blocks
// behind them: of the last block only the newest goes over.
func (x *index[K, V]) split(b, at int) {
	w := x.blocks[b]
	cut := len(w.items) / 2
	if b == len(x.blocks)-1 && at == len(w.items)-1 {
		cut = at
	}
	items := make([]item[K, V], len(w.items)-cut, blockMax+1)
	copy(items, w.items[cut:])
	clear(w.items[cut:])
	w.items = w.items[:cut]
	x.blocks = slices.Insert(x.blocks, b+1, &block[K, V]{own: x.own, items: items})
}

// del takes an entry out and says whether it stood.
func (x *index[K, V]) del(k K) bool {
	old, stood := x.remove(k)
	if stood {
		x.undo = append(x.undo, change[K, V]{item[K, V]{k, old}, true})
	}
	return stood
}

func (x *index[K, V]) remove(k K) (old V, stood bool) {
	b, at, found := x.find(k)
	if !found {
		return old, false
	}
	w := x.writable(b)
	old = w.items[at].v
	w.items = slices.Delete(w.items, at, at+1)
	x.n--
	switch {
	case len(w.items) == 0:
		x.blocks = slices.Delete(x.blocks, b, b+1)
	case b+1 < len(x.blocks) && len(w.items)+len(x.blocks[b+1].items) <= blockMax/2:
		w.items = append(w.items, x.blocks[b+1].items...)
		x.blocks = slices.Delete(x.blocks, b+1, b+2)
	}
	return old, true
}

// commit keeps what was written since the last one; rollback takes it back.
func (x *index[K, V]) commit() {
	if len(x.undo) > 0 {
		clear(x.undo)
		x.undo = x.undo[:0]
	}
}

func (x *index[K, V]) rollback() {
	for i := len(x.undo) - 1; i >= 0; i-- {
		if c := &x.undo[i]; c.stood {
			x.put(c.k, c.v)
		} else {
			x.remove(c.k)
		}
	}
	x.commit()
}

// from lists entries from k on, in order. The index must not be written meanwhile.
func (x *index[K, V]) from(k K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		b, at, _ := x.find(k)
		x.walk(b, at, yield)
	}
}

// all lists every entry.
func (x *index[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { x.walk(0, 0, yield) }
}

func (x *index[K, V]) walk(b, at int, yield func(K, V) bool) {
	for ; b < len(x.blocks); b++ {
		items := x.blocks[b].items
		for ; at < len(items); at++ {
			if !yield(items[at].k, items[at].v) {
				return
			}
		}
		at = 0
	}
}

// below lists entries below k, the highest first.
func (x *index[K, V]) below(k K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if len(x.blocks) == 0 {
			return
		}
		b, at, _ := x.find(k)
		for b >= 0 {
			items := x.blocks[b].items
			for at--; at >= 0; at-- {
				if !yield(items[at].k, items[at].v) {
					return
				}
			}
			if b--; b >= 0 {
				at = len(x.blocks[b].items)
			}
		}
	}
}
