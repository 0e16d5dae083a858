package segment

import (
	"fmt"
	"strings"
)

// ChunkDescription is one entry of a chunk table, for people.
type ChunkDescription struct {
	Stream     string `json:"stream"`
	Chain      string `json:"chain"`
	First      Seq    `json:"first"`
	Last       Seq    `json:"last"`
	Rows       uint64 `json:"rows"`
	Offset     int64  `json:"offset"`
	Stored     int64  `json:"stored"`
	Raw        int64  `json:"raw"`
	Codec      string `json:"codec"`
	CRC        string `json:"crc"`
	Sum        string `json:"sum"`
	RowSum     string `json:"row_sum"`
	MinTime    string `json:"min_time"`
	MaxTime    string `json:"max_time"`
	Generation uint32 `json:"generation"`
	Frames     int64  `json:"frames,omitempty"` // slots only
}

// SlotDescription is what a slot says of its segment.
type SlotDescription struct {
	Chain     string     `json:"chain"`
	Segment   ID         `json:"segment"`
	Base      Seq        `json:"base"`
	Next      Seq        `json:"next"`
	Term      Term       `json:"term"`
	Fence     bool       `json:"fence"`
	Closed    bool       `json:"closed"`
	Length    int64      `json:"length"`
	Digest    string     `json:"digest"`
	UUID      string     `json:"uuid"`
	Prev      string     `json:"prev"`
	Sealed    string     `json:"sealed"`
	Consumers []Consumer `json:"consumers"`
}

// ObjectDescription is what `strandline inspect` says of an object, from its
// tail.
type ObjectDescription struct {
	Size        int64              `json:"size"`
	Kind        string             `json:"kind,omitempty"`
	Object      string             `json:"object,omitempty"`
	Created     string             `json:"created,omitempty"`
	Writer      string             `json:"writer,omitempty"`
	FooterBytes int64              `json:"footer_bytes"`
	Slot        *SlotDescription   `json:"slot,omitempty"`
	Rows        uint64             `json:"rows"`
	Raw         int64              `json:"raw"`
	Stored      int64              `json:"stored"`
	Count       int                `json:"chunks"`
	Chunks      []ChunkDescription `json:"list,omitempty"` // as many as were asked for
	Problem     string             `json:"problem,omitempty"`
}

// DescribeObject describes an object of size bytes from its last ones, listing
// at most list chunks. need > 0 asks for more of its end, as in OpenTail. What is
// wrong with the bytes is its Problem.
func DescribeObject(tail []byte, size int64, list int) (d *ObjectDescription, need int64, err error) {
	d = &ObjectDescription{Size: size}
	f, need, err := OpenTail(tail, size)
	switch {
	case need > 0:
		return nil, need, nil
	case err != nil && !IsStructural(err):
		return nil, 0, err
	case err != nil:
		d.Problem = problem(err)
		return d, 0, nil
	}
	d.Kind, d.Object, d.Created, d.Writer = f.Kind.String(), f.Object.String(), nanos(f.Created), f.Writer
	d.FooterBytes = size - TrailerBytes - f.ChunksEnd()
	d.Count = len(f.Chunks)
	if f.Slot != nil {
		d.Slot = describeSlot(f.Slot)
	}
	for i := range f.Chunks {
		c := &f.Chunks[i]
		d.Rows, d.Raw, d.Stored = d.Rows+c.Rows, d.Raw+c.Raw, d.Stored+c.Stored
		if i < list {
			d.Chunks = append(d.Chunks, describeChunk(c))
		}
	}
	return d, 0, nil
}

func describeSlot(s *Slot) *SlotDescription {
	return &SlotDescription{
		Chain: s.Chain.String(), Segment: s.ID, Base: s.Base, Next: s.Next, Term: s.Term,
		Fence: s.Fence, Closed: s.Closed, Length: s.Length, Digest: fmt.Sprintf("%016x", s.Digest),
		UUID: s.UUID.String(), Prev: s.Prev.String(), Sealed: nanos(s.Sealed), Consumers: s.Consumers,
	}
}

func describeChunk(c *Chunk) ChunkDescription {
	return ChunkDescription{
		Stream: c.Stream, Chain: Chain{c.Epoch, c.Shard}.String(), First: c.First, Last: c.Last, Rows: c.Rows,
		Offset: c.Offset, Stored: c.Stored, Raw: c.Raw, Codec: c.Codec.String(),
		CRC: fmt.Sprintf("%08x", c.CRC), Sum: fmt.Sprintf("%016x", c.Sum), RowSum: fmt.Sprintf("%016x", c.RowSum),
		MinTime: nanos(c.MinTime), MaxTime: nanos(c.MaxTime), Generation: c.Generation, Frames: c.Ordinals.Len(),
	}
}

// Text is the description in lines.
func (d *ObjectDescription) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s object of %d bytes\n", d.Kind, d.Size)
	line(&b, "object", d.Object)
	line(&b, "created", d.Created)
	line(&b, "writer", d.Writer)
	if s := d.Slot; s != nil {
		line(&b, "chain", s.Chain)
		line(&b, "segment", fmt.Sprintf("%d (%s), term %d, after %s", s.Segment, s.UUID, s.Term, s.Prev))
		line(&b, "seqs", fmt.Sprintf("%d to before %d", s.Base, s.Next))
		line(&b, "file", fmt.Sprintf("%d bytes, digest %s, sealed %s", s.Length, s.Digest, s.Sealed))
		line(&b, "flags", fmt.Sprintf("fence: %t, closed: %t", s.Fence, s.Closed))
		for _, c := range s.Consumers {
			line(&b, "consumer", fmt.Sprintf("%q at %d", c.Name, c.Cursor))
		}
	}
	if d.Problem == "" {
		line(&b, "content", fmt.Sprintf("%d rows in %d chunks, %d bytes stored of %d, footer of %d bytes", d.Rows, d.Count, d.Stored, d.Raw, d.FooterBytes))
	}
	line(&b, "PROBLEM", d.Problem)
	for _, c := range d.Chunks {
		fmt.Fprintf(&b, "%12d %9d of %-9d %-4s %s %d to %d, %d rows, stream %q\n",
			c.Offset, c.Stored, c.Raw, c.Codec, c.Chain, c.First, c.Last, c.Rows, c.Stream)
	}
	return b.String()
}
