package settle

import (
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// job is one output of the mover: what goes in, and how its key is derived. Any
// policy makes jobs; the mover asks nothing else.
type job struct {
	holder     catalog.Holder
	kind       segment.ObjectKind
	generation uint32 // of a pack
	revision   uint32 // the first to try
	key        func(revision uint32) string
	members    []*member // by stream name
	unread     []failure // members that step 2 left out
}

// each calls f with every ref.
func (j *job) each(f func(*catalog.Ref)) {
	for _, mem := range j.members {
		mem.each(f)
	}
}

// member is one stream of a job.
type member struct {
	stream   string
	liveFrom segment.Pos // effective; nothing below it is copied
	runs     []*run      // by first
}

// run is refs of one stream, each linked to the one before by prev_last.
type run struct {
	refs []catalog.Ref
	// chunks are what the refs serve, a chunk each, in order: filled by read.
	chunks []source
}

// source is one chunk that rows are read from, as the ref to it alone would be. A
// ref that spans several chunks of a settled object is one source for each.
type source struct {
	catalog.Ref
	of   int  // refs[of] serves it
	part bool // of a chunk that its ref covers in part: Rows and RowSum are not known
	// copied: the store itself moves it (markCopied).
	copied bool
	// live is what of its rows moves: all, or less where live_from cuts it. Written by
	// its one encoder, read after it.
	live segment.Tally
	// below is the stream's last row before those, where live_from cuts the ref; 0: none
	// is known. Written as live is.
	below segment.Seq
}

// runsOf cuts a stream's refs, in order, where they do not link. Refs wholly below
// liveFrom are dead: no run takes them.
func runsOf(refs []catalog.Ref, liveFrom segment.Pos) []*run {
	var runs []*run
	for i := range refs {
		r := refs[i]
		if r.Kind == catalog.RefLost || r.LastPos().Less(liveFrom) {
			continue
		}
		if k := len(runs) - 1; k >= 0 {
			if last := runs[k].refs[len(runs[k].refs)-1]; r.PrevLast == last.LastPos() && r.Epoch == last.Epoch {
				runs[k].refs = append(runs[k].refs, r)
				continue
			}
		}
		runs = append(runs, &run{refs: []catalog.Ref{r}})
	}
	return runs
}

// bytes is the raw size of a member's rows.
func (m *member) bytes() (n int64) {
	for _, r := range m.runs {
		for i := range r.refs {
			n += r.refs[i].Bytes
		}
	}
	return n
}

// each calls f with every ref.
func (m *member) each(f func(*catalog.Ref)) {
	for _, r := range m.runs {
		for i := range r.refs {
			f(&r.refs[i])
		}
	}
}

// within keeps the first refs of members, as far as bound stored bytes go, one ref at
// least. What is left out is owed still, and its object's watcher says so.
func within(members []*member, bound int64) []*member {
	var out []*member
	var sum int64
	for _, mem := range members {
		kept := &member{stream: mem.stream, liveFrom: mem.liveFrom}
		full := false
		for _, r := range mem.runs {
			n := fitting(r.refs, bound, &sum, len(out)+len(kept.runs) == 0)
			if n > 0 {
				kept.runs = append(kept.runs, &run{refs: r.refs[:n]})
			}
			if full = n < len(r.refs); full {
				break
			}
		}
		if len(kept.runs) > 0 {
			out = append(out, kept)
		}
		if full {
			break
		}
	}
	return out
}

// fitting is how many of refs fit what sum leaves of bound; one at least, if asked.
func fitting(refs []catalog.Ref, bound int64, sum *int64, one bool) int {
	for i := range refs {
		if *sum += refs[i].Stored; *sum > bound && (!one || i > 0) {
			return i
		}
	}
	return len(refs)
}

// nextRevision is one above all refs that the job covers: its key was never used (03 §4).
func nextRevision(members []*member) uint32 {
	highest := int32(-1)
	for _, mem := range members {
		mem.each(func(r *catalog.Ref) { highest = max(highest, r.Revision) })
	}
	return uint32(highest + 1)
}

// whole says that the ref serves every row of its one chunk.
func whole(r *catalog.Ref) bool { return r.Chunks == 1 && r.Bytes == r.Raw }

// chunkOf is the chunk that a single-chunk ref serves, as its own entry says.
// Rows are those of the ref: of the chunk itself if the ref is whole.
func chunkOf(r *catalog.Ref) segment.Chunk {
	return segment.Chunk{
		Stream: r.Stream, Epoch: r.Epoch, Shard: r.Shard, First: r.First, Last: r.Last, Rows: r.Rows,
		Offset: r.Offset, Stored: r.Stored, Raw: r.Raw, Codec: r.Codec, CRC: r.CRC, Sum: r.Sum,
		MinTime: r.MinTime, MaxTime: r.MaxTime, RowSum: r.RowSum,
	}
}

// tallyOf is what a ref says of its rows.
func tallyOf(r *catalog.Ref) segment.Tally {
	return segment.Tally{
		First: r.First, Last: r.Last, Rows: r.Rows, MinTime: r.MinTime, MaxTime: r.MaxTime,
		RowSum: r.RowSum, Raw: r.Bytes,
	}
}

// straddles says that liveFrom cuts the ref's rows.
func straddles(r *catalog.Ref, liveFrom segment.Pos) bool {
	return r.Epoch == liveFrom.Epoch && r.First < liveFrom.Seq
}

// refKind is the kind of refs to an object.
func refKind(k segment.ObjectKind) catalog.RefKind {
	if k == segment.ObjPack {
		return catalog.RefPack
	}
	return catalog.RefStream
}
