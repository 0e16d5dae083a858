package catalog

import (
	"math"
	"time"

	"github.com/strandline/strandline/segment"
)

// Deriving looks up whether a job could derive a burned key again, by the kind of the key.
type Deriving struct {
	Stream, Pack func(segment.Key) (bool, error)
}

// ForgetIntent says whether the row of a burned key goes (03 §8 step 4); if not, the judge
// looks again after a while. The look-up is made only once a request that was sent before
// the delete can land no more. Of keys whose shape nothing here derives, nobody knows: they
// stay.
func ForgetIntent(in *Intent, now time.Time, look Deriving) (gone bool, again time.Duration, err error) {
	if in.State != IntentBurned {
		return false, 0, Conflict("RemoveIntent", "state of "+in.Key, IntentBurned, in.State)
	}
	if late := in.Changed.Add(BurnDelay); now.Before(late) {
		return false, late.Sub(now), nil
	}
	derivable := true
	switch k, bad := segment.ParseKey(in.Key); {
	case bad != nil:
	case k.Kind == segment.KeyStream:
		derivable, err = look.Stream(k)
	case k.Kind == segment.KeyPack:
		derivable, err = look.Pack(k)
	}
	return !derivable && err == nil, BurnDelay, err
}

// StreamKeyDerivable says whether a job could derive a burned stream key again
// (03 §8 step 4). at is the ref that begins at the key's first row, nil if none does.
// No mover touches a lost one.
func StreamKeyDerivable(k segment.Key, at *Ref, liveFrom segment.Pos) bool {
	return at != nil && at.Kind != RefLost && !at.Dead(liveFrom) && at.Revision < int32(k.Revision)
}

// PackKeyDerivable says the same of a pack key. others are the packs that refs name
// and that begin in the key's range: a merge of any of them may derive it.
func PackKeyDerivable(k segment.Key, row *ChainRow, others []segment.Key) bool {
	if row.Trimmed <= k.LastID {
		return true
	}
	for _, o := range others {
		if o.Kind == segment.KeyPack && o.Chain == k.Chain && o.ID >= k.ID && o.LastID <= k.LastID && o.Revision < k.Revision {
			return true
		}
	}
	return false
}

// PacksIn bounds the keys, from <= key < to, of the packs that begin in a pack's range, all
// revisions of each.
func PacksIn(k segment.Key) (from, to string) {
	return segment.PackKey(k.Chain, k.ID, k.ID, 0), segment.PackKey(k.Chain, k.LastID, math.MaxUint64, 0) + "\x7f"
}
