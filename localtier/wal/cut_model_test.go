package wal_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// entry is one frame of a log, as its client knows it.
type entry struct {
	kind     segment.Kind
	seg      segment.ID
	stream   string
	first    segment.Seq
	payloads []string
	consumer segment.Consumer
	producer segment.Producer
}

func (e entry) String() string {
	if e.kind == segment.KindBatch {
		return fmt.Sprintf("batch of %q at %d in segment %d: %s", e.stream, e.first, e.seg, brief(e.payloads))
	}
	return fmt.Sprintf("%v of %s at %d in segment %d", e.kind, e.consumer.Name, e.consumer.Cursor, e.seg)
}

func (e entry) same(f entry) bool {
	return e.kind == f.kind && e.seg == f.seg && e.stream == f.stream && e.first == f.first &&
		e.consumer == f.consumer && e.producer == f.producer && slices.Equal(e.payloads, f.payloads)
}

// model is what may stand on the disk: one of several logs, each with at least
// its first kept entries. There is more than one only after a write was taken
// back and until something was acknowledged in its place: the pages of the
// refused write may have reached the disk, of which nobody was told.
type model struct {
	log       []entry   // what the client believes
	others    [][]entry // what a boot may find instead
	kept      int       // acknowledged, or shown by a replay
	opened    int       // what an open found: the log does not take that back
	removable segment.ID
	asked     []wal.Offset // checkpoints, in the order in which they were asked for
	told      int          // how many of asked are surely durable
	reclaim   segment.ID   // asked for
	reclaimed segment.ID   // surely durable
}

// carriedState is what every SegmentStart repeats.
type carriedState struct {
	cursors   map[string]segment.Seq
	producers *segment.Producers
}

func carriedOf(log []entry) carriedState {
	c := carriedState{map[string]segment.Seq{}, &segment.Producers{}}
	for _, e := range log {
		c.apply(e)
	}
	return c
}

func (c carriedState) apply(e entry) {
	switch {
	case e.kind != segment.KindBatch:
		segment.ApplyConsumer(c.cursors, e.kind, e.consumer)
	case e.producer.ID != "":
		segment.ApplyProducer(c.producers, e.producer)
	}
}

func (c carriedState) consumers() (out []segment.Consumer) {
	for _, name := range slices.Sorted(maps.Keys(c.cursors)) {
		out = append(out, segment.Consumer{Name: name, Cursor: c.cursors[name]})
	}
	return out
}

func (c carriedState) want(consumers []segment.Consumer, producers []segment.Producer) error {
	if slices.Equal(consumers, c.consumers()) && slices.Equal(producers, c.producers.List()) {
		return nil
	}
	return fmt.Errorf("carries %v and %v, want %v and %v", consumers, producers, c.consumers(), c.producers.List())
}

func nextOf(log []entry) segment.Seq {
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].kind == segment.KindBatch {
			return log[i].first + segment.Seq(len(log[i].payloads))
		}
	}
	return 1
}

// ack notes that log[:n] is durable.
func (m *model) ack(n int) {
	if n > m.kept {
		m.kept, m.others = n, nil
	}
}

// takenBack notes that everything appended since was refused, and may yet be
// found.
func (m *model) takenBack() {
	m.others = append(m.others, slices.Clone(m.log))
	m.log = m.log[:max(m.kept, m.opened)]
}

// shown holds a replay against the model: it is one of the logs, without what
// housekeeping was let remove, up to kept or further. From here on all of it is
// kept.
func (m *model) shown(r *replayed) error {
	var faults []string
	for _, log := range append([][]entry{m.log}, m.others...) {
		end, err := m.matches(log, r)
		if err == nil {
			m.log, m.others, m.kept, m.opened = log[:end:end], nil, end, end
			return nil
		}
		faults = append(faults, err.Error())
	}
	return fmt.Errorf("the replay is none of what may stand here: %s", strings.Join(faults, "; or: "))
}

// matches says how many entries of log the replay shows.
func (m *model) matches(log []entry, r *replayed) (end int, err error) {
	n := 0
	for _, e := range log {
		switch {
		case !r.segments[e.seg] && e.seg <= m.removable:
		case n == len(r.entries):
			if end < m.kept {
				return 0, fmt.Errorf("%v was acknowledged and is gone, %d entries survive of %d", e, n, m.kept)
			}
			return end, m.checkStarts(log[:end], r)
		case !e.same(r.entries[n]):
			return 0, fmt.Errorf("entry %d is %v, want %v", n, r.entries[n], e)
		default:
			n++
		}
		end++
	}
	if n < len(r.entries) {
		return 0, fmt.Errorf("%v was never appended", r.entries[n])
	}
	return end, m.checkStarts(log[:end], r)
}

// checkStarts: every SegmentStart knows what came before it, and none stands of
// a segment that was reclaimed.
func (m *model) checkStarts(log []entry, r *replayed) error {
	for _, s := range r.starts {
		before := log
		if i := slices.IndexFunc(log, func(e entry) bool { return e.seg >= s.ID }); i >= 0 {
			before = log[:i]
		}
		if s.Base != nextOf(before) {
			return fmt.Errorf("segment %d starts at %d, want %d", s.ID, s.Base, nextOf(before))
		}
		if err := carriedOf(before).want(s.Consumers, s.Producers); err != nil {
			return fmt.Errorf("segment %d: %w", s.ID, err)
		}
		if s.ID <= m.reclaimed {
			return fmt.Errorf("segment %d was read, segments through %d were reclaimed", s.ID, m.reclaimed)
		}
	}
	return nil
}

// trusted takes in an open that read nothing through: st says how far the log
// goes, and none of that is durable for sure yet.
func (m *model) trusted(st wal.State) error {
	end := 0
	for end < len(m.log) && m.log[end].seg < st.Segment {
		end++
	}
	if st.Frames > 0 {
		end += int(st.Frames) - 1
	}
	if end < m.kept || end > len(m.log) {
		return fmt.Errorf("opened with %d of %d entries, %d were acknowledged", end, len(m.log), m.kept)
	}
	if end < len(m.log) { // refused before, and on no disk that was read
		m.others = append(m.others, slices.Clone(m.log))
	}
	m.log, m.opened = m.log[:end:end], end
	return nil
}

// checkpointed holds what a log says of its CHECKPOINT against what was asked.
func (m *model) checkpointed(o wal.Offset, has bool) error {
	if !has {
		if m.told > 0 {
			return fmt.Errorf("CHECKPOINT is gone, %v was written", m.asked[m.told-1])
		}
		return nil
	}
	i := slices.IndexFunc(m.asked, func(a wal.Offset) bool { return a.UUID == o.UUID && a.Byte == o.Byte })
	if i < 0 {
		return fmt.Errorf("CHECKPOINT is %v, which nobody asked for", o)
	}
	if m.told > 0 && m.asked[i].Compare(m.asked[m.told-1]) < 0 {
		return fmt.Errorf("CHECKPOINT is %v, %v was durable", o, m.asked[m.told-1])
	}
	return nil
}

// replayed is a sink that keeps entries.
type replayed struct {
	entries  []entry
	starts   []segment.Start
	segments map[segment.ID]bool
	last     wal.Offset
}

func (r *replayed) take(p wal.Replayed) error {
	if p.Offset.Compare(r.last) <= 0 {
		return fmt.Errorf("offset %v follows %v", p.Offset, r.last)
	}
	r.last = p.Offset
	e := entry{kind: p.Frame.Kind, seg: p.Offset.Segment}
	switch p.Frame.Kind {
	case segment.KindStart:
		r.segments[e.seg] = true
		r.starts = append(r.starts, *p.Start)
		return nil
	case segment.KindSeal:
		return nil
	case segment.KindBatch:
		b, err := segment.DecodeBatch(p.Frame.Payload)
		if err != nil {
			return err
		}
		e.stream, e.first = strings.Clone(b.Stream), b.First
		if b.Producer != "" {
			e.producer = segment.Producer{ID: strings.Clone(b.Producer), Sequence: b.Sequence, First: b.First, Last: b.Last()}
		}
		for _, row := range b.Rows {
			e.payloads = append(e.payloads, string(row.Payload))
		}
	default:
		c, err := segment.DecodeConsumer(p.Frame.Payload)
		if err != nil {
			return err
		}
		c.Name = strings.Clone(c.Name)
		e.consumer = c
	}
	r.entries = append(r.entries, e)
	return nil
}
