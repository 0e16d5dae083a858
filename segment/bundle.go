package segment

import (
	"fmt"
	"io"
)

// BundleOptions is what a slot says beyond its segment.
type BundleOptions struct {
	Object  UUID
	Created int64  // Unix nanoseconds
	Writer  string // version of the program
	Sealed  int64  // when the segment was sealed
	ID      ID     // the slot's position; 0 means where the segment was opened
	Fence   bool
	Closed  bool
}

// WriteTo writes the slot's object, chunk by chunk: it holds one raw chunk and
// its compressed form, whatever the segment's size. The same bundle may be
// written again.
func (b *Bundle) WriteTo(w io.Writer, opt BundleOptions) (*Footer, error) {
	if (opt.Fence || opt.Closed) && !b.FenceOnly() {
		return nil, errFence
	}
	slot := b.Identity()
	slot.Fence, slot.Closed, slot.Sealed = opt.Fence, opt.Closed, opt.Sealed
	if opt.ID != 0 {
		slot.ID = opt.ID
	}
	f := &Footer{Kind: ObjSlot, Object: opt.Object, Created: opt.Created, Writer: opt.Writer, Slot: &slot}
	c := bundleChunk{b: b, o: NewObjectWriter(w, f)}
	// The file header leads the first reserved chunk.
	c.raw = AppendHeader(c.raw, slot.UUID)
	for i := 0; i < len(b.order); {
		n, err := c.fill(b.order[i:])
		if err != nil {
			return nil, err
		}
		if err := c.flush(); err != nil {
			return nil, err
		}
		i += n
	}
	return c.o.Finish()
}

// bundleChunk gathers one chunk of a bundle.
type bundleChunk struct {
	b        *Bundle
	o        *ObjectWriter
	raw      []byte
	stream   uint32
	ordinals Ordinals
	tally    tallier
}

// fill takes frames of one stream off the front of order, up to the chunk's
// target, and says how many. Frames that lie side by side are read at once.
func (c *bundleChunk) fill(order []uint32) (n int, err error) {
	c.stream = c.b.places[order[0]].stream
	target := c.o.RawTarget(c.b.streams[c.stream])
	for n < len(order) {
		k, bytes := c.run(order[n:], target, n == 0)
		if k == 0 {
			break
		}
		if err := c.read(order[n:n+k], bytes); err != nil {
			return 0, err
		}
		n += k
	}
	return n, nil
}

// run counts how many frames at the front of order lie side by side and fit
// what is left of the chunk. The first frame of a chunk always fits.
func (c *bundleChunk) run(order []uint32, target int64, first bool) (n int, bytes int64) {
	next := c.b.places[order[0]].off
	for _, ord := range order {
		p := c.b.places[ord]
		fits := int64(len(c.raw))+bytes+int64(p.bytes) <= target || first && n == 0
		if p.stream != c.stream || p.off != next || !fits {
			break
		}
		n, bytes, next = n+1, bytes+int64(p.bytes), p.off+p.bytes
	}
	return n, bytes
}

// read appends the frames of a run and verifies each again: what is published
// is what was checked, also if the disk says something else the second time.
func (c *bundleChunk) read(run []uint32, bytes int64) error {
	at, off := len(c.raw), int64(c.b.places[run[0]].off)
	c.raw = append(c.raw, make([]byte, bytes)...)
	if err := readFull(c.b.src, c.raw[at:], off); err != nil {
		return err
	}
	for _, ord := range run {
		f, n, err := ParseFrame(c.raw[at:], c.b.slot.UUID, off)
		if err != nil {
			return chunkFault(err)
		}
		if (f.Kind == KindBatch) != (c.stream != 0) {
			return corrupt(off, "the %s frame here has changed since it was planned", f.Kind)
		}
		if f.Kind == KindBatch {
			if err := c.tally.add(f.Payload); err != nil {
				return placed(err, c.b.slot.UUID, c.b.slot.ID, off)
			}
		}
		c.ordinals = c.ordinals.Add(ord)
		at, off = at+n, off+int64(n)
	}
	return nil
}

// flush writes the gathered chunk and makes room for the next.
func (c *bundleChunk) flush() error {
	s := &c.b.slot
	meta := Chunk{Stream: c.b.streams[c.stream], Epoch: s.Chain.Epoch, Shard: s.Chain.Shard, Ordinals: c.ordinals}
	meta.SetTally(c.tally.Tally)
	if err := c.o.AddChunk(meta, c.raw); err != nil {
		return fmt.Errorf("bundle segment %d: %w", uint64(s.ID), err)
	}
	c.raw, c.ordinals, c.tally = c.raw[:0], nil, tallier{}
	return nil
}
