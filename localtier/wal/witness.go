package wal

import (
	"fmt"

	"github.com/strandline/strandline/segment"
)

// index.json is written after the fsync of what it tells of. So it is a witness:
// what it knows was durable once, and if it is not there now, that is damage and
// no interrupted write.

// checkNewestKnown: a segment that index.json knows cannot be missing at the end
// of the log. Its directory entry was durable before index.json told of it, and
// housekeeping never unlinks the newest.
func (r *recovery) checkNewestKnown() error {
	var last segment.ID
	switch n := len(r.older); {
	case r.newest != nil:
		last = r.newest.id
	case n > 0:
		last = r.older[n-1].id
	}
	x := r.side.index
	if x == nil || x.Segment <= max(last, r.side.reclaim.Segment) {
		return nil
	}
	return &segment.CorruptionError{
		File: segmentPath(r.dir, x.Segment), Segment: x.Segment, UUID: x.UUID,
		Reason: fmt.Sprintf("the newest segment is missing: index.json knows %d bytes of it, the last that stands is segment %d", x.Bytes, last),
	}
}

// known is the length that index.json gives the newest segment, 0 if none.
func (r *recovery) known() int64 {
	if x := r.side.index; x != nil && r.newest != nil && x.UUID == r.newest.uuid {
		return x.Bytes
	}
	return 0
}

// trustIndex takes the end of the newest segment from index.json if it matches
// exactly: same segment, same length, so that nothing stands behind it.
func (r *recovery) trustIndex() bool {
	x, s := r.side.index, r.newest
	if x == nil || x.UUID != s.uuid || x.Segment != s.id || x.Bytes != s.info.Size || x.Term != s.start.Term {
		return false
	}
	if x.Sealed != (s.seal != nil) || (s.seal != nil && (s.seal.Frames != x.Frames || s.seal.Next != x.NextSeq)) {
		return false
	}
	r.end = position{start: s.start, uuid: s.uuid, open: !x.Sealed, end: x.Bytes, frames: x.Frames, next: x.NextSeq}
	r.tail = segment.Tail{End: x.Bytes}
	r.carried = carriedFrom(x.Consumers, x.Producers)
	r.trusted = true
	return true
}

// durableAlready says that the newest segment is sealed and that index.json,
// which is written only after an fsync, vouches for all of it: then it needs no
// copy. A Seal that only the page cache shows does.
func (r *recovery) durableAlready() bool {
	x := r.side.index
	return !r.end.open && !r.tail.Torn && x != nil && x.UUID == r.end.uuid && x.Sealed && x.Bytes == r.end.end
}
