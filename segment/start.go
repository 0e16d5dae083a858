package segment

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Start is the first frame of every segment: where it stands in its chain, and
// all that a reader of any surviving suffix must know of what came before.
type Start struct {
	Chain     Chain
	ID        ID // where the segment was opened; a slot's position is in its key
	Base      Seq
	Term      Term
	Prev      UUID  // the segment before it; zero for the first
	Created   int64 // Unix nanoseconds
	Consumers []Consumer
	Producers []Producer // least recently used first
}

// Seal is the last frame of a sealed segment.
type Seal struct {
	Frames uint32 // before this one, SegmentStart included
	Next   Seq    // of the chain, after this segment
	Digest uint64 // XxHash64 of every byte before the Seal frame's header
}

const (
	startVersion     = 1
	sealVersion      = 1
	sealBytes        = 24
	minConsumerBytes = 3 // name length, one byte of it, cursor
	minProducerBytes = 5
)

// AppendStart appends a SegmentStart frame's payload. Consumers are written by
// name, whatever order they come in.
func AppendStart(dst []byte, s *Start) ([]byte, error) {
	if s.ID == 0 || s.Base == 0 {
		return dst, fmt.Errorf("%w: segment %d with base seq %d", ErrInvalid, s.ID, s.Base)
	}
	consumers, err := sortedConsumers(s.Consumers)
	if err != nil {
		return dst, err
	}
	if err := checkProducers(s.Producers); err != nil {
		return dst, err
	}
	dst = append(dst, startVersion, 0, 0, 0)
	dst = le.AppendUint32(dst, uint32(s.Chain.Epoch))
	dst = le.AppendUint32(dst, uint32(s.Chain.Shard))
	dst = le.AppendUint64(dst, uint64(s.ID))
	dst = le.AppendUint64(dst, uint64(s.Base))
	dst = le.AppendUint64(dst, uint64(s.Term))
	dst = append(dst, s.Prev[:]...)
	dst = le.AppendUint64(dst, uint64(s.Created))
	dst = appendConsumers(dst, consumers)
	dst = binary.AppendUvarint(dst, uint64(len(s.Producers)))
	for _, p := range s.Producers {
		dst = appendText(dst, p.ID)
		dst = binary.AppendUvarint(dst, p.Sequence)
		dst = binary.AppendUvarint(dst, uint64(p.First))
		dst = binary.AppendUvarint(dst, uint64(p.Last-p.First))
	}
	return dst, nil
}

// DecodeStart reads a SegmentStart frame's payload.
func DecodeStart(p []byte) (Start, error) {
	r := newReader(p, "segment start")
	readVersion(&r, startVersion)
	s := Start{
		Chain:   Chain{Epoch(r.u32()), Shard(r.u32())},
		ID:      ID(r.u64()),
		Base:    Seq(r.u64()),
		Term:    Term(r.u64()),
		Prev:    r.uuid(),
		Created: int64(r.u64()),
	}
	if r.err == nil && (s.ID == 0 || s.Base == 0) {
		r.fail("segment %d with base seq %d", s.ID, s.Base)
	}
	s.Consumers = readConsumers(&r)
	s.Producers = readProducers(&r)
	return s, r.done()
}

// readVersion reads a version byte and three bytes of zero.
func readVersion(r *reader, want byte) {
	if v := r.u8(); r.err == nil && v != want {
		e := badVersion(int64(r.off-1), r.what, uint64(v), uint64(want))
		r.err, r.b = e, nil
		return
	}
	if p := r.take(3); p != nil && p[0]|p[1]|p[2] != 0 {
		r.fail("reserved bytes are % x, 0 wanted", p)
	}
}

// AppendSeal appends a Seal frame's payload.
func AppendSeal(dst []byte, s Seal) []byte {
	dst = append(dst, sealVersion, 0, 0, 0)
	dst = le.AppendUint32(dst, s.Frames)
	dst = le.AppendUint64(dst, uint64(s.Next))
	return le.AppendUint64(dst, s.Digest)
}

// DecodeSeal reads a Seal frame's payload.
func DecodeSeal(p []byte) (Seal, error) {
	r := newReader(p, "seal")
	readVersion(&r, sealVersion)
	s := Seal{Frames: r.u32(), Next: Seq(r.u64()), Digest: r.u64()}
	if r.err == nil && (s.Frames == 0 || s.Next == 0) {
		r.fail("%d frames, next seq %d", s.Frames, s.Next)
	}
	return s, r.done()
}

// sortedConsumers checks consumers and returns them by name.
func sortedConsumers(cs []Consumer) ([]Consumer, error) {
	if len(cs) > MaxConsumers {
		return nil, fmt.Errorf("%w: %d consumers, at most %d", ErrTooLarge, len(cs), MaxConsumers)
	}
	byName := func(a, b Consumer) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(cs, byName) {
		cs = slices.Clone(cs)
		slices.SortFunc(cs, byName)
	}
	for i, c := range cs {
		if err := CheckConsumer(c.Name); err != nil {
			return nil, fmt.Errorf("consumer: %w", err)
		}
		if i > 0 && cs[i-1].Name == c.Name {
			return nil, fmt.Errorf("consumer: %w", &NameError{c.Name, "given twice"})
		}
	}
	return cs, nil
}

func appendConsumers(dst []byte, cs []Consumer) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(cs)))
	for _, c := range cs {
		dst = appendText(dst, c.Name)
		dst = binary.AppendUvarint(dst, uint64(c.Cursor))
	}
	return dst
}

func readConsumers(r *reader) []Consumer {
	n := r.count(minConsumerBytes, "consumers")
	if n > MaxConsumers {
		r.fail("%d consumers, at most %d", n, MaxConsumers)
	}
	if n == 0 || r.err != nil {
		return nil
	}
	cs := make([]Consumer, 0, n)
	for i := range n {
		c := Consumer{Name: string(r.text(MaxConsumerName, "consumer name")), Cursor: Seq(r.uvarint())}
		if r.err != nil {
			return nil
		}
		if err := CheckConsumer(c.Name); err != nil {
			r.fail("consumer: %v", err)
		}
		if i > 0 && cs[i-1].Name >= c.Name {
			r.fail("consumer %q stands after %q", c.Name, cs[i-1].Name)
		}
		cs = append(cs, c)
	}
	return cs
}

func checkProducers(ps []Producer) error {
	if len(ps) > MaxProducers {
		return fmt.Errorf("%w: %d producers, at most %d", ErrTooLarge, len(ps), MaxProducers)
	}
	for _, p := range ps {
		if err := CheckProducer(p.ID); err != nil {
			return fmt.Errorf("producer: %w", err)
		}
		if p.First == 0 || p.Last < p.First {
			return fmt.Errorf("%w: producer %q got rows %d to %d", ErrInvalid, p.ID, p.First, p.Last)
		}
	}
	return nil
}

func readProducers(r *reader) []Producer {
	n := r.count(minProducerBytes, "producers")
	if n > MaxProducers {
		r.fail("%d producers, at most %d", n, MaxProducers)
	}
	if n == 0 || r.err != nil {
		return nil
	}
	ps := make([]Producer, 0, n)
	for range n {
		p := Producer{ID: string(r.text(MaxProducerName, "producer id")), Sequence: r.uvarint(), First: Seq(r.uvarint())}
		p.Last = p.First + Seq(r.uvarint())
		if r.err != nil {
			return nil
		}
		if err := CheckProducer(p.ID); err != nil {
			r.fail("producer: %v", err)
		}
		if p.First == 0 || p.Last < p.First {
			r.fail("producer %q got rows %d to %d", p.ID, p.First, p.Last)
		}
		ps = append(ps, p)
	}
	return ps
}
