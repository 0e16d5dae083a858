package sim

import (
	"context"
	"errors"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// published: slot n+1 is not sent before slot n is absorbed (03 §2). The catalog does not
// change while the step is checked, so absorbed_end is what it was when the slot came to
// stand; a request that was held up comes to a lower position, never to a higher one.
func (k *checker) published(slot segment.Key) {
	row, ok := k.rows[slot.Chain]
	if ok && slot.ID > row.AbsorbedEnd {
		k.violated("03 §2", "chain %s: slot %d was published while %d is not absorbed", slot.Chain, slot.ID, row.AbsorbedEnd)
	}
}

// passed: trimmed goes past no slot that was never deleted. A copy of one that came late,
// after the delete, is a stray.
func (k *checker) passed(old, row *catalog.ChainRow) {
	for id := old.Trimmed; id < row.Trimmed; id++ {
		key := segment.SlotKey(row.Chain, id)
		if k.objects[key] != nil && !k.gone[key] {
			k.violated("I3", "chain %s: trimmed went from %d to %d, past slot %d, which stands and was never deleted", row.Chain, old.Trimmed, row.Trimmed, id)
		}
	}
}

// burned: a key is called deleted only after a delete, or where nothing stood.
func (k *checker) burned(v memory.View, c *call) {
	if c.what != "cat BurnKey" && c.what != "cat BurnIntent" {
		return
	}
	for in := range v.Intents() {
		if in.State == catalog.IntentBurned && k.objects[in.Key] != nil && !k.gone[in.Key] {
			k.violated("I3", "%s is burned, stands, and was never deleted", in.Key)
		}
	}
}

// headSays: before a slot goes, the chain's head in the bucket says that it is condemned,
// so that a catalog rolled back is found out (03 §7 step 2).
func (k *checker) headSays(slot segment.Key) {
	body, _, ok := k.sim.body(segment.HeadKey(slot.Chain))
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

// displaced: an acknowledged row keeps its seq through every restart of its owner: only
// another owner's term, or the loss of its disk, gives the seq to another row (03 §3).
func (k *checker) displaced(v memory.View, c segment.Chain, r slotRow) {
	for _, rec := range k.model.chain(c).waiting[r.seq] {
		if rec.payload == r.payload || rec.life != rec.machine.life {
			continue
		}
		var owner segment.UUID
		others := false
		for t := range v.Terms(c) {
			if t.Term == rec.term {
				owner = t.Owner
			}
			others = others || t.Term > rec.term && t.Owner != owner
		}
		if !others {
			k.violated("03 §3", "%q, acknowledged at %s seq %d by %s in term %d, lost its seq, and nobody else ever owned the chain since", short(rec.payload), c, r.seq, rec.machine.name, rec.term)
		}
	}
}

// left: nothing unfinished stands under a key that is burned.
func (k *checker) left(v memory.View) {
	ups, err := k.sim.mem.ListUploads(context.Background(), "")
	if err != nil && !errors.Is(err, objstore.ErrNotFound) {
		k.violated("I3", "list uploads: %v", err)
	}
	for _, u := range ups {
		if in := v.Intent(u.Key); in != nil && in.State == catalog.IntentBurned {
			k.violated("I3", "%s is burned, and its upload %s stands", u.Key, u.ID)
		}
	}
}
