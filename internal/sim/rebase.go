package sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/segment"
)

// rebase takes the catalog as it stands now for what is known of it.
func (k *checker) rebase() {
	k.sim.cat.View(func(v memory.View) {
		rows, live := map[segment.Chain]catalog.ChainRow{}, map[string]segment.Pos{}
		for row := range v.Chains() {
			kept := *row
			kept.Consumers = append([]segment.Consumer(nil), row.Consumers...)
			rows[row.Chain] = kept
		}
		for st := range v.Streams() {
			live[st.Name] = st.LiveFrom
		}
		chains := slices.SortedFunc(maps.Keys(k.model.chains), func(a, b segment.Chain) int { return strings.Compare(a.String(), b.String()) })
		for _, c := range slices.Backward(chains) { // a stream's newest rows are its newest chain's
			k.forget(c, max(1, rows[c].NextSeq))
		}
		for _, c := range chains {
			k.remember(c, max(1, rows[c].NextSeq))
		}
		k.rows, k.live, k.named = rows, live, map[string]bool{}
		for r := range v.Refs() {
			k.named[r.Key] = true
			delete(k.died, r.Key)
			if r.Key != "" && !k.sim.stands(r.Key) && k.lost[r.Key] == nil {
				k.sim.back.gone[r.Key] = true
			}
		}
		for _, key := range k.sim.mem.Keys() {
			if !k.isWatched(v, key) {
				k.sim.back.loose[key] = true
			}
		}
	})
}

// forget takes a chain's rows from a seq on out of the history.
func (k *checker) forget(c segment.Chain, next segment.Seq) {
	h := k.model.chain(c)
	lost := k.sim.back.lost[c]
	if lost == nil {
		lost = map[segment.Seq]past{}
		k.sim.back.lost[c] = lost
	}
	for len(h.rows) >= int(next) {
		seq := segment.Seq(len(h.rows))
		row := h.rows[seq-1]
		lost[seq] = row
		h.rows = h.rows[:seq-1]
		t := k.model.stream(row.stream)
		n := len(t.at) - 1
		t.at, t.chain, t.total = t.at[:n], t.chain[:n], t.total[:n+1]
	}
	k.relate(c, func(rec *record) {
		if rec.inHistory && rec.at >= next {
			rec.inHistory, rec.was = false, true
		}
	})
}

// remember puts rows back that were forgotten: the newest copy knows them.
func (k *checker) remember(c segment.Chain, next segment.Seq) {
	h, lost := k.model.chain(c), k.sim.back.lost[c]
	for seq := segment.Seq(len(h.rows) + 1); seq < next; seq++ {
		row := lost[seq]
		h.rows = append(h.rows, row)
		k.model.stream(row.stream).add(segment.Pos{Epoch: c.Epoch, Seq: seq}, c, row.sum)
	}
	k.relate(c, func(rec *record) { rec.inHistory = rec.inHistory || rec.was && rec.at < next })
}

func (k *checker) relate(c segment.Chain, do func(*record)) {
	for _, rec := range k.model.records {
		if rec.in == c {
			do(rec)
		}
	}
}

// again: a row whose absorb was lost is absorbed again as it was; nothing else takes its place.
func (k *checker) again(c segment.Chain, r slotRow) {
	if k.voided[c] {
		return // its slot waits for a person's word
	}
	if was, ok := k.sim.back.lost[c][r.seq]; ok && was != (past{r.stream, r.sum}) {
		k.violated("I8", "chain %s seq %d: a row of %q stood there before the catalog was rolled back, and now another one of %q does", c, r.seq, was.stream, r.stream)
	}
}
