package catalogtest

import "github.com/strandline/strandline/catalog"

// retain is the owner's run: plan from the row, commit.
func (m *model) retain() {
	if m.r.IntN(3) > 0 {
		return
	}
	row := m.Row()
	slots, err := m.C.Slots(m.Ctx, m.Chain, row.WatermarkSegment, 0)
	m.OK(err)
	p := interest
	p.Rows = uint64(10 + m.r.IntN(60))
	w, ok := catalog.PlanRetention(catalog.RetentionInput{Row: row, Policy: p, Slots: slots, Now: m.Clock.Now()})
	if !ok {
		return
	}
	w.Term = m.Term
	got, err := m.C.RaiseWatermark(m.Ctx, w)
	m.OK(err)
	Equal(m.T, "watermark", got.WatermarkSeq, w.Seq)
	m.done["retained"]++
}

// reclaim is the duty on a chain, a page of it: watchers before refs.
func (m *model) reclaim() {
	dead, more, err := m.C.DeadRefs(m.Ctx, m.Chain, 1+m.r.IntN(5))
	m.OK(err)
	m.OK(m.C.ArmWatchers(m.Ctx, dead))
	n, err := m.C.RetireRefs(m.Ctx, dead)
	m.OK(err)
	Equal(m.T, "retired of a page that nobody changed", n, len(dead))
	m.done["reclaimed"] += n
	m.countLost(dead)
	if more {
		return
	}
	straddling, _, err := m.C.StraddlingRefs(m.Ctx, m.Chain, nil, 0)
	m.OK(err)
	m.OK(m.C.ArmWatchers(m.Ctx, straddling))
}
