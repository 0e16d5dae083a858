package objstore

import (
	"cmp"
	"container/heap"
	"context"
	"iter"
	"slices"
)

// sortWindow is how many objects a sorted listing holds in memory where the store lists
// without order: at most some 60 MB, with keys of 100 bytes.
const sortWindow = 1 << 18

// ListSorted is List in bytewise order of the keys, whatever the store's order is.
//
// Where the store lists in order it is List itself. Where not, it holds at most 262,144
// objects: the least of those not yet yielded. A bucket with more is listed once for
// each so many. So memory is bounded and requests grow with the square of the bucket:
// meant for buckets that hold transit objects, as those of S3 Express do. What comes
// between two of its listings is yielded if it lies behind what was yielded already.
func (s *Store) ListSorted(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	if s.Capabilities().OrderedList {
		return s.List(ctx, prefix, "")
	}
	return s.listSorted(ctx, prefix, sortWindow)
}

func (s *Store) listSorted(ctx context.Context, prefix string, window int) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for after := ""; ; {
			least, more, err := s.least(ctx, prefix, after, window)
			if err != nil {
				yield(Info{}, err)
				return
			}
			for _, o := range least {
				if !yield(o, nil) {
					return
				}
			}
			if !more {
				return
			}
			after = least[len(least)-1].Key
		}
	}
}

// least lists once and keeps the n least objects behind after, in order. more says that
// there were others.
func (s *Store) least(ctx context.Context, prefix, after string, n int) (_ []Info, more bool, err error) {
	var kept greatestFirst
	for o, err := range s.List(ctx, prefix, after) {
		switch {
		case err != nil:
			return nil, false, err
		case len(kept) < n:
			heap.Push(&kept, o)
		case o.Key < kept[0].Key:
			kept[0], more = o, true
			heap.Fix(&kept, 0)
		default:
			more = true
		}
	}
	slices.SortFunc(kept, func(a, b Info) int { return cmp.Compare(a.Key, b.Key) })
	return kept, more, nil
}

// greatestFirst is a heap with the greatest key on top.
type greatestFirst []Info

func (h greatestFirst) Len() int           { return len(h) }
func (h greatestFirst) Less(i, j int) bool { return h[i].Key > h[j].Key }
func (h greatestFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *greatestFirst) Push(x any)        { *h = append(*h, x.(Info)) }

func (h *greatestFirst) Pop() any {
	old := *h
	o := old[len(old)-1]
	*h = old[:len(old)-1]
	return o
}
