package segment

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// place is where a frame stands in its segment. With its entry in the order it
// takes 16 bytes: all that a Bundle remembers of a frame.
type place struct {
	off    uint32
	bytes  uint32
	stream uint32 // rank of its stream by name; 0 is the reserved stream ""
}

// Bundle is a sealed segment, verified and about to become a slot: its frames
// regrouped by stream. It holds the places of the frames, not their bytes.
type Bundle struct {
	src     io.ReaderAt
	slot    Slot
	places  []place  // by ordinal
	order   []uint32 // ordinals by stream, then by ordinal
	streams []string // by rank
}

// PlanBundle reads a sealed segment file of size bytes once, verifies every
// frame and the Seal, and plans its slot. What does not validate is a
// *CorruptionError: a sealed segment has no torn tail.
func PlanBundle(r io.ReaderAt, size int64) (*Bundle, error) {
	s, err := NewScanner(r, size)
	if err != nil {
		return nil, err
	}
	b := &Bundle{src: r}
	ranks := map[string]uint32{"": 0}
	names := []string{""}
	consumers := map[string]Seq{}
	for {
		f, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, unsealed(err, s)
		}
		p := place{off: uint32(f.Offset), bytes: uint32(f.Bytes())}
		if p.stream, err = planFrame(f, s, ranks, &names, consumers); err != nil {
			return nil, placed(err, s.uuid, s.start.ID, f.Offset)
		}
		b.places = append(b.places, p)
	}
	if s.Sealed() == nil {
		return nil, placed(corrupt(0, "the segment is not sealed"), s.uuid, s.start.ID, s.off)
	}
	b.identify(s, consumers)
	b.sort(names)
	return b, nil
}

// unsealed is the verdict on a frame that does not validate where a sealed
// segment should stand.
func unsealed(err error, s *Scanner) error {
	var inv *InvalidFrameError
	if errors.As(err, &inv) {
		return inv.Corruption(s.uuid, s.start.ID)
	}
	return err
}

// planFrame says which stream a frame goes to, and follows the consumers.
func planFrame(f Frame, s *Scanner, ranks map[string]uint32, names *[]string, consumers map[string]Seq) (uint32, error) {
	switch f.Kind {
	case KindBatch:
		h, rows := openBatch(f.Payload)
		if rows.r.err != nil {
			return 0, rows.r.err
		}
		rank, ok := ranks[string(h.stream)] // no allocation in a look-up
		if !ok {
			rank = uint32(len(*names))
			stream := string(h.stream)
			ranks[stream] = rank
			*names = append(*names, stream)
		}
		return rank, nil
	case KindStart:
		for _, c := range s.start.Consumers {
			consumers[c.Name] = c.Cursor
		}
	case KindConsumerCreate, KindAck, KindConsumerRemove:
		c, err := DecodeConsumer(f.Payload)
		if err != nil {
			return 0, err
		}
		ApplyConsumer(consumers, f.Kind, c)
	}
	return 0, nil
}

// ApplyConsumer is what a ConsumerCreate, Ack or ConsumerRemove frame does to the
// cursors of a chain's consumers. A cursor never goes back, and an
// acknowledgement of a consumer that was removed is forgotten.
func ApplyConsumer(cursors map[string]Seq, k Kind, c Consumer) {
	old, ok := cursors[c.Name]
	switch {
	case k == KindConsumerRemove:
		delete(cursors, c.Name)
	case k == KindConsumerCreate && !ok, k == KindAck && ok && c.Cursor > old:
		cursors[c.Name] = c.Cursor
	}
}

// ListConsumers lists cursors by name, as SegmentStarts and footers have them.
func ListConsumers(cursors map[string]Seq) []Consumer {
	out := make([]Consumer, 0, len(cursors))
	for name, cursor := range cursors {
		out = append(out, Consumer{name, cursor})
	}
	slices.SortFunc(out, func(x, y Consumer) int { return compareNames(x.Name, y.Name) })
	return out
}

// identify fills in what the footer says of the segment.
func (b *Bundle) identify(s *Scanner, consumers map[string]Seq) {
	st := s.Start()
	b.slot = Slot{
		Chain: st.Chain, ID: st.ID, Base: st.Base, Next: s.NextSeq(), Term: st.Term,
		Length: s.Offset(), Digest: s.Digest(), UUID: s.UUID(), Prev: st.Prev,
	}
	if len(consumers) > 0 {
		b.slot.Consumers = ListConsumers(consumers)
	}
}

// sort renumbers the streams by name and orders the frames by stream: a
// counting sort, which keeps the frames of a stream in their order.
func (b *Bundle) sort(names []string) {
	b.streams = slices.Clone(names)
	slices.Sort(b.streams)
	rank := make(map[string]uint32, len(names))
	for i, n := range b.streams {
		rank[n] = uint32(i)
	}
	renumber := make([]uint32, len(names))
	for i, n := range names {
		renumber[i] = rank[n]
	}
	at := make([]uint32, len(names)+1)
	for i := range b.places {
		b.places[i].stream = renumber[b.places[i].stream]
		at[b.places[i].stream+1]++
	}
	for i := 1; i < len(at); i++ {
		at[i] += at[i-1]
	}
	b.order = make([]uint32, len(b.places))
	for ordinal, p := range b.places {
		b.order[at[p.stream]] = uint32(ordinal)
		at[p.stream]++
	}
}

// Identity is what a slot of this segment says of it: all but the flags and the
// seal time, which the segment does not know.
func (b *Bundle) Identity() Slot {
	s := b.slot
	s.Consumers = slices.Clone(s.Consumers)
	return s
}

// Streams is how many streams have rows in the segment.
func (b *Bundle) Streams() int { return len(b.streams) - 1 }

// FenceOnly says that the segment holds a SegmentStart and a Seal, nothing else.
func (b *Bundle) FenceOnly() bool { return len(b.places) == 2 }

func compareNames(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Frames' offsets and lengths must fit a place.
const _ = uint32(math.MaxUint32 - MaxSegmentBytes)

var errFence = fmt.Errorf("%w: a fence is a segment of SegmentStart and Seal only", ErrInvalid)
