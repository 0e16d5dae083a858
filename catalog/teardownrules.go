package catalog

import "github.com/strandline/strandline/segment"

// TrimStream is the stream after a trim to pos, which never lowers its live_from (I6).
func TrimStream(s Stream, pos segment.Pos) (Stream, error) {
	err := CheckTrimPos(&s, pos)
	if err == nil {
		s.LiveFrom = later(s.LiveFrom, pos)
	}
	return s, err
}

// DeleteStream is the stream after it was trimmed through its tip, and is listed as deleted.
func DeleteStream(s Stream) Stream {
	s.LiveFrom, s.Deleted = later(s.LiveFrom, s.Last.Next()), true
	return s
}

// Take takes the next ref of the walk's stream, by position, into a page of limit dead
// ones; end says that no more of them is of use. All behind the first live one lie higher.
func (w *WalkPage) Take(l *LiveRef, limit int) (end bool) {
	switch {
	case l.Dead(l.LiveFrom) && len(w.Dead) == limit:
		w.More = true
	case l.Dead(l.LiveFrom):
		w.Dead = append(w.Dead, l.Ref)
		return false
	case l.Straddles(l.LiveFrom):
		straddle := l.Ref
		w.Straddle = &straddle
	}
	return true
}

// Retirable are those of the refs that were seen which stand as they were seen, and are
// dead; each once. standing gives the ref that begins where one was seen, nil if none does.
func Retirable(seen []Ref, standing func(*Ref) *LiveRef) (gone []Ref) {
	type start struct {
		stream int64
		at     segment.Pos
	}
	had := make(map[start]bool, len(seen))
	for i := range seen {
		r := &seen[i]
		at := start{r.StreamID, r.FirstPos()}
		if l := standing(r); l != nil && !had[at] && l.Same(r) && l.Dead(l.LiveFrom) {
			had[at] = true
			gone = append(gone, l.Ref)
		}
	}
	return gone
}

// CheckKnown: nothing is deleted where a ref is of a kind that this build does not know
// (K16).
func CheckKnown(verb string, refs []Ref) error {
	for i := range refs {
		if !refs[i].Kind.Known() {
			return ErrUnknownKind(verb, refs[i].Kind, refs[i].Key)
		}
	}
	return nil
}

// Armed is a marker to arm: its id, and the class of what it watches.
type Armed struct {
	ID    string
	Class segment.Class
}

// WatchersOf are the reap-checks of the settled objects among the refs, each once. Slots
// have their settle markers.
func WatchersOf(refs []Ref) (ms []Armed) {
	seen := make(map[string]bool, len(refs))
	for i := range refs {
		if r := &refs[i]; r.Kind.Settled() && !seen[r.Key] {
			seen[r.Key] = true
			ms = append(ms, Armed{r.Key, r.Class})
		}
	}
	return ms
}

// SettleIDs are the settle markers of slots, by their keys.
func SettleIDs(keys []string) ([]string, error) {
	ids := make([]string, len(keys))
	for i, key := range keys {
		k, err := segment.ParseKey(key)
		if err != nil || k.Kind != segment.KeySlot {
			return nil, ErrUnknownKind("slots due", RefSlot, key)
		}
		ids[i] = SettleID(k.Chain, k.ID)
	}
	return ids, nil
}

// SettleSlots are the slots of a chain's settle markers.
func SettleSlots(c segment.Chain, markers []MarkerRef) ([]segment.ID, error) {
	ids := make([]segment.ID, len(markers))
	for i, m := range markers {
		chain, id, err := ParseSettleID(m.ID)
		if err != nil {
			return nil, err
		}
		if chain != c || m.Duty != DutySettle {
			return nil, Invalid("ResolveSettled", "marker %s %s is not one of chain %s", m.Duty, m.ID, c)
		}
		ids[i] = id
	}
	return ids, nil
}
