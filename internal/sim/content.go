package sim

import (
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/strandline/strandline/segment"
)

// content is what an object holds, decoded once when it was written.
type content struct {
	etag    string
	size    int64
	digest  uint64 // of its bytes
	footer  *segment.Footer
	streams map[string]*timeline
	rows    []slotRow // of a slot, by seq
}

type slotRow struct {
	seq     segment.Seq
	stream  string
	sum     uint64
	payload string
}

func digest(body []byte) uint64 { return xxhash.Sum64(body) }

// decode reads an object with the code that every reader uses.
func decode(body []byte) (*content, error) {
	f, need, err := segment.OpenTail(body, int64(len(body)))
	if err != nil || need > 0 {
		return nil, fmt.Errorf("footer (%d bytes more needed): %w", need, err)
	}
	out := &content{footer: f, streams: map[string]*timeline{}}
	for i := range f.Chunks {
		if c := &f.Chunks[i]; c.Stream != "" {
			if err := out.chunk(c, body[c.Offset:c.End()]); err != nil {
				return nil, fmt.Errorf("chunk of %q at seq %d: %w", c.Stream, c.First, err)
			}
		}
	}
	slices.SortFunc(out.rows, func(a, b slotRow) int { return int(a.seq) - int(b.seq) })
	return out, nil
}

func (o *content) chunk(c *segment.Chunk, stored []byte) error {
	raw, err := segment.DecodeChunk(c, stored)
	if err != nil {
		return err
	}
	t := o.streams[c.Stream]
	if t == nil {
		t = &timeline{total: []uint64{0}}
		o.streams[c.Stream] = t
	}
	for b, err := range segment.Frames(raw) {
		if err != nil {
			return err
		}
		for i, r := range b.Rows {
			r.Seq = b.First + segment.Seq(i)
			sum := segment.RowSum(r)
			t.add(segment.Pos{Epoch: c.Epoch, Seq: r.Seq}, segment.Chain{Epoch: c.Epoch, Shard: c.Shard}, sum)
			if o.footer.Kind == segment.ObjSlot {
				o.rows = append(o.rows, slotRow{r.Seq, c.Stream, sum, string(r.Payload)})
			}
		}
	}
	return nil
}
