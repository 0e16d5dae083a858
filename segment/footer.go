package segment

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// ObjectKind is what an object is.
type ObjectKind uint8

// The kinds of objects with a footer.
const (
	ObjSlot   ObjectKind = 1 // one sealed segment of one chain
	ObjStream ObjectKind = 2 // settled rows of one stream
	ObjPack   ObjectKind = 3 // settled rows of many small streams of one chain
)

func (k ObjectKind) String() string {
	switch k {
	case ObjSlot:
		return "slot"
	case ObjStream:
		return "stream"
	case ObjPack:
		return "pack"
	}
	return fmt.Sprintf("object(%d)", uint8(k))
}

// Codec is how a chunk is stored.
type Codec uint8

// The codecs.
const (
	CodecNone Codec = 0
	CodecZstd Codec = 1
)

func (c Codec) String() string {
	switch c {
	case CodecNone:
		return "none"
	case CodecZstd:
		return "zstd"
	}
	return fmt.Sprintf("codec(%d)", uint8(c))
}

// Footer is an object's own manifest.
type Footer struct {
	Kind    ObjectKind
	Object  UUID   // of this object; two uploads of one key differ in it
	Created int64  // Unix nanoseconds
	Writer  string // version of the program that wrote it
	Slot    *Slot  // slots only
	Chunks  []Chunk
}

// Slot is what a slot says of its segment.
type Slot struct {
	Chain     Chain
	ID        ID
	Base      Seq
	Next      Seq
	Term      Term
	Fence     bool // SegmentStart and Seal only, put there to stop an older owner
	Closed    bool // the fence that ends the chain
	Length    int64
	Digest    uint64 // XxHash64 of the whole segment file
	UUID      UUID
	Prev      UUID // segment before it
	Sealed    int64
	Consumers []Consumer // as they stand after the segment, by name
}

// Rows is how many rows the slot holds.
func (s *Slot) Rows() uint64 { return uint64(s.Next - s.Base) }

// Chunk is a contiguous range of an object with consecutive rows of one stream.
// The reserved stream "" (slots only) holds the file header and the frames that
// are not batches; it has no rows.
type Chunk struct {
	Stream           string
	Epoch            Epoch
	Shard            Shard
	First, Last      Seq // inclusive
	Rows             uint64
	Offset           int64
	Stored, Raw      int64
	Codec            Codec
	CRC              uint32 // CRC-32C of the stored bytes
	Sum              uint64 // XxHash64 of the stored bytes
	MinTime, MaxTime int64
	Generation       uint32 // of a pack: how often its rows were merged
	RowSum           uint64
	Ordinals         Ordinals // slots only: where its frames stood in the segment
}

// Tally is what the entry says of its rows.
func (c *Chunk) Tally() Tally {
	return Tally{c.First, c.Last, c.Rows, c.MinTime, c.MaxTime, c.RowSum, c.Raw}
}

// SetTally takes over what was counted.
func (c *Chunk) SetTally(t Tally) {
	c.First, c.Last, c.Rows, c.MinTime, c.MaxTime, c.RowSum, c.Raw = t.First, t.Last, t.Rows, t.MinTime, t.MaxTime, t.RowSum, t.Raw
}

// End is the offset after the chunk.
func (c *Chunk) End() int64 { return c.Offset + c.Stored }

// compareChunks orders the chunk table: by stream, epoch, first seq.
func compareChunks(a, b *Chunk) int {
	if c := strings.Compare(a.Stream, b.Stream); c != 0 {
		return c
	}
	return Pos{a.Epoch, a.First}.Compare(Pos{b.Epoch, b.First})
}

// check refuses what no footer may say. Encoder and decoder share it.
func (f *Footer) check() error {
	if f.Kind < ObjSlot || f.Kind > ObjPack {
		return fmt.Errorf("unknown object kind %d", uint8(f.Kind))
	}
	if (f.Kind == ObjSlot) != (f.Slot != nil) {
		return fmt.Errorf("%s with slot fields: %t", f.Kind, f.Slot != nil)
	}
	if len(f.Writer) > MaxWriterVersion {
		return fmt.Errorf("writer version of %d bytes, at most %d", len(f.Writer), MaxWriterVersion)
	}
	if f.Slot != nil {
		if err := f.Slot.check(); err != nil {
			return err
		}
	}
	var off, raw int64
	for i := range f.Chunks {
		c := &f.Chunks[i]
		raw += c.Raw
		if c.Offset != off {
			return fmt.Errorf("chunk %d at %d, %d follows", i, c.Offset, off)
		}
		if err := f.checkChunk(c); err != nil {
			return fmt.Errorf("chunk %d (stream %q): %w", i, c.Stream, err)
		}
		if i > 0 {
			if err := checkOrder(&f.Chunks[i-1], c); err != nil {
				return fmt.Errorf("chunk %d (stream %q): %w", i, c.Stream, err)
			}
		}
		if c.Stored > math.MaxInt64-off {
			return fmt.Errorf("chunk %d ends beyond any object", i)
		}
		off = c.End()
	}
	return f.checkWhole(raw)
}

// checkWhole looks at the chunk table as one: raw is the sum of raw lengths.
func (f *Footer) checkWhole(raw int64) error {
	switch n := len(f.Chunks); {
	case n == 0:
		return errors.New("no chunks")
	case f.Kind == ObjStream && f.Chunks[0].Stream != f.Chunks[n-1].Stream:
		return fmt.Errorf("a stream object with streams %q and %q", f.Chunks[0].Stream, f.Chunks[n-1].Stream)
	case f.Slot != nil && f.Chunks[0].Stream != "":
		return errors.New("a slot without its reserved chunk")
	case f.Slot != nil && raw != f.Slot.Length:
		return fmt.Errorf("chunks of %d raw bytes for a segment of %d", raw, f.Slot.Length)
	case f.Slot != nil && f.Slot.Fence && f.Chunks[n-1].Stream != "":
		return errors.New("a fence with rows")
	}
	return nil
}

func (s *Slot) check() error {
	switch {
	case s.ID == 0 || s.Base == 0 || s.Next < s.Base:
		return fmt.Errorf("segment %d holds seqs %d to before %d", s.ID, s.Base, s.Next)
	case s.Length < HeaderBytes || s.Length > MaxSegmentBytes:
		return fmt.Errorf("segment length %d", s.Length)
	case s.Fence && s.Base != s.Next:
		return errors.New("a fence holds no rows")
	case s.Closed && !s.Fence:
		return errors.New("only a fence closes a chain")
	}
	return nil
}

func (f *Footer) checkChunk(c *Chunk) error {
	switch {
	case c.Raw <= 0 || c.Raw > ChunkRawMax:
		return fmt.Errorf("raw length %d, 1 to %d", c.Raw, ChunkRawMax)
	case c.Stored <= 0 || c.Codec == CodecNone && c.Stored != c.Raw || c.Codec == CodecZstd && c.Stored >= c.Raw:
		return fmt.Errorf("%d bytes stored of %d raw with codec %s", c.Stored, c.Raw, c.Codec)
	case c.Codec > CodecZstd:
		return fmt.Errorf("unknown %s", c.Codec)
	}
	if f.Slot != nil {
		if err := f.Slot.checkChunk(c); err != nil {
			return err
		}
	} else if len(c.Ordinals) > 0 {
		return errors.New("ordinals outside a slot")
	}
	if c.Stream == "" && f.Slot != nil {
		if c.First|c.Last != 0 || c.Rows|c.RowSum != 0 || c.MinTime|c.MaxTime != 0 {
			return errors.New("the reserved chunk has no rows")
		}
		return nil
	}
	return c.checkRows()
}

func (s *Slot) checkChunk(c *Chunk) error {
	if c.Epoch != s.Chain.Epoch || c.Shard != s.Chain.Shard {
		return fmt.Errorf("of chain %08x.%08x in a slot of %s", uint32(c.Epoch), uint32(c.Shard), s.Chain)
	}
	if c.Stream != "" && (c.First < s.Base || c.Last >= s.Next) {
		return fmt.Errorf("seqs %d to %d in a slot of %d to before %d", c.First, c.Last, s.Base, s.Next)
	}
	n, end := int64(0), int64(0)
	for i, r := range c.Ordinals {
		// Runs that touch would be one run.
		if int64(r.First) < end || i > 0 && int64(r.First) == end || r.Count == 0 || int64(r.First)+int64(r.Count) > math.MaxUint32 {
			return fmt.Errorf("ordinals %d, %d more, out of order", r.First, r.Count)
		}
		n, end = n+int64(r.Count), int64(r.First)+int64(r.Count)
	}
	if n == 0 || n*FrameHeaderBytes > c.Raw {
		return fmt.Errorf("%d ordinals for %d raw bytes", n, c.Raw)
	}
	return nil
}

func (c *Chunk) checkRows() error {
	if err := checkAnyStream(c.Stream); err != nil {
		return err
	}
	switch {
	case c.First == 0 || c.Last < c.First || c.Last == math.MaxUint64:
		return fmt.Errorf("seqs %d to %d", c.First, c.Last)
	case c.Rows == 0 || c.Rows-1 > uint64(c.Last-c.First):
		return fmt.Errorf("%d rows in seqs %d to %d", c.Rows, c.First, c.Last)
	case c.MaxTime < c.MinTime:
		return fmt.Errorf("times %d to %d", c.MinTime, c.MaxTime)
	}
	return nil
}

// checkOrder holds the table's order, and that rows of a stream never overlap.
func checkOrder(a, b *Chunk) error {
	if a.Stream == "" && b.Stream == "" {
		if b.Ordinals[0].First <= lastOrdinal(a.Ordinals) {
			return errors.New("reserved chunks out of order")
		}
		return nil
	}
	if compareChunks(a, b) >= 0 {
		return fmt.Errorf("out of order after stream %q", a.Stream)
	}
	if a.Stream == b.Stream && a.Epoch == b.Epoch && b.First <= a.Last {
		return fmt.Errorf("begins at seq %d, the one before ends at %d", b.First, a.Last)
	}
	return nil
}
