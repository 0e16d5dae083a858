package catalog

import (
	"cmp"
	"slices"

	"github.com/strandline/strandline/segment"
)

// SlowestCursor is the lowest cursor.
func SlowestCursor(cs []segment.Consumer) (c Slowest) {
	for _, k := range cs {
		if !c.OK || k.Cursor < c.Seq {
			c = Slowest{Seq: k.Cursor, OK: true}
		}
	}
	return c
}

// Slowest is the cursor of the slowest consumer, if there is any.
type Slowest struct {
	Seq segment.Seq
	OK  bool
}

// MergeConsumers is the set that a slot brings, by name. A slot's set is complete:
// who is missing in it was removed. A cursor that stands is never lowered (I6): a
// consumer of that name that was removed and made again in between starts no lower.
func MergeConsumers(have, brought []segment.Consumer) []segment.Consumer {
	stood := make(map[string]segment.Seq, len(have))
	for _, h := range have {
		stood[h.Name] = h.Cursor
	}
	out := slices.Clone(brought)
	for i := range out {
		out[i].Cursor = max(out[i].Cursor, stood[out[i].Name])
	}
	slices.SortFunc(out, func(a, b segment.Consumer) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
