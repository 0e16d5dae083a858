package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// deepRead is how much of an object is asked for at once.
const deepRead = 8 << 20

// digging is one object that is read chunk by chunk.
type digging struct {
	key    string
	footer *segment.Footer
	refs   []catalog.LiveRef
	of     map[spanOf][]int // refs by stream and epoch
	seen   []segment.Tally  // what was counted of each ref
	bad    []bool           // refs with a chunk that does not decode
	faults []fault
	room   []byte
	passed bool // a chunk could not be read
	// all: every chunk is read, not only those that live refs need. A new owner fills its disk
	// from whole slots.
	all bool
}

type spanOf struct {
	stream string
	epoch  segment.Epoch
}

// dig reads every chunk that a live ref needs, of slots every chunk, and says which rows are not what footer
// and refs say: stored length, CRC, digest, frames, seqs, row sums.
func (w *walk) dig(ctx context.Context, at place, f *segment.Footer, refs []catalog.LiveRef) ([]fault, error) {
	d := &digging{
		footer: f, refs: refs, of: map[spanOf][]int{}, seen: make([]segment.Tally, len(refs)), bad: make([]bool, len(refs)),
		key: refs[0].Key, all: f.Kind == segment.ObjSlot,
	}
	for i := range refs {
		if !refs[i].Dead(refs[i].LiveFrom) {
			k := spanOf{refs[i].Stream, refs[i].Epoch}
			d.of[k] = append(d.of[k], i)
		}
	}
	err := w.digAll(ctx, at, d)
	d.sums()
	if err == nil && d.passed {
		err = errPassed
	}
	return d.faults, err
}

func (w *walk) digAll(ctx context.Context, at place, d *digging) error {
	for from := 0; from < len(d.footer.Chunks); {
		to := d.group(from)
		if to == from {
			from++
			continue
		}
		if err := w.digGroup(ctx, at, d, from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// group is how far chunks from one on are needed and fit one read; none if that one is
// not needed. The chunks of an object lie side by side.
func (d *digging) group(from int) (to int) {
	bytes := int64(0)
	for to = from; to < len(d.footer.Chunks) && (d.all || len(d.needs(to)) > 0); to++ {
		if bytes += d.footer.Chunks[to].Stored; to > from && bytes > deepRead {
			break
		}
	}
	return to
}

// needs are the refs that need rows of a chunk.
func (d *digging) needs(chunk int) (refs []int) {
	c := &d.footer.Chunks[chunk]
	for _, i := range d.of[spanOf{c.Stream, c.Epoch}] {
		if overlaps(c, &d.refs[i].Ref) {
			refs = append(refs, i)
		}
	}
	return refs
}

// digGroup reads neighbouring chunks. One that went since is no fault of its rows: the look
// at the refs that follows every fault tells.
func (w *walk) digGroup(ctx context.Context, at place, d *digging, from, to int) error {
	chunks := d.footer.Chunks[from:to]
	begin, end := chunks[0].Offset, chunks[len(chunks)-1].End()
	body, _, err := at.store.ReadRange(ctx, d.key, begin, end-begin)
	if refused(err) {
		// Once more, and chunk by chunk: one that cannot be read hides no other.
		if to-from > 1 {
			for i := from; i < to; i++ {
				if err := w.digGroup(ctx, at, d, i, i+1); err != nil {
					return err
				}
			}
			return nil
		}
		body, _, err = at.store.ReadRange(ctx, d.key, begin, end-begin)
	}
	switch {
	case errors.Is(err, objstore.ErrNotFound), unsound(err):
		for i := from; i < to; i++ {
			d.fail(i, err.Error())
		}
		return nil
	case err != nil:
		if err = w.pass(ctx, at, d.key, fmt.Errorf("read %s at byte %d: %w", d.key, begin, err)); errors.Is(err, errPassed) {
			d.unread(from)
			return nil
		}
		return err
	}
	w.add(func(r *Report) { r.Chunks, r.ChunkBytes = r.Chunks+int64(to-from), r.ChunkBytes+end-begin })
	for i := range chunks {
		c := &chunks[i]
		if err := d.decode(from+i, body[c.Offset-begin:c.End()-begin]); err != nil {
			d.fail(from+i, fmt.Sprintf("chunk at byte %d: %v", c.Offset, err))
		}
	}
	return nil
}

// decode verifies one chunk and counts its rows for the refs that need them.
func (d *digging) decode(chunk int, stored []byte) (err error) {
	c := &d.footer.Chunks[chunk]
	raw, err := segment.DecodeChunkInto(d.room, c, stored)
	if err != nil {
		return err
	}
	if c.Codec != segment.CodecNone {
		d.room = raw[:0]
	}
	if c.Stream == "" {
		return nil // frames that are no batches; the digest has them
	}
	needs := d.needs(chunk)
	all := segment.Tally{}
	for batch, err := range segment.Frames(raw) {
		if err != nil {
			return err
		}
		if batch.Stream != c.Stream {
			return fmt.Errorf("a frame of stream %q stands in it", batch.Stream)
		}
		for i := range batch.Rows {
			row := &batch.Rows[i]
			all.AddRow(*row)
			for _, ref := range needs {
				if r := &d.refs[ref]; row.Seq >= r.First && row.Seq <= r.Last {
					d.seen[ref].AddRow(*row)
				}
			}
		}
	}
	if all.Raw = int64(len(raw)); !all.Matches(c) {
		return fmt.Errorf("it holds %d rows, %d to %d, of sum %016x, its footer says %d, %d to %d, of %016x",
			all.Rows, all.First, all.Last, all.RowSum, c.Rows, c.First, c.Last, c.RowSum)
	}
	return nil
}

// fail reports the rows of a chunk, to each ref that needs some.
func (d *digging) fail(chunk int, why string) {
	c := &d.footer.Chunks[chunk]
	needs := d.needs(chunk)
	if len(needs) == 0 {
		d.faults = append(d.faults, fault{why: why})
	}
	for _, i := range needs {
		ref := &d.refs[i]
		d.bad[i] = true
		d.faults = append(d.faults, fault{ref, max(ref.First, c.First), min(ref.Last, c.Last), why})
	}
}

// unread leaves the refs that need rows of a chunk without a verdict.
func (d *digging) unread(chunk int) {
	d.passed = true
	for _, i := range d.needs(chunk) {
		d.bad[i] = true
	}
}

// sums holds every ref's rows against what it says of them. Of one that live_from cuts,
// the object need not have what lies below.
func (d *digging) sums() {
	for i := range d.refs {
		ref, t := &d.refs[i], &d.seen[i]
		if d.bad[i] || ref.Dead(ref.LiveFrom) {
			continue
		}
		cut := ref.Straddles(ref.LiveFrom)
		if t.Last != ref.Last || !cut && (t.Rows != ref.Rows || t.RowSum != ref.RowSum) {
			d.faults = append(d.faults, fault{ref, ref.First, ref.Last, fmt.Sprintf(
				"it holds %d rows of sum %016x up to row %d, the ref says %d of %016x up to %d", t.Rows, t.RowSum, t.Last, ref.Rows, ref.RowSum, ref.Last)})
		}
	}
}
