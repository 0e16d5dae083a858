package sim

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/segment"
)

// published: slot n+1 is not sent before slot n is absorbed (03 §2). The catalog does not
// change while the step is checked, so absorbed_end is what it was when the slot came to
// stand; a request that was held up comes to a lower position, never to a higher one.
func (k *checker) published(slot segment.Key) {
	row, ok := k.rows[slot.Chain]
	if b := &k.sim.back; b.happened() { // its owner may know more than the catalog
		if newest := b.newest.View().Chain(slot.Chain); newest != nil {
			row.AbsorbedEnd = max(row.AbsorbedEnd, newest.AbsorbedEnd)
		}
	}
	if ok && slot.ID > row.AbsorbedEnd {
		k.violated("03 §2", "chain %s: slot %d was published while %d is not absorbed", slot.Chain, slot.ID, row.AbsorbedEnd)
	}
}

// passed: trimmed goes past no slot that was never deleted. A copy of one that came late,
// after the delete, is a stray.
func (k *checker) passed(old, row *catalog.ChainRow) {
	for id := old.Trimmed; id < row.Trimmed; id++ {
		key := segment.SlotKey(row.Chain, id)
		for _, b := range k.sim.buckets {
			if !b.gone[key] && b.stands(key) {
				k.violated("I3", "chain %s: trimmed went from %d to %d, past slot %d, which stands in %s and was never deleted there", row.Chain, old.Trimmed, row.Trimmed, id, b.Name())
			}
		}
	}
}

// burned: what stood when its key was condemned is deleted before the key is called so.
// What was written later came late, and is the last look's.
func (k *checker) burned(v memory.View, c *call) {
	switch c.what {
	case "cat CondemnKey", "cat CondemnIntent":
		for in := range v.Intents() {
			if in.State == catalog.IntentCondemned && k.objects[in.Key] != nil {
				k.doomed[in.Key] = true
			}
		}
	case "cat BurnKey", "cat BurnIntent":
		for in := range v.Intents() {
			if in.State == catalog.IntentBurned && k.doomed[in.Key] && k.objects[in.Key] != nil && !k.sim.mem.gone[in.Key] {
				k.violated("I3", "%s is burned, stands, and was never deleted", in.Key)
			}
		}
	}
}

// headSays: before a slot goes, the chain's head in the bucket says that it is condemned,
// so that a catalog rolled back is found out (03 §7 step 2).
func (k *checker) headSays(slot segment.Key) {
	body, _, ok := k.sim.mem.body(segment.HeadKey(slot.Chain))
	if !ok {
		k.violated("03 §7", "delete of slot %d of chain %s, which has no head", slot.ID, slot.Chain)
		return
	}
	head, err := segment.DecodeHead(body)
	switch {
	case err != nil:
		k.violated("02", "head of chain %s: %v", slot.Chain, err)
	case slot.ID >= head.Condemned:
		k.violated("03 §7", "delete of slot %d of chain %s, whose head says condemned %d", slot.ID, slot.Chain, head.Condemned)
	}
}

// displaced: an acknowledged row keeps its seq through every restart on its disk: only
// another machine's term, or the loss of the disk, gives the seq to another row (03 §3).
func (k *checker) displaced(c segment.Chain, r slotRow) {
	if k.sim.back.happened() {
		return // a term may have had two owners, one by each copy
	}
	for _, rec := range k.model.chain(c).waiting[r.seq] {
		if rec.payload == r.payload || rec.life != rec.machine.life {
			continue
		}
		others := false
		for term := rec.term; term <= k.rows[c].Term; term++ {
			others = others || k.owners[termOf{c, term}] != rec.machine.name
		}
		if !others {
			k.violated("03 §3", "%q, acknowledged at %s seq %d by %s in term %d, lost its seq, and no other machine owned the chain since", short(rec.payload), c, r.seq, rec.machine.name, rec.term)
		}
	}
}

// termOf is a term of a chain.
type termOf struct {
	segment.Chain
	term segment.Term
}

// strays: once the duties ran dry, no slot stands below trimmed, and no unfinished upload
// stands at all (I5). It asks the buckets themselves, not what a process would list.
func (k *checker) strays() {
	for _, b := range k.sim.buckets {
		ups, err := b.ListUploads(context.Background(), "")
		if err != nil {
			k.violated("I5", "list uploads: %v", err)
		}
		for _, u := range ups {
			k.violated("I5", "upload %s of %s stands in %s", u.ID, u.Key, b.Name())
		}
		for _, key := range b.Keys() {
			if parsed, err := segment.ParseKey(key); err == nil && parsed.Kind == segment.KeySlot && parsed.ID < k.rows[parsed.Chain].Trimmed {
				k.violated("I5", "slot %s stands in %s below trimmed %d", key, b.Name(), k.rows[parsed.Chain].Trimmed)
			}
		}
	}
}
