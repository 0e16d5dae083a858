package settle

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// movesAsIs says that the store itself copies the ref's chunk: long, all of its
// rows live, in the store that the output goes to.
func (m *mover) movesAsIs(r *catalog.Ref, liveFrom segment.Pos) bool {
	if !whole(r) || r.Stored < copyMin || straddles(r, liveFrom) || !m.dest.Capabilities().RangeCopy {
		return false
	}
	set, err := m.Classes.Set(string(r.Class))
	return err == nil && set.First() == m.dest
}

// read is step 2: what the batch needs of its sources, planned before anything is
// fetched. The refs say where their chunks lie and how they are stored, so that no
// footer is asked for.
func (m *mover) read(jobs []*job) error {
	for _, j := range jobs {
		for _, mem := range j.members {
			var err error
			mem.sources(func(r *catalog.Ref) {
				switch {
				case err != nil:
				case r.Chunks != 1:
					err = fmt.Errorf("ref %s of %q spans %d chunks of %s: the settle policy takes slots only", r.FirstPos(), r.Stream, r.Chunks, r.Key)
				default:
					err = m.sources.add(r, !m.movesAsIs(r, mem.liveFrom))
				}
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// part is the live rows of one ref: frames, what they hold, and if nothing was cut
// off the chunk, its stored bytes as they are.
type part struct {
	raw    []byte
	tally  segment.Tally
	stored []byte
}

// live reads one ref's rows: verified against the chunk's checksums and the ref's
// sums (K8), nothing below liveFrom. Raw bytes go into the room of dst if they fit.
func (m *mover) live(ctx context.Context, r *catalog.Ref, liveFrom segment.Pos, dst []byte) (part, error) {
	stored, err := m.sources.stored(ctx, r)
	if err != nil {
		return part{}, fmt.Errorf("read %s: %w", r.Key, err)
	}
	c := chunkOf(r)
	raw, err := segment.DecodeChunkInto(dst, &c, stored)
	if err != nil {
		return part{}, segment.InFile(err, r.Key, 0)
	}
	p := part{raw: raw}
	if whole(r) {
		p.stored = stored
		p.tally, err = segment.TallyFrames(raw)
	} else {
		p.raw, p.tally, err = segment.CutRows(raw, r.First, r.Last)
	}
	if err == nil {
		err = sameRows(r, &p.tally)
	}
	if err == nil && straddles(r, liveFrom) {
		p.stored = nil
		p.raw, p.tally, err = segment.CutRows(p.raw, liveFrom.Seq, r.Last)
	}
	if err == nil && p.tally.Rows == 0 {
		err = &segment.CorruptionError{Offset: r.Offset, Reason: fmt.Sprintf("no row of %q from %s on, the ref ends at %s", r.Stream, liveFrom, r.LastPos())}
	}
	if err != nil {
		return part{}, segment.InFile(err, r.Key, 0)
	}
	return p, nil
}

// sameRows holds what a source has against what its ref says: the same rows, all
// of them. A hole or a short body never gets past this.
func sameRows(r *catalog.Ref, t *segment.Tally) error {
	if t.First == r.First && t.Last == r.Last && t.Rows == r.Rows && t.RowSum == r.RowSum {
		return nil
	}
	return &segment.CorruptionError{Offset: r.Offset, Reason: fmt.Sprintf(
		"stream %q: %d rows %d to %d with sum %016x, the ref says %d rows %d to %d with sum %016x",
		r.Stream, t.Rows, t.First, t.Last, t.RowSum, r.Rows, r.First, r.Last, r.RowSum)}
}
