package segment

import (
	"encoding/binary"
	"fmt"
	"math"
)

const (
	slotFence  = 1 << 0
	slotClosed = 1 << 1

	// minChunkBytes is the least that one entry of the chunk table takes.
	minChunkBytes = 2 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 4 + 8 + 1 + 1 + 1 + 8
)

// EncodeFooter encodes a footer. The chunk table is delta-coded from entry to
// entry, names by what they share with the one before: 50,000 small streams
// take about 2.5 MB. What a footer may not say is ErrInvalid.
func EncodeFooter(f *Footer) ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("%w: footer: %w", ErrInvalid, err)
	}
	b := make([]byte, 0, 256+len(f.Chunks)*2*minChunkBytes)
	var flags byte
	if f.Slot != nil && f.Slot.Fence {
		flags |= slotFence
	}
	if f.Slot != nil && f.Slot.Closed {
		flags |= slotClosed
	}
	b = append(b, byte(f.Kind), flags)
	b = append(b, f.Object[:]...)
	b = le.AppendUint64(b, uint64(f.Created))
	b = appendText(b, f.Writer)
	if f.Slot != nil {
		var err error
		if b, err = appendSlot(b, f.Slot); err != nil {
			return nil, err
		}
	}
	b = binary.AppendUvarint(b, uint64(len(f.Chunks)))
	var prev Chunk
	for i := range f.Chunks {
		b = appendChunk(b, &prev, &f.Chunks[i], f.Slot != nil)
		prev = f.Chunks[i]
	}
	if len(b) > math.MaxUint32 {
		return nil, fmt.Errorf("%w: footer of %d bytes", ErrTooLarge, len(b))
	}
	return b, nil
}

func appendSlot(b []byte, s *Slot) ([]byte, error) {
	consumers, err := sortedConsumers(s.Consumers)
	if err != nil {
		return nil, err
	}
	b = le.AppendUint32(b, uint32(s.Chain.Epoch))
	b = le.AppendUint32(b, uint32(s.Chain.Shard))
	b = le.AppendUint64(b, uint64(s.ID))
	b = le.AppendUint64(b, uint64(s.Base))
	b = le.AppendUint64(b, uint64(s.Next))
	b = le.AppendUint64(b, uint64(s.Term))
	b = le.AppendUint64(b, uint64(s.Length))
	b = le.AppendUint64(b, s.Digest)
	b = append(b, s.UUID[:]...)
	b = append(b, s.Prev[:]...)
	b = le.AppendUint64(b, uint64(s.Sealed))
	return appendConsumers(b, consumers), nil
}

func appendChunk(b []byte, prev, c *Chunk, slot bool) []byte {
	n := sharedPrefix(prev.Stream, c.Stream)
	b = binary.AppendUvarint(b, uint64(n))
	b = appendText(b, c.Stream[n:])
	b = appendVarint(b, int64(c.Epoch)-int64(prev.Epoch))
	b = appendVarint(b, int64(c.Shard)-int64(prev.Shard))
	b = appendVarint(b, int64(c.First-prev.First))
	b = binary.AppendUvarint(b, uint64(c.Last-c.First))
	b = binary.AppendUvarint(b, c.Rows)
	b = binary.AppendUvarint(b, uint64(c.Stored))
	b = binary.AppendUvarint(b, uint64(c.Raw))
	b = append(b, byte(c.Codec))
	b = le.AppendUint32(b, c.CRC)
	b = le.AppendUint64(b, c.Sum)
	b = appendVarint(b, c.MinTime-prev.MinTime)
	b = binary.AppendUvarint(b, uint64(c.MaxTime-c.MinTime))
	b = binary.AppendUvarint(b, uint64(c.Generation))
	b = le.AppendUint64(b, c.RowSum)
	if slot {
		b = appendOrdinals(b, c.Ordinals)
	}
	return b
}

// appendOrdinals writes each run as its distance from the end of the one before,
// doubled, plus one if its length follows; a run of one has none.
func appendOrdinals(b []byte, o Ordinals) []byte {
	b = binary.AppendUvarint(b, uint64(len(o)))
	end := uint32(0)
	for _, r := range o {
		d := uint64(r.First-end) << 1
		if r.Count > 1 {
			b = binary.AppendUvarint(b, d|1)
			b = binary.AppendUvarint(b, uint64(r.Count))
		} else {
			b = binary.AppendUvarint(b, d)
		}
		end = r.First + r.Count
	}
	return b
}

func sharedPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// DecodeFooter decodes and checks a footer. Every error is a *CorruptionError.
func DecodeFooter(b []byte) (*Footer, error) {
	r := newReader(b, "footer")
	f := &Footer{Kind: ObjectKind(r.u8())}
	flags := r.u8()
	if r.err == nil && (f.Kind < ObjSlot || f.Kind > ObjPack) {
		r.fail("unknown object kind %d", uint8(f.Kind))
	}
	if flags&^(slotFence|slotClosed) != 0 || flags != 0 && f.Kind != ObjSlot {
		r.fail("unknown flags %#x for a %s", flags, f.Kind)
	}
	f.Object = r.uuid()
	f.Created = int64(r.u64())
	f.Writer = string(r.text(MaxWriterVersion, "writer version"))
	if f.Kind == ObjSlot {
		f.Slot = readSlot(&r)
		f.Slot.Fence, f.Slot.Closed = flags&slotFence != 0, flags&slotClosed != 0
	}
	readChunks(&r, f)
	if err := r.done(); err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, corrupt(0, "footer: %v", err)
	}
	return f, nil
}

func readSlot(r *reader) *Slot {
	return &Slot{
		Chain:     Chain{Epoch(r.u32()), Shard(r.u32())},
		ID:        ID(r.u64()),
		Base:      Seq(r.u64()),
		Next:      Seq(r.u64()),
		Term:      Term(r.u64()),
		Length:    int64(r.u64()),
		Digest:    r.u64(),
		UUID:      r.uuid(),
		Prev:      r.uuid(),
		Sealed:    int64(r.u64()),
		Consumers: readConsumers(r),
	}
}

func readChunks(r *reader, f *Footer) {
	n := r.count(minChunkBytes, "chunks")
	if n == 0 {
		return
	}
	f.Chunks = make([]Chunk, n)
	var prev Chunk
	for i := range f.Chunks {
		c := &f.Chunks[i]
		readChunk(r, &prev, c, f.Slot != nil)
		if r.err != nil {
			return
		}
		prev = *c
	}
}

func readChunk(r *reader, prev, c *Chunk, slot bool) {
	c.Stream = readSharedName(r, prev.Stream)
	c.Epoch = Epoch(readDelta32(r, uint32(prev.Epoch), "epoch"))
	c.Shard = Shard(readDelta32(r, uint32(prev.Shard), "shard"))
	c.First = prev.First + Seq(r.varint())
	c.Last = c.First + Seq(r.uvarint())
	c.Rows = r.uvarint()
	c.Offset = prev.End()
	c.Stored = int64(r.upTo(math.MaxInt64, "stored length"))
	c.Raw = int64(r.upTo(ChunkRawMax, "raw length"))
	c.Codec = Codec(r.u8())
	c.CRC = r.u32()
	c.Sum = r.u64()
	c.MinTime = prev.MinTime + r.varint()
	c.MaxTime = c.MinTime + int64(r.uvarint())
	c.Generation = r.varU32("generation")
	c.RowSum = r.u64()
	if slot {
		c.Ordinals = readOrdinals(r)
	}
	if c.Stored > math.MaxInt64-c.Offset {
		r.fail("chunk ends beyond any object")
	}
}

// readSharedName reads a stream name as what it shares with the one before and
// the rest. The same name again costs no allocation.
func readSharedName(r *reader, prev string) string {
	n := r.upTo(uint64(len(prev)), "shared name length")
	rest := r.text(MaxStreamName, "stream name")
	if len(rest) == 0 && n == uint64(len(prev)) {
		return prev
	}
	if n+uint64(len(rest)) > MaxStreamName {
		r.fail("stream name of %d bytes, at most %d", n+uint64(len(rest)), MaxStreamName)
		return ""
	}
	name := prev[:n] + string(rest)
	if uint64(sharedPrefix(prev, name)) != n {
		r.fail("stream name shares more than %d bytes with the one before", n)
	}
	return name
}

func readDelta32(r *reader, prev uint32, what string) uint32 {
	v := r.varint()
	if v < -int64(prev) || v > math.MaxUint32-int64(prev) {
		r.fail("%s is out of range", what)
		return 0
	}
	return uint32(int64(prev) + v)
}

func readOrdinals(r *reader) Ordinals {
	n := r.count(1, "ordinal runs")
	if n == 0 {
		return nil
	}
	o := make(Ordinals, n)
	end := uint64(0)
	for i := range o {
		d := r.upTo(math.MaxUint32*2+1, "ordinal")
		count := uint64(1)
		if d&1 != 0 {
			if count = r.upTo(math.MaxUint32, "ordinal run"); count < 2 {
				r.fail("ordinal run of %d", count)
			}
		}
		first := end + d>>1
		if end = first + count; end > math.MaxUint32 || i > 0 && d>>1 == 0 {
			r.fail("ordinal run of %d at %d", count, first)
		}
		if r.err != nil {
			return nil
		}
		o[i] = OrdinalRun{uint32(first), uint32(count)}
	}
	return o
}
