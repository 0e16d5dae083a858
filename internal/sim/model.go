package sim

import (
	"sort"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// model is what the clients know, and the one history that the absorbed slots make.
// Sim.applying guards it.
type model struct {
	rows      uint64
	byPayload map[string]*record
	records   []*record // in order of the attempts
	chains    map[segment.Chain]*history
	streams   map[string]*timeline
}

// record is a row that a client tried to append.
type record struct {
	payload string
	stream  string
	machine *machine
	life    int // of the machine's disk

	acked localtier.Ack // "": nobody was told that it is there
	chain segment.Chain // where it was said to be
	term  segment.Term
	seq   segment.Seq

	inHistory bool
	was       bool          // until the catalog was rolled back
	in        segment.Chain // where, and at
	at        segment.Seq
}

// history is a chain's rows, from seq 1 on.
type history struct {
	rows []past
	// waiting are rows acknowledged as local whose seqs are not absorbed yet.
	waiting map[segment.Seq][]*record
}

type past struct {
	stream string
	sum    uint64 // segment.RowSum
}

// timeline is a stream's rows in order, with the running total of their row sums.
type timeline struct {
	at    []segment.Pos
	chain []segment.Chain
	total []uint64 // total[i]: of the rows before i
}

func newModel() *model {
	return &model{byPayload: map[string]*record{}, chains: map[segment.Chain]*history{}, streams: map[string]*timeline{}}
}

func (m *model) chain(c segment.Chain) *history {
	h := m.chains[c]
	if h == nil {
		h = &history{waiting: map[segment.Seq][]*record{}}
		m.chains[c] = h
	}
	return h
}

func (m *model) stream(name string) *timeline {
	t := m.streams[name]
	if t == nil {
		t = &timeline{total: []uint64{0}}
		m.streams[name] = t
	}
	return t
}

func (t *timeline) add(at segment.Pos, c segment.Chain, sum uint64) {
	t.at, t.chain = append(t.at, at), append(t.chain, c)
	t.total = append(t.total, t.total[len(t.total)-1]+sum)
}

// find is the index of the first row at or after a position.
func (t *timeline) find(at segment.Pos) int {
	return sort.Search(len(t.at), func(i int) bool { return !t.at[i].Less(at) })
}

// span counts the rows from one position to another, inclusive, and adds their sums.
func (t *timeline) span(from, to segment.Pos) (rows uint64, sum uint64) {
	i, j := t.find(from), t.find(to.Next())
	if j <= i {
		return 0, 0
	}
	return uint64(j - i), t.total[j] - t.total[i]
}

// attempt makes rows that a client is about to append.
func (m *model) attempt(p *process, stream string, n, size int) []*record {
	p.sim.applying.Lock()
	defer p.sim.applying.Unlock()
	out := make([]*record, n)
	for i := range out {
		m.rows++
		// The number is of the client's own: two clients may come in either order.
		r := &record{payload: payloadOf(m.rows, size), stream: stream, machine: p.machine, life: p.machine.life}
		m.byPayload[r.payload] = r
		m.records = append(m.records, r)
		out[i] = r
	}
	return out
}
