package catalogtest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// model is what the catalog is held against: the rows of every stream, and the
// objects that nobody deleted.
type model struct {
	*World
	r       *rand.Rand
	rows    map[string][]segment.Seq
	live    map[string]segment.Pos
	slots   map[string]bool // objects that stand
	objects map[string]bool
	last    catalog.ChainRow
	done    map[string]int // what happened, so that a run that does nothing fails
	n       int
}

// testRandom runs random verbs, and holds the catalog against the model after each.
func testRandom(t *testing.T, open Open) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := &model{
				World: NewWorld(t, open), r: rand.New(rand.NewPCG(seed, 1)),
				rows: map[string][]segment.Seq{}, live: map[string]segment.Pos{},
				slots: map[string]bool{}, objects: map[string]bool{}, done: map[string]int{},
			}
			acts := []func(){m.absorb, m.absorb, m.settle, m.settle, m.gc, m.trim, m.teardown, m.wait, m.trimCheck, m.reap, m.judge, m.judge, m.wait, m.reacquireChain, m.retain, m.reclaim, m.loseAny}
			for range 300 {
				acts[m.r.IntN(len(acts))]()
				m.check()
				if t.Failed() {
					return
				}
			}
			for _, want := range []string{"settled", "truncated", "gc", "retired", "slots trimmed", "reaped", "orphans", "resolved", "retained", "reclaimed", "lost", "lost and retired"} {
				if m.done[want] == 0 {
					t.Errorf("the run never came to %q: %v", want, m.done)
				}
			}
		})
	}
}

func (m *model) names() []string { return slices.Sorted(maps.Keys(m.rows)) }

func (m *model) any() string {
	names := m.names()
	if len(names) == 0 {
		return ""
	}
	return names[m.r.IntN(len(names))]
}

func (m *model) absorb() {
	spans := ""
	for _, s := range []string{"a", "b", "c", "d"} {
		for range m.r.IntN(3) {
			spans += fmt.Sprintf("%s:%d ", s, 1+m.r.IntN(5))
		}
	}
	a := m.Build(spans)
	for _, r := range a.Refs {
		for s := r.First; s <= r.Last; s++ {
			m.rows[r.Stream] = append(m.rows[r.Stream], s)
		}
	}
	m.Absorb(spans)
	m.slots[a.Key] = true
}

func (m *model) reacquireChain() {
	m.reacquire(m.Owner)
}

// has says whether a seq is a row of the stream.
func (m *model) has(stream string) func(segment.Seq) bool {
	return func(s segment.Seq) bool {
		_, ok := slices.BinarySearch(m.rows[stream], s)
		return ok
	}
}

// settle moves a window of slots, or leaves an orphan at any step.
func (m *model) settle() {
	win, err := m.C.Window(m.Ctx, m.Chain, int64(1000*(1+m.r.IntN(4))))
	m.OK(err)
	if len(win.Slots) == 0 {
		return
	}
	byStream := map[string][]catalog.Ref{}
	for _, r := range win.Refs {
		byStream[r.Stream] = append(byStream[r.Stream], r)
	}
	for _, s := range slices.Sorted(maps.Keys(byStream)) {
		if m.r.IntN(4) > 0 {
			m.move(s, byStream[s], "settled")
		}
	}
	n, err := m.C.ResolveSettled(m.Ctx, m.Chain, m.SettleMarkers())
	m.OK(err)
	m.done["resolved"] += n
}

// gc merges refs of a stream that follow each other.
func (m *model) gc() {
	s := m.any()
	if s == "" {
		return
	}
	refs := m.Refs(s)
	if len(refs) == 0 {
		return
	}
	i := m.r.IntN(len(refs))
	if refs[i].Kind == catalog.RefLost {
		return
	}
	m.move(s, refs[i:min(len(refs), i+1+m.r.IntN(3))], "gc")
}

// move is one rewrite of the runs in refs: announced, perhaps never made, perhaps
// never committed, perhaps covering less.
func (m *model) move(stream string, refs []catalog.Ref, what string) {
	run := []catalog.Ref{refs[0]}
	for _, r := range refs[1:] {
		if r.PrevLast != run[len(run)-1].LastPos() || r.Kind == catalog.RefLost {
			break
		}
		run = append(run, r)
	}
	rev := int32(-1)
	for _, r := range run {
		rev = max(rev, r.Revision)
	}
	var key string
	for { // condemned and burned keys: derive the next revision
		rev++
		key = segment.StreamKey(stream, m.Chain.Epoch, run[0].First, uint32(rev))
		_, err := m.C.Announce(m.Ctx, catalog.Announce{Key: key, Class: segment.ClassStandard, Holder: m.Holder(), Nonce: "n", Deadline: orphanGrace / 2})
		if err == nil {
			break
		}
		m.Is(err, catalog.ErrConflict, "")
	}
	if m.r.IntN(6) == 0 {
		return // crash before the PUT
	}
	m.objects[key] = true
	if m.r.IntN(6) == 0 {
		return // crash before the commit
	}
	out := Output(key, rev, catalog.RefStream, run...)
	if rows := m.between(stream, run[0].First, out.New.Last); len(rows) > 1 && m.r.IntN(3) == 0 {
		out.New.Last = rows[m.r.IntN(len(rows)-1)]
		describe(&out.New, m.has(stream))
		m.done["truncated"]++
	}
	_, err := m.C.CommitRewrite(m.Ctx, catalog.Rewrite{Key: key, Nonce: "n", Runs: []catalog.Run{out}})
	m.OK(err)
	m.done[what]++
}

func (m *model) between(stream string, first, last segment.Seq) (out []segment.Seq) {
	for _, s := range m.rows[stream] {
		if first <= s && s <= last {
			out = append(out, s)
		}
	}
	return out
}

func (m *model) trim() {
	s := m.any()
	if s == "" || m.r.IntN(2) == 0 {
		return
	}
	var got catalog.Stream
	var err error
	if m.r.IntN(5) == 0 {
		got, err = m.C.DeleteStream(m.Ctx, s)
	} else {
		rows := m.rows[s]
		got, err = m.C.TrimStream(m.Ctx, s, segment.Pos{Epoch: 1, Seq: rows[m.r.IntN(len(rows))]})
	}
	m.OK(err)
	if got.LiveFrom.Less(m.live[s]) {
		m.T.Errorf("live_from of %s went back: %s then %s", s, m.live[s], got.LiveFrom)
	}
	m.live[s] = got.LiveFrom
}

func (m *model) teardown() {
	s := m.any()
	if s == "" {
		return
	}
	id := mustStream(m.World, s).ID
	p, err := m.C.WalkStream(m.Ctx, id, 1+m.r.IntN(5))
	m.OK(err)
	watch := p.Dead
	if p.Straddle != nil {
		watch = append(slices.Clone(watch), *p.Straddle)
	}
	m.OK(m.C.ArmWatchers(m.Ctx, watch))
	n, err := m.C.RetireRefs(m.Ctx, p.Dead)
	m.OK(err)
	m.done["retired"] += n
	m.countLost(p.Dead)
}

func (m *model) wait() { m.Clock.Advance(time.Duration(m.r.IntN(60)) * time.Second) }

// trimCheck is the duty, as 03 §7 says it.
func (m *model) trimCheck() {
	id := catalog.ChainID(m.Chain)
	mk, ok := m.Marker(catalog.DutyTrimCheck, id)
	if !ok || mk.Due.After(m.Clock.Now()) {
		return
	}
	row, err := m.C.AdvanceRewritten(m.Ctx, m.Chain, 0)
	m.OK(err)
	p, err := m.C.DueSlots(m.Ctx, m.Chain, 100)
	m.OK(err)
	if len(p.Named) > 0 {
		m.T.Errorf("condemned slots are named: %+v", p.Named)
	}
	if p.Due {
		for _, s := range p.Slots {
			delete(m.slots, segment.SlotKey(s.Chain, s.ID))
			m.done["slots trimmed"]++
		}
		row, err = m.C.AdvanceTrim(m.Ctx, m.Chain, row.Trimmed, row.Condemned)
		m.OK(err)
	}
	if row.Trimmed == row.Condemned && row.Rewritten > row.Condemned {
		_, err = m.C.CondemnSlots(m.Ctx, mk.MarkerRef, m.Chain, row.Condemned, row.Rewritten)
		m.OK(err)
	} else if row.Trimmed == row.Condemned {
		m.OK(m.C.Resolve(m.Ctx, mk.MarkerRef))
	} else {
		m.OK(m.C.Postpone(m.Ctx, mk.MarkerRef, row.CondemnedAt.Add(readGrace).Sub(m.Clock.Now()), ""))
	}
}

func (m *model) reap() {
	ms, err := m.C.TakeDue(m.Ctx, take(catalog.DutyReapCheck))
	m.OK(err)
	for _, mk := range ms {
		live, err := m.C.Liveness(m.Ctx, mk.ID)
		m.OK(err)
		dead := true
		for _, l := range live {
			dead = dead && l.Dead(l.LiveFrom)
		}
		switch {
		case !dead:
			m.OK(m.C.Resolve(m.Ctx, mk.MarkerRef))
		case !mk.Confirmed:
			m.OK(m.C.Confirm(m.Ctx, mk.MarkerRef))
		default:
			if err := m.C.CondemnKey(m.Ctx, mk.MarkerRef); err != nil {
				m.Is(err, catalog.ErrConflict, "") // dead refs still stand, or an intent does
				m.OK(m.C.Postpone(m.Ctx, mk.MarkerRef, time.Second, "named"))
				continue
			}
			delete(m.objects, mk.ID)
			m.OK(m.C.BurnKey(m.Ctx, []string{mk.ID}))
			m.done["reaped"]++
		}
	}
}

func (m *model) judge() {
	ms, err := m.C.TakeDue(m.Ctx, take(catalog.DutyOrphan))
	m.OK(err)
	for _, mk := range ms {
		v, in, err := m.C.CondemnIntent(m.Ctx, mk.MarkerRef)
		m.OK(err)
		if v != catalog.Condemned {
			continue
		}
		if in.State == catalog.IntentBurned {
			_, err = m.C.RemoveIntent(m.Ctx, mk.ID)
			m.OK(err)
			continue
		}
		delete(m.objects, mk.ID)
		m.OK(m.C.BurnIntent(m.Ctx, mk.ID))
		m.done["orphans"]++
	}
}

// check holds the invariants that the catalog alone can break.
func (m *model) check() {
	m.T.Helper()
	m.n++
	row := m.Row()
	if err := catalog.CheckCursors(&row); err != nil {
		m.T.Error(err)
	}
	l := &m.last // I6
	if row.Term < l.Term || row.AbsorbedEnd < l.AbsorbedEnd || row.Rewritten < l.Rewritten || row.Condemned < l.Condemned || row.Trimmed < l.Trimmed || row.NextSeq < l.NextSeq || row.WatermarkSeq < l.WatermarkSeq || row.WatermarkSegment < l.WatermarkSegment {
		m.T.Errorf("step %d: a cursor went back: %+v then %+v", m.n, *l, row)
	}
	m.last = row
	for _, s := range m.names() {
		m.checkStream(s)
	}
	m.checkWatched(&row)
}

// checkStream: every live row is served by one ref whose object stands (I1, I2), and
// the refs link without a hole.
func (m *model) checkStream(stream string) {
	m.T.Helper()
	live := catalog.EffectiveLiveFrom(m.live[stream], m.Chain, m.last.WatermarkSeq)
	var served []segment.Seq
	refs := m.Refs(stream)
	for i, r := range refs {
		if i > 0 && r.PrevLast != refs[i-1].LastPos() {
			m.T.Errorf("step %d: hole in %s before %s: prev_last %s", m.n, stream, r.FirstPos(), r.PrevLast)
		}
		if i == 0 && !r.PrevLast.Less(live) && r.PrevLast != (segment.Pos{}) {
			m.T.Errorf("step %d: %s begins at %s with prev_last %s, live_from %s", m.n, stream, r.FirstPos(), r.PrevLast, live)
		}
		want := r
		describe(&want, m.has(stream))
		if r.Rows != want.Rows || r.RowSum != want.RowSum {
			m.T.Errorf("step %d: ref %s..%s of %s has %d rows, sum %x; they are %d, sum %x", m.n, r.FirstPos(), r.LastPos(), stream, r.Rows, r.RowSum, want.Rows, want.RowSum)
		}
		if r.Kind == catalog.RefLost != (r.Key == "") {
			m.T.Errorf("step %d: ref %s..%s of %s is %s in %q", m.n, r.FirstPos(), r.LastPos(), stream, r.Kind, r.Key)
		}
		if r.Kind != catalog.RefLost && !m.slots[r.Key] && !m.objects[r.Key] {
			m.T.Errorf("step %d: %s of %s names %s, which was deleted", m.n, r.FirstPos(), stream, r.Key)
		}
		served = append(served, m.between(stream, r.First, r.Last)...)
	}
	above := func(s []segment.Seq) (out []segment.Seq) {
		for _, q := range s {
			if p := (segment.Pos{Epoch: 1, Seq: q}); !p.Less(live) {
				out = append(out, q)
			}
		}
		return out
	}
	if got, want := above(served), above(m.rows[stream]); !slices.Equal(got, want) {
		m.T.Errorf("step %d: %s serves %d live rows of %d", m.n, stream, len(got), len(want))
	}
}

// checkWatched: every object is named, watched, or announced (I3); a slot that a ref
// names owes a settle.
func (m *model) checkWatched(row *catalog.ChainRow) {
	m.T.Helper()
	all, err := m.C.RefsByKey(m.Ctx, nil, 0)
	m.OK(err)
	named := map[string]bool{}
	for _, l := range all {
		named[l.Key] = true
	}
	watched := map[string]bool{}
	for _, d := range []catalog.Duty{catalog.DutyReapCheck, catalog.DutyOrphan, catalog.DutySettle} {
		ms, err := m.C.MarkersOf(m.Ctx, d, "", 0)
		m.OK(err)
		for _, mk := range ms {
			watched[mk.ID] = true
		}
	}
	for key := range m.objects {
		if _, err := m.C.Intent(m.Ctx, key); !named[key] && !watched[key] && errors.Is(err, catalog.ErrNotFound) {
			m.T.Errorf("step %d: nothing watches %s", m.n, key)
		}
	}
	var transit int64
	for id := row.Rewritten; id < row.AbsorbedEnd; id++ {
		owes := watched[catalog.SettleID(m.Chain, id)]
		if named[segment.SlotKey(m.Chain, id)] && !owes {
			m.T.Errorf("step %d: slot %d is named and owes nothing", m.n, id)
		}
	}
	for id := segment.ID(1); id < row.AbsorbedEnd; id++ {
		if watched[catalog.SettleID(m.Chain, id)] {
			transit += 1000
		}
	}
	if transit != row.TransitBytes {
		m.T.Errorf("step %d: transit bytes %d, %d stand", m.n, row.TransitBytes, transit)
	}
}
