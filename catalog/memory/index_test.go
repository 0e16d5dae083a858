package memory

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// held is an index with what it should hold.
type held struct {
	x    *index[int, int]
	want map[int]int
}

func (h *held) check(t *testing.T) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(h.want))
	var got []int
	for k, v := range h.x.all() {
		if h.want[k] != v {
			t.Fatalf("%d: %d, want %d", k, v, h.want[k])
		}
		got = append(got, k)
	}
	if !slices.Equal(got, keys) || h.x.n != len(keys) {
		t.Fatalf("%d entries, counted %d; want %d", len(got), h.x.n, len(keys))
	}
	for _, b := range h.x.blocks {
		if len(b.items) == 0 || len(b.items) > blockMax {
			t.Fatalf("a block of %d", len(b.items))
		}
	}
}

// ranges looks at what lies above and below a key, itself in the index or not.
func (h *held) ranges(t *testing.T, at int) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(h.want))
	i, found := slices.BinarySearch(keys, at)
	if v, ok := h.x.get(at); ok != found || v != h.want[at] {
		t.Fatalf("get %d: %d %v", at, v, ok)
	}
	var up, down []int
	for k := range h.x.from(at) {
		up = append(up, k)
	}
	for k := range h.x.below(at) {
		down = append(down, k)
	}
	slices.Reverse(down)
	if !slices.Equal(up, keys[i:]) || !slices.Equal(down, keys[:i]) {
		t.Fatalf("around %d: %d above, %d below; want %d and %d", at, len(up), len(down), len(keys)-i, i)
	}
}

// TestIndex holds an index, and clones taken on the way, against maps.
func TestIndex(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			live := &held{newIndex[int, int](cmp.Compare[int]), map[int]int{}}
			var clones []*held
			most := 0
			for step := range 300 {
				was, grow := maps.Clone(live.want), r.IntN(5) > 0
				if step > 200 {
					grow = r.IntN(5) > 3 // blocks become small, and are joined
				}
				for range r.IntN(120) {
					k := r.IntN(3000)
					if grow {
						live.x.set(k, step)
						live.want[k] = step
					} else {
						k = pick(live.want, k)
						delete(live.want, k)
						live.x.del(k)
					}
				}
				if r.IntN(4) == 0 {
					live.x.rollback()
					live.want = was
				} else {
					live.x.commit()
				}
				most = max(most, len(live.x.blocks))
				if step%5 == 0 {
					live.check(t)
				}
				live.ranges(t, r.IntN(3002)-1)
				if r.IntN(30) == 0 {
					clones = append(clones, &held{live.x.clone(), maps.Clone(live.want)})
				}
				if r.IntN(40) == 0 && len(clones) > 0 { // as Restore does
					c := clones[r.IntN(len(clones))]
					live = &held{c.x.clone(), maps.Clone(c.want)}
				}
			}
			for _, c := range clones {
				c.check(t)
			}
			if most < 6 || len(clones) < 3 {
				t.Fatalf("%d blocks at most, %d clones: the run shows little", most, len(clones))
			}
		})
	}
}

// pick is a key that stands, near k.
func pick(m map[int]int, k int) int {
	keys := slices.Sorted(maps.Keys(m))
	if len(keys) == 0 {
		return k
	}
	i, _ := slices.BinarySearch(keys, k)
	return keys[i%len(keys)]
}
