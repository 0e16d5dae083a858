package localtier

import (
	"context"
	"fmt"
	"slices"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// chunkWindow is how much of a slot one GET asks for: chunks are many and small where
// streams are.
const chunkWindow = 16 << 20

// slotChunks reads a slot's chunks, many at a time.
type slotChunks struct {
	ctx    context.Context // of one walk through the slot
	store  *objstore.Store
	key    string
	footer *segment.Footer
	from   int64 // of window in the object
	window []byte
}

// raw is the raw bytes of chunk i, the caller's to keep.
func (c *slotChunks) raw(i int) ([]byte, error) {
	chunk := &c.footer.Chunks[i]
	if chunk.Offset < c.from || chunk.End() > c.from+int64(len(c.window)) {
		if err := c.read(i); err != nil {
			return nil, err
		}
	}
	stored := c.window[chunk.Offset-c.from:][:chunk.Stored]
	raw, err := segment.DecodeChunk(chunk, stored)
	if err == nil && chunk.Codec == segment.CodecNone {
		raw = slices.Clone(raw) // it is a part of the window
	}
	return raw, err
}

// read fills the window with chunk i and as many after it as fit.
func (c *slotChunks) read(i int) error {
	first, end := &c.footer.Chunks[i], c.footer.Chunks[i].End()
	for _, next := range c.footer.Chunks[i+1:] {
		if next.End()-first.Offset > chunkWindow {
			break
		}
		end = next.End()
	}
	window, _, err := c.store.ReadRange(c.ctx, c.key, first.Offset, end-first.Offset)
	if err != nil {
		return fmt.Errorf("read the chunks of %s: %w", c.key, err)
	}
	c.from, c.window = first.Offset, window
	return nil
}

// start is the segment's SegmentStart: the first frame of the first chunk.
func (c *slotChunks) start() (segment.Start, error) {
	raw, err := c.raw(0)
	if err != nil {
		return segment.Start{}, err
	}
	if len(raw) < segment.HeaderBytes {
		return segment.Start{}, &segment.CorruptionError{Reason: fmt.Sprintf("the first chunk has %d bytes", len(raw))}
	}
	f, _, err := segment.ParseChunkFrame(raw[segment.HeaderBytes:])
	if err != nil {
		return segment.Start{}, err
	}
	if f.Kind != segment.KindStart {
		return segment.Start{}, &segment.CorruptionError{Offset: segment.HeaderBytes, Reason: fmt.Sprintf("the first frame is a %s", f.Kind)}
	}
	return segment.DecodeStart(f.Payload)
}
