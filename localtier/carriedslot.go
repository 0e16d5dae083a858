package localtier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// fromSlot takes the state of a chain whose directory is gone: the consumers that the
// chain row has, and the producers as of its last absorbed slot. row is the chain's after
// all that stands was absorbed, and before the fence of the taker.
//
// A slot that was trimmed has its producers forgotten with it: nil. So has one that
// cannot be read as a slot; the error is structural then, the state stands without
// them, and it is for the caller to go on and tell. After any other error nothing is
// known: take the chain again.
func (c *carried) fromSlot(ctx context.Context, b absorb.Bucket, row catalog.ChainRow) error {
	producers, err := lastProducers(ctx, b, row)
	if err != nil && !segment.IsStructural(err) {
		return fmt.Errorf("read the chain's producers: %w", err)
	}
	c.restart(row.Consumers, producers)
	return err
}

// producerWalk bounds how many void slots and fences are passed on the way back.
const producerWalk = 64

// lastProducers walks back from absorbed_end to the last slot that has something to
// say: void slots are none of the history, and a fence adds nothing to what stands
// before it, unless it was given it.
func lastProducers(ctx context.Context, b absorb.Bucket, row catalog.ChainRow) ([]segment.Producer, error) {
	want := row.LastUUID
	var damage error
	lowest := max(row.Trimmed, 1, row.AbsorbedEnd-min(row.AbsorbedEnd, producerWalk))
	for id := row.AbsorbedEnd - 1; id >= lowest && want != (segment.UUID{}); id-- {
		slot, err := absorb.Read(ctx, b, row.Chain, id)
		switch {
		case errors.Is(err, objstore.ErrNotFound):
			return nil, nil // trimmed meanwhile
		case segment.IsStructural(err):
			damage = errors.Join(damage, err) // unless it is a void one
			continue
		case err != nil:
			return nil, err
		case slot.Footer.Slot.UUID != want:
			continue // void
		}
		p := slotProducers{store: b.Set.First(), slot: slot, last: make(map[string]producerAt)}
		known, err := p.read(ctx)
		if err != nil || known != nil || !slot.Footer.Slot.Fence {
			return known, err
		}
		want, damage = slot.Footer.Slot.Prev, nil
	}
	return nil, damage
}

// slotProducers gathers the producers of one slot. A slot is a permutation of its
// segment: frames come by stream, and their ordinals say in which order they stood.
type slotProducers struct {
	store *objstore.Store
	slot  absorb.Standing
	start []segment.Producer
	last  map[string]producerAt
}

type producerAt struct {
	segment.Producer
	ordinal uint32 // of its last batch
}

// read goes through the slot chunk by chunk; one is held at a time, and the window
// that it came from.
func (p *slotProducers) read(ctx context.Context) ([]segment.Producer, error) {
	chunks := slotChunks{ctx: ctx, store: p.store, key: p.slot.Key, footer: p.slot.Footer}
	for i := range p.slot.Footer.Chunks {
		raw, err := chunks.raw(i)
		if errors.Is(err, objstore.ErrNotFound) {
			return nil, nil // trimmed meanwhile
		}
		if err == nil {
			err = p.chunk(&p.slot.Footer.Chunks[i], raw)
		}
		if err != nil {
			return nil, segment.InFile(err, p.slot.Key, p.slot.Footer.Slot.ID)
		}
	}
	return p.merged(), nil
}

// chunk takes in the frames of one chunk. The first one begins with the file's header.
func (p *slotProducers) chunk(c *segment.Chunk, raw []byte) error {
	if c.Stream == "" && len(raw) >= segment.HeaderBytes && c.Offset == 0 {
		raw = raw[segment.HeaderBytes:]
	}
	for ordinal := range c.Ordinals.All() {
		f, n, err := segment.ParseChunkFrame(raw)
		if err != nil {
			return err
		}
		raw = raw[n:]
		switch f.Kind {
		case segment.KindStart:
			start, err := segment.DecodeStart(f.Payload)
			if err != nil {
				return err
			}
			p.start = start.Producers
		case segment.KindBatch:
			x, ok, err := segment.BatchProducer(f.Payload)
			if err != nil {
				return err
			}
			if ok {
				p.add(producerAt{x, ordinal})
			}
		}
	}
	return nil
}

// add notes a producer's batch. Only those used last are remembered, so no more than a
// few times that many are kept.
func (p *slotProducers) add(x producerAt) {
	if have, ok := p.last[x.ID]; ok && have.ordinal > x.ordinal {
		return
	}
	p.last[x.ID] = x
	if len(p.last) < 4*segment.MaxProducers {
		return
	}
	for _, old := range p.byUse()[:len(p.last)-segment.MaxProducers] {
		delete(p.last, old.ID)
	}
}

func (p *slotProducers) byUse() []producerAt {
	out := make([]producerAt, 0, len(p.last))
	for _, x := range p.last {
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b producerAt) int { return cmp.Compare(a.ordinal, b.ordinal) })
	return out
}

// merged applies the batches, in the segment's order, to what its SegmentStart says.
func (p *slotProducers) merged() []segment.Producer {
	all := segment.NewProducers(p.start)
	for _, x := range p.byUse() {
		segment.ApplyProducer(all, x.Producer)
	}
	return all.List()
}
