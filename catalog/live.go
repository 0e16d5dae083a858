package catalog

import (
	"fmt"

	"github.com/strandline/strandline/segment"
)

// EffectiveLiveFrom is the first live position of a stream as far as one of its
// chains is concerned: the stream's own live_from, or right above the chain's
// watermark, whichever is higher. A watermark of 0 says nothing.
//
// A stream passes through one chain per epoch. A ref is judged by the watermark of
// the chain that it lies in, so that a later epoch's retention never kills rows of
// an earlier one before that one's own retention did.
func EffectiveLiveFrom(liveFrom segment.Pos, c segment.Chain, watermark segment.Seq) segment.Pos {
	if watermark == 0 {
		return liveFrom
	}
	if w := (segment.Pos{Epoch: c.Epoch, Seq: watermark + 1}); liveFrom.Less(w) {
		return w
	}
	return liveFrom
}

// Dead says whether the ref lies wholly below liveFrom.
func (r *Ref) Dead(liveFrom segment.Pos) bool { return r.LastPos().Less(liveFrom) }

// Straddles says whether liveFrom cuts the ref in two.
func (r *Ref) Straddles(liveFrom segment.Pos) bool {
	return r.FirstPos().Less(liveFrom) && !r.Dead(liveFrom)
}

// Same says whether other is the ref that was seen: what every delete or swap of
// a ref has to name.
func (r *Ref) Same(other *Ref) bool {
	return r.StreamID == other.StreamID && r.FirstPos() == other.FirstPos() &&
		r.Key == other.Key && r.Revision == other.Revision && r.Last == other.Last
}

// Follows says whether no row of the stream lies between last and the ref: last is the
// ref before, or, for the first ref of a plan, the position that it was planned from.
func (r *Ref) Follows(last segment.Pos, first bool) bool {
	if first {
		return r.PrevLast == segment.Pos{} || r.PrevLast.Less(last)
	}
	return r.PrevLast == last
}

// Known says whether this build knows the kind. A ref of an unknown kind stops
// every deleting pass (K16): what it keeps alive cannot be judged.
func (k RefKind) Known() bool {
	switch k {
	case RefSlot, RefStream, RefPack, RefLost:
		return true
	}
	return false
}

// Settled says whether the kind names a settled object, which is watched by
// reap-checks; slots are watched by their chain's cursors.
func (k RefKind) Settled() bool { return k == RefStream || k == RefPack }

// ErrUnknownKind is the finding that stops deletes, with what to do next.
func ErrUnknownKind(verb string, kind RefKind, key string) error {
	return fmt.Errorf("%w: %s: a ref of unknown kind %q names %q, so nothing is deleted; it was written by a newer strandline: upgrade this process",
		ErrCorrupt, verb, string(kind), key)
}

func (r *Ref) describe() string {
	return fmt.Sprintf("ref %s..%s of stream %d in %q revision %d", r.FirstPos(), r.LastPos(), r.StreamID, r.Key, r.Revision)
}
