package segment

import "container/list"

// Producers is what a chain remembers of its idempotent producers: the last
// append of each, in the order of use, MaxProducers at most. It is the same
// wherever it is followed: at the log, in recovery, over a slot. The zero value
// is empty. It may be used by one goroutine at a time.
type Producers struct {
	byID map[string]*list.Element // of *Producer
	used list.List                // least recently used first
}

// NewProducers takes over what a SegmentStart or index.json carries, least
// recently used first.
func NewProducers(ps []Producer) *Producers {
	s := &Producers{}
	for _, p := range ps {
		ApplyProducer(s, p)
	}
	return s
}

// Get is a producer's last append; it does not count as use.
func (s *Producers) Get(id string) (Producer, bool) {
	e, ok := s.byID[id]
	if !ok {
		return Producer{}, false
	}
	return *e.Value.(*Producer), true
}

// Len is how many are remembered.
func (s *Producers) Len() int { return s.used.Len() }

// List is all of them, least recently used first: what a SegmentStart carries.
func (s *Producers) List() []Producer {
	if s.used.Len() == 0 {
		return nil
	}
	out := make([]Producer, 0, s.used.Len())
	for e := s.used.Front(); e != nil; e = e.Next() {
		out = append(out, *e.Value.(*Producer))
	}
	return out
}

// ApplyProducer is what a batch frame of an idempotent producer does to what a
// chain remembers: it is the producer's last append, and the producer the most
// recently used one. Beyond MaxProducers the least recently used is forgotten.
func ApplyProducer(s *Producers, p Producer) {
	if e, ok := s.byID[p.ID]; ok {
		*e.Value.(*Producer) = p
		s.used.MoveToBack(e)
		return
	}
	if s.byID == nil {
		s.byID = make(map[string]*list.Element)
	}
	s.byID[p.ID] = s.used.PushBack(&p)
	if s.used.Len() > MaxProducers {
		oldest := s.used.Front()
		delete(s.byID, oldest.Value.(*Producer).ID)
		s.used.Remove(oldest)
	}
}

// BatchProducer reads of a batch frame's payload who appended it, and as what:
// false if the append was not an idempotent producer's.
func BatchProducer(p []byte) (Producer, bool, error) {
	if len(p) > 0 && p[0]&batchHasProducer == 0 {
		return Producer{}, false, nil
	}
	r := newReader(p, "batch")
	h := readBatchHead(&r)
	if r.err != nil {
		return Producer{}, false, r.err
	}
	return Producer{ID: string(h.producer), Sequence: h.sequence, First: h.first, Last: h.last()}, true, nil
}
