package settle

import (
	"context"
	"fmt"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// pack-merge makes one pack of the next generation out of eight, so that the packs of a
// chain grow in number with the logarithm of its bytes, however tiny its streams are. A
// stream that has become large in them gets an object of its own.
//
//	generation 0   | 1-4 | 5-8 | 9-12 | … | 29-32 |      ranges of slots
//	generation 1   | 1-32                          |  +  obj/… of a grown stream

// maxWiden bounds how far a window grows beyond stuck packs: its refs are in memory.
const maxWiden = 3

// owedMerge reads the earliest packs of a generation. A member that keeps failing keeps
// its packs the earliest: with each attempt the window reaches further, so that they
// hold up the others a few attempts at most.
func (s *Settler) owedMerge(ctx context.Context, m catalog.Marker, o order) (debt, error) {
	chain, generation, err := catalog.ParsePackMergeID(m.ID)
	if err != nil {
		return debt{}, err
	}
	w, err := s.Catalog.PackWindow(ctx, chain, generation, s.cfg.PackFan*(1+min(m.Attempts, maxWiden)))
	if err != nil {
		return debt{}, fmt.Errorf("read the packs: %w", err)
	}
	return planMerge(&w, generation, o)
}

// planMerge is the pack-merge policy: pure.
func planMerge(w *catalog.PackWindow, generation uint32, o order) (debt, error) {
	packs := mergeable(w, o.bound)
	if len(packs) == 0 {
		return debt{idle: IdlePacks}, nil
	}
	first, last, err := slotsOf(packs)
	if err != nil {
		return debt{}, err
	}
	refs := slices.DeleteFunc(slices.Clone(w.Refs), func(r catalog.Ref) bool { return !slices.Contains(packs, r.Key) })
	var d debt
	pack := chainPack(w.Chain.Chain, first, last)
	for _, mem := range membersOf(refs, w.LiveFrom) {
		if mem.bytes() < o.cfg.StreamObjectMin {
			pack.members = append(pack.members, mem)
			continue
		}
		j := streamJob(mem)
		j.holder, j.revision = o.holder, nextRevision(j.members)
		d.jobs = append(d.jobs, j)
	}
	if len(pack.members) > 0 {
		pack.holder, pack.generation, pack.revision = o.holder, generation+1, nextRevision(pack.members)
		d.jobs = append([]*job{pack}, d.jobs...) // first: it takes the longest
	}
	return d, nil
}

// mergeable are the earliest packs, one after the other, that make a batch: two at
// least. A pack that fits no batch with its neighbour is large enough as it is.
func mergeable(w *catalog.PackWindow, bound int64) []string {
	stored := make(map[string]int64, len(w.Packs))
	for i := range w.Refs {
		if r := &w.Refs[i]; !r.Dead(w.LiveFrom[r.StreamID]) {
			stored[r.Key] += r.Stored
		}
	}
	packs := slices.DeleteFunc(slices.Clone(w.Packs), func(key string) bool { return stored[key] == 0 })
	for len(packs) > 1 {
		n, sum := 0, int64(0)
		for n < len(packs) && sum+stored[packs[n]] <= bound {
			sum += stored[packs[n]]
			n++
		}
		if n > 1 {
			return packs[:n]
		}
		packs = packs[1:]
	}
	return nil
}

// slotsOf is the range of slots that packs were first made of.
func slotsOf(packs []string) (first, last segment.ID, err error) {
	for _, p := range packs {
		k, err := segment.ParseKey(p)
		if err != nil || k.Kind != segment.KeyPack {
			return 0, 0, fmt.Errorf("%w: a pack's refs name %q", catalog.ErrCorrupt, p)
		}
		if first == 0 || k.ID < first {
			first = k.ID
		}
		last = max(last, k.LastID)
	}
	return first, last, nil
}
