package sim

import (
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/segment"
)

// chains holds the cursors to I6, and takes in what was absorbed.
func (k *checker) chains(v memory.View) {
	for row := range v.Chains() {
		old, known := k.rows[row.Chain]
		if known {
			k.monotonic(&old, row)
			k.passed(&old, row)
		}
		if row.Trimmed > row.Condemned || row.Condemned > row.Rewritten || row.Rewritten > row.AbsorbedEnd {
			k.violated("I6", "chain %s: trimmed %d, condemned %d, rewritten %d, absorbed_end %d", row.Chain, row.Trimmed, row.Condemned, row.Rewritten, row.AbsorbedEnd)
		}
		k.owners[termOf{row.Chain, row.Term}] = row.Address
		for id := max(old.AbsorbedEnd, 1); id < row.AbsorbedEnd; id++ {
			k.absorbed(v, row, id)
		}
		kept := *row
		kept.Consumers = append([]segment.Consumer(nil), row.Consumers...)
		k.rows[row.Chain] = kept
	}
}

func (k *checker) monotonic(old, row *catalog.ChainRow) {
	for _, c := range []struct {
		name     string
		was, now uint64
	}{
		{"term", uint64(old.Term), uint64(row.Term)},
		{"last term", uint64(old.LastTerm), uint64(row.LastTerm)},
		{"absorbed_end", uint64(old.AbsorbedEnd), uint64(row.AbsorbedEnd)},
		{"next seq", uint64(old.NextSeq), uint64(row.NextSeq)},
		{"rewritten", uint64(old.Rewritten), uint64(row.Rewritten)},
		{"condemned", uint64(old.Condemned), uint64(row.Condemned)},
		{"trimmed", uint64(old.Trimmed), uint64(row.Trimmed)},
		{"watermark", uint64(old.WatermarkSeq), uint64(row.WatermarkSeq)},
		{"watermark segment", uint64(old.WatermarkSegment), uint64(row.WatermarkSegment)},
		{"trim journal", old.TrimJournal, row.TrimJournal},
	} {
		if c.now < c.was {
			k.violated("I6", "chain %s: %s went from %d to %d", row.Chain, c.name, c.was, c.now)
		}
	}
	if old.Closed && (!row.Closed || row.AbsorbedEnd != old.AbsorbedEnd) {
		k.violated("I8", "chain %s was closed at position %d, and stands at %d", row.Chain, old.AbsorbedEnd, row.AbsorbedEnd)
	}
	if row.WatermarkSeq > old.WatermarkSeq {
		k.raised(old, row)
	}
	k.cursors(old, row)
}

// raised: retention goes past no consumer of the row, and gives up nothing that is not
// absorbed.
func (k *checker) raised(old, row *catalog.ChainRow) {
	if int(row.WatermarkSeq) > len(k.model.chain(row.Chain).rows) {
		k.violated("I1", "chain %s: watermark %d above the history's %d rows", row.Chain, row.WatermarkSeq, len(k.model.chain(row.Chain).rows))
	}
	for _, c := range old.Consumers {
		if asked := max(k.asked[row.Chain], c.Cursor); row.WatermarkSeq > asked {
			k.violated("03 §9", "chain %s: watermark %d is past consumer %q, which acknowledged %d at most", row.Chain, row.WatermarkSeq, c.Name, asked)
		}
	}
	if !k.sim.retained {
		k.violated("03 §9", "chain %s: watermark %d although all policies keep everything", row.Chain, row.WatermarkSeq)
	}
}

// cursors: those of the row never go back, but for a consumer that was removed and made again.
func (k *checker) cursors(old, row *catalog.ChainRow) {
	if k.removed[row.Chain] {
		return
	}
	for _, was := range old.Consumers {
		for _, now := range row.Consumers {
			if now.Name == was.Name && now.Cursor < was.Cursor {
				k.violated("I6", "chain %s: consumer %q went from %d to %d", row.Chain, now.Name, was.Cursor, now.Cursor)
			}
		}
	}
}

// absorbed takes a slot's rows into the history (I8).
func (k *checker) absorbed(v memory.View, row *catalog.ChainRow, id segment.ID) {
	slot, _ := v.Slot(row.Chain, id)
	if slot == nil {
		k.violated("I8", "chain %s: position %d is below absorbed_end %d and has no row", row.Chain, id, row.AbsorbedEnd)
		return
	}
	if slot.Void {
		k.voided[row.Chain] = true
		k.sim.cover.hitLocked(k.sim, "slot absorbed as void")
		return
	}
	o := k.objects[segment.SlotKey(row.Chain, id)]
	if o == nil {
		k.violated("I2", "chain %s: position %d was absorbed, and no object was ever written there", row.Chain, id)
		return
	}
	h := k.model.chain(row.Chain)
	if int(slot.First) != len(h.rows)+1 {
		k.violated("I8", "chain %s: slot %d begins at seq %d, the history ends at %d", row.Chain, id, slot.First, len(h.rows))
		return
	}
	for _, r := range o.rows {
		if int(r.seq) != len(h.rows)+1 {
			k.violated("I8", "chain %s: slot %d has seq %d after %d", row.Chain, id, r.seq, len(h.rows))
			return
		}
		k.happened(row.Chain, r)
	}
	if int(slot.Next) != len(h.rows)+1 {
		k.violated("I8", "chain %s: slot %d is said to end before seq %d, and holds rows up to %d", row.Chain, id, slot.Next, len(h.rows))
	}
}

// happened adds one row to the history.
func (k *checker) happened(c segment.Chain, r slotRow) {
	h := k.model.chain(c)
	h.rows = append(h.rows, past{r.stream, r.sum})
	k.model.stream(r.stream).add(segment.Pos{Epoch: c.Epoch, Seq: r.seq}, c, r.sum)
	k.displaced(c, r)
	k.again(c, r)
	delete(h.waiting, r.seq) // who is not this row has lost its place: the end asks where it is
	if r.stream[0] == '~' {
		return
	}
	rec := k.model.byPayload[r.payload]
	switch {
	case rec == nil:
		k.violated("I1", "chain %s seq %d of %q holds %q, which nobody appended", c, r.seq, r.stream, short(r.payload))
	case rec.stream != r.stream:
		k.violated("I1", "%q was appended to %q and stands in %q", short(r.payload), rec.stream, r.stream)
	case rec.inHistory:
		k.violated("I1", "%q is twice in the history, the second time at %s seq %d", short(r.payload), c, r.seq)
	default:
		rec.inHistory, rec.in, rec.at = true, c, r.seq
	}
}

// trimmed holds streams to I6, and to what the operator asked for.
func (k *checker) trimmed(v memory.View, c *call) {
	for s := range v.Streams() {
		was := k.live[s.Name]
		if s.LiveFrom == was {
			continue
		}
		if s.LiveFrom.Less(was) {
			k.violated("I6", "stream %q: live_from went from %s to %s", s.Name, was, s.LiveFrom)
		}
		may := k.trims[s.Name]
		if c.what == "cat DeleteStream" {
			may = later(may, s.Last.Next())
		}
		if may.Less(s.LiveFrom) {
			k.violated("I1", "stream %q: live_from is %s, the operator asked for %s at most", s.Name, s.LiveFrom, may)
		}
		k.live[s.Name] = s.LiveFrom
	}
}

func later(a, b segment.Pos) segment.Pos {
	if a.Less(b) {
		return b
	}
	return a
}
