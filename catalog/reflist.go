package catalog

import (
	"cmp"
	"slices"
)

// MaxPage bounds every page of rows, whatever was asked.
const MaxPage = 10_000

// PageSize is how many rows a page has of which limit were asked for.
func PageSize(limit int) int {
	if limit <= 0 || limit > MaxPage {
		return MaxPage
	}
	return limit
}

// PlainRefs are the refs without where their streams live from.
func PlainRefs(live []LiveRef) []Ref {
	out := make([]Ref, len(live))
	for i := range live {
		out[i] = live[i].Ref
	}
	return out
}

// PageOf cuts the one row more that was asked for.
func PageOf(live []LiveRef, n int) (refs []Ref, more bool) {
	more = len(live) > n
	return PlainRefs(live[:min(n, len(live))]), more
}

// KeysOf lists the distinct keys of the refs that pick takes, nil takes all, in first-seen
// order.
func KeysOf(refs []Ref, pick func(*Ref) bool) []string {
	seen := make(map[string]bool, len(refs))
	keys := []string{}
	for i := range refs {
		if r := &refs[i]; !seen[r.Key] && (pick == nil || pick(r)) {
			seen[r.Key] = true
			keys = append(keys, r.Key)
		}
	}
	return keys
}

// IsSlot says whether the ref names a slot.
func (r *Ref) IsSlot() bool { return r.Kind == RefSlot }

// SortRefs brings refs into the order of their table: by stream, and in a stream by
// position.
func SortRefs(refs []Ref) {
	slices.SortFunc(refs, func(a, b Ref) int {
		return cmp.Or(cmp.Compare(a.StreamID, b.StreamID), a.FirstPos().Compare(b.FirstPos()))
	})
}
