package segment

import "iter"

// Ordinals are the numbers that a chunk's frames had in their segment, 0 for
// SegmentStart, ascending, as runs: they stay small however long the runs are.
type Ordinals []OrdinalRun

// OrdinalRun is Count consecutive ordinals from First on.
type OrdinalRun struct{ First, Count uint32 }

// Add appends an ordinal, which must be above all others.
func (o Ordinals) Add(n uint32) Ordinals {
	if k := len(o) - 1; k >= 0 && o[k].First+o[k].Count == n {
		o[k].Count++
		return o
	}
	return append(o, OrdinalRun{n, 1})
}

// Len is how many ordinals there are.
func (o Ordinals) Len() (n int64) {
	for _, r := range o {
		n += int64(r.Count)
	}
	return n
}

// All yields the ordinals in order.
func (o Ordinals) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for _, r := range o {
			for i := range r.Count {
				if !yield(r.First + i) {
					return
				}
			}
		}
	}
}

func lastOrdinal(o Ordinals) uint32 {
	r := o[len(o)-1]
	return r.First + r.Count - 1
}
