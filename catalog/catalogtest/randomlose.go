package catalogtest

import "github.com/strandline/strandline/catalog"

// loseAny gives up a span of a stream, as if its object had proved to be gone. Its
// object stands, dead for this stream, and goes by the reap or with its slot.
func (m *model) loseAny() {
	s := m.any()
	if s == "" || m.r.IntN(4) > 0 {
		return
	}
	refs := m.Refs(s)
	if len(refs) == 0 {
		return
	}
	r := refs[m.r.IntN(len(refs))]
	if r.Kind == catalog.RefLost {
		return
	}
	lost := m.lose(r.Key, s)
	for i := range lost {
		Equal(m.T, "kind", lost[i].Kind, catalog.RefLost)
	}
	m.done["lost"]++
}

// countLost of refs that were retired, in this way or that.
func (m *model) countLost(refs []catalog.Ref) {
	for i := range refs {
		if refs[i].Kind == catalog.RefLost {
			m.done["lost and retired"]++
		}
	}
}
