package settle

import (
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Why a chain has nothing to settle now.
const (
	IdleEmpty = "no slot owes a settle now"
	IdleYoung = "the earliest standing slot is younger than settle-age, and transit is below settle-bytes"
	IdleLease = "another settler holds the lease of this duty"
)

// batch is what one pass settles.
type batch struct {
	slots []catalog.StandingSlot
	jobs  []*job
}

// plan is the settle policy: pure, so that a test can read every decision.
//
// A chain is due when its earliest standing slot is SettleAge old, or when its
// standing transit passes SettleBytes. Then all of the window goes: slots that are
// younger ride along, so that the number of objects depends on bytes, not on how
// often slots come of age.
func plan(w *catalog.Window, cfg Config, holder catalog.Holder) (batch, string) {
	slots := settleable(w.Slots)
	if len(slots) == 0 {
		return batch{}, IdleEmpty
	}
	age := w.Now.Sub(slots[0].Sealed)
	if age < cfg.SettleAge && w.Chain.TransitBytes < cfg.SettleBytes {
		return batch{}, IdleYoung
	}
	b := batch{slots: slots}
	pack := chainPack(w.Chain.Chain, slots[0].ID, slots[len(slots)-1].ID)
	pack.holder = holder
	for _, m := range membersOf(w.Refs, w.LiveFrom) {
		if m.bytes() < cfg.StreamObjectMin {
			pack.members = append(pack.members, m)
			continue
		}
		j := streamJob(m)
		j.holder = holder
		b.jobs = append(b.jobs, j)
	}
	if len(pack.members) > 0 {
		// First: it takes the longest.
		b.jobs = append([]*job{pack}, b.jobs...)
	}
	return b, ""
}

// settleable leaves out void slots that hold rows: they wait for an operator's
// word (03 §2), and nothing may resolve their markers meanwhile. A batch is
// consecutive slots, so it ends there, or begins behind.
func settleable(slots []catalog.StandingSlot) []catalog.StandingSlot {
	for len(slots) > 0 && parked(&slots[0]) {
		slots = slots[1:]
	}
	for i := range slots {
		if parked(&slots[i]) {
			return slots[:i]
		}
	}
	return slots
}

func parked(s *catalog.StandingSlot) bool { return s.Void && s.Next > s.First }

// membersOf groups refs by stream, in order of name: the order of the chunks in every
// source and every output. liveFrom is by stream id.
func membersOf(all []catalog.Ref, liveFrom map[int64]segment.Pos) []*member {
	byStream := make(map[string][]catalog.Ref)
	for i := range all {
		byStream[all[i].Stream] = append(byStream[all[i].Stream], all[i])
	}
	out := make([]*member, 0, len(byStream))
	for _, name := range sortedKeys(byStream) {
		refs := byStream[name]
		sortRefs(refs)
		m := &member{stream: name, liveFrom: liveFrom[refs[0].StreamID]}
		if m.runs = runsOf(refs, m.liveFrom); len(m.runs) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// chainPack is the job of a pack of a chain's slots from first to last.
func chainPack(c segment.Chain, first, last segment.ID) *job {
	return &job{kind: segment.ObjPack, key: func(rev uint32) string { return segment.PackKey(c, first, last, rev) }}
}

// streamJob is the job of a stream object. Its key is that of the first ref's
// first row, also if live_from cuts that ref: a trim between a crash and the
// re-run must not change the key that the re-run derives.
func streamJob(m *member) *job {
	first := &m.runs[0].refs[0]
	return &job{
		kind: segment.ObjStream, members: []*member{m},
		key: func(rev uint32) string { return segment.StreamKey(m.stream, first.Epoch, first.First, rev) },
	}
}
