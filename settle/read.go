package settle

import (
	"context"
	"fmt"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// markCopied notes which of a run's chunks the store itself copies: the long ones, and a
// short one that lies beside such a one in its source and has no neighbour to be joined
// with. The copy of its neighbour takes it along, where it would else end the copied run,
// and the head of the next would have to be pulled through.
func (m *mover) markCopied(chunks []source, liveFrom segment.Pos) {
	for i := range chunks {
		chunks[i].copied = chunks[i].Stored >= copyMin && m.copyable(&chunks[i].Ref, liveFrom)
	}
	long := func(i int) bool { return chunks[i].copied && chunks[i].Stored >= copyMin }
	for i := range chunks {
		if chunks[i].copied || !m.copyable(&chunks[i].Ref, liveFrom) {
			continue
		}
		before, after := i > 0 && long(i-1), i+1 < len(chunks) && long(i+1)
		lone := (before || i == 0) && (after || i+1 == len(chunks))
		chunks[i].copied = lone && (before && adjoin(&chunks[i-1].Ref, &chunks[i].Ref) || after && adjoin(&chunks[i].Ref, &chunks[i+1].Ref))
	}
}

// copyable says that the store could copy the ref's chunk: all of its rows live, in the
// store that the output goes to.
func (m *mover) copyable(r *catalog.Ref, liveFrom segment.Pos) bool {
	if !whole(r) || straddles(r, liveFrom) || !m.dest.Capabilities().RangeCopy {
		return false
	}
	set, err := m.Classes.Set(string(r.Class))
	return err == nil && set.First() == m.dest
}

// adjoin says that b's bytes begin where a's end, in one object.
func adjoin(a, b *catalog.Ref) bool { return a.Key == b.Key && a.Offset+a.Stored == b.Offset }

// read is step 2: what the batch needs of its sources, planned before anything is
// fetched. A ref to a single chunk says where that lies and how it is stored; only a
// ref that spans several needs the footer, which is read once for each object. A member
// one of whose footers cannot be read is left out of its job.
func (m *mover) read(ctx context.Context, jobs []*job) error {
	footers := make(map[string]*tail)
	for _, j := range jobs {
		var members []*member
		for _, mem := range j.members {
			err := m.readMember(ctx, mem, footers)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				j.unread = append(j.unread, failure{mem, err})
				continue
			}
			members = append(members, mem)
		}
		j.members = members
	}
	return nil
}

// readMember plans all of a member before any of it is fetched.
func (m *mover) readMember(ctx context.Context, mem *member, footers map[string]*tail) error {
	for _, r := range mem.runs {
		if err := m.readRun(ctx, r, mem.liveFrom, footers); err != nil {
			return err
		}
	}
	for _, r := range mem.runs {
		m.markCopied(r.chunks, mem.liveFrom)
		for i := range r.chunks {
			ref := &r.chunks[i].Ref
			if err := m.sources.add(ref, !r.chunks[i].copied); err != nil {
				return err
			}
			if t := footers[ref.Key]; t != nil {
				m.sources.byKey[ref.Key].etag = t.etag
			}
		}
	}
	return nil
}

func (m *mover) readRun(ctx context.Context, r *run, liveFrom segment.Pos, footers map[string]*tail) error {
	r.chunks = make([]source, 0, len(r.refs))
	for i := range r.refs {
		if ref := &r.refs[i]; ref.Chunks == 1 {
			r.chunks = append(r.chunks, source{Ref: *ref, of: i})
			continue
		}
		var err error
		if r.chunks, err = m.spread(ctx, r.chunks, &r.refs[i], i, footers); err != nil {
			return err
		}
	}
	var below segment.Seq
	r.chunks = slices.DeleteFunc(r.chunks, func(s source) bool {
		dead := s.Dead(liveFrom)
		if dead {
			below = s.Last // of a cut ref: those before the cut
		}
		return dead
	})
	if len(r.chunks) > 0 {
		r.chunks[0].below = below
	} else {
		return &segment.CorruptionError{File: r.refs[0].Key, Reason: fmt.Sprintf("no chunk of %q at or above %s, as its refs say", r.refs[0].Stream, liveFrom)}
	}
	return nil
}

// tail is what the end of a source says.
type tail struct {
	footer *segment.Footer
	etag   string
	err    error
}

// tailOf reads an object's footer, once for all of its members.
func (m *mover) tailOf(ctx context.Context, r *catalog.Ref, footers map[string]*tail) (*segment.Footer, error) {
	t := footers[r.Key]
	if t == nil {
		t = &tail{}
		footers[r.Key] = t
		set, err := m.Classes.Set(string(r.Class))
		if err != nil {
			t.err = fmt.Errorf("source %s: %w", r.Key, err)
		} else if t.err = spend(ctx, m.Budget, segment.TailBytes, 1); t.err == nil {
			var info objstore.Info
			t.footer, info, t.err = readTail(ctx, set.First(), r.Key)
			t.etag = info.ETag
		}
		if t.err != nil {
			m.note(ctx, r.Key, t.err)
		}
	}
	if t.err != nil {
		return nil, fmt.Errorf("read the footer of %s: %w", r.Key, t.err)
	}
	return t.footer, nil
}

// spread gives the chunks of a ref to several of them, by the object's footer.
func (m *mover) spread(ctx context.Context, out []source, r *catalog.Ref, of int, footers map[string]*tail) ([]source, error) {
	f, err := m.tailOf(ctx, r, footers)
	if err != nil {
		return nil, err
	}
	chunks := chunksOf(f, r, r.First, r.Last)
	if len(chunks) == 0 {
		return nil, &segment.CorruptionError{File: r.Key, Reason: fmt.Sprintf("no chunk of %q from %s to %s, as its ref says", r.Stream, r.FirstPos(), r.LastPos())}
	}
	for _, c := range chunks {
		s := source{Ref: *r, of: of, part: c.First < r.First || c.Last > r.Last}
		s.First, s.Last, s.Chunks = max(c.First, r.First), min(c.Last, r.Last), 1
		s.Offset, s.Stored, s.Raw, s.Codec, s.CRC, s.Sum = c.Offset, c.Stored, c.Raw, c.Codec, c.CRC, c.Sum
		s.Rows, s.RowSum, s.Bytes, s.MinTime, s.MaxTime = c.Rows, c.RowSum, c.Raw, c.MinTime, c.MaxTime
		if s.part {
			s.Bytes = 0 // so that it is never taken for whole
		}
		out = append(out, s)
	}
	return out, nil
}

// part is the live rows of one ref: frames, what they hold, and if nothing was cut
// off the chunk, its stored bytes as they are.
type part struct {
	raw    []byte
	tally  segment.Tally
	stored []byte
	below  segment.Seq // the last row that live_from cut off; 0: none was
}

// live reads one ref's rows: verified against the chunk's checksums and the ref's
// sums (K8), nothing below liveFrom. Raw bytes go into the room of dst if they fit.
func (m *mover) live(ctx context.Context, r *source, liveFrom segment.Pos, dst []byte) (part, error) {
	stored, err := m.sources.stored(ctx, &r.Ref)
	if err != nil {
		return part{}, fmt.Errorf("read %s: %w", r.Key, err)
	}
	c := chunkOf(&r.Ref)
	raw, err := segment.DecodeChunkInto(dst, &c, stored)
	if err != nil {
		return part{}, segment.InFile(err, r.Key, 0)
	}
	p := part{raw: raw}
	if whole(&r.Ref) {
		p.stored = stored
		p.tally, err = segment.TallyFrames(raw)
	} else {
		p.raw, p.tally, err = segment.CutRows(raw, r.First, r.Last)
	}
	if err == nil && !r.part {
		err = sameRows(&r.Ref, &p.tally)
	}
	if err == nil && straddles(&r.Ref, liveFrom) {
		p, err = cutBelow(p, r, liveFrom.Seq)
	}
	if err == nil && p.tally.Rows == 0 {
		err = &segment.CorruptionError{Offset: r.Offset, Reason: fmt.Sprintf("no row of %q from %s on, the ref ends at %s", r.Stream, liveFrom, r.LastPos())}
	}
	if err != nil {
		return part{}, segment.InFile(err, r.Key, 0)
	}
	return p, nil
}

// cutBelow leaves out what is dead, and notes its last row: the one before the first that is left.
func cutBelow(p part, r *source, live segment.Seq) (part, error) {
	_, dead, err := segment.CutRows(p.raw, r.First, live-1)
	if err != nil {
		return part{}, err
	}
	p.stored, p.below = nil, dead.Last
	p.raw, p.tally, err = segment.CutRows(p.raw, live, r.Last)
	return p, err
}

// sameRows holds what a source has against what its ref says: the same rows, all
// of them. A hole or a short body never gets past this. The remainder that a winner
// left begins right behind the winner's last row, where a row of another stream may stand.
func sameRows(r *catalog.Ref, t *segment.Tally) error {
	if t.First >= r.First && t.Last == r.Last && t.Rows == r.Rows && t.RowSum == r.RowSum {
		return nil
	}
	return &segment.CorruptionError{Offset: r.Offset, Reason: fmt.Sprintf(
		"stream %q: %d rows %d to %d with sum %016x, the ref says %d rows %d to %d with sum %016x",
		r.Stream, t.Rows, t.First, t.Last, t.RowSum, r.Rows, r.First, r.Last, r.RowSum)}
}
