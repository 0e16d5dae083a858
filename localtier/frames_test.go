package localtier

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/strandline/strandline/segment"
)

// TestFrames holds a table against a plain list of what was put into it: for every
// stream and for the whole shard, from and to anywhere.
func TestFrames(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		const base = 1000
		type frame struct {
			stream      string
			first, last segment.Seq
		}
		table, all := newFrameTable(), []frame{}
		next, streams := segment.Seq(base), 1+rng.IntN(40)
		for i := range rng.IntN(5000) {
			f := frame{fmt.Sprint("s", min(rng.IntN(streams), rng.IntN(streams))), next, next + segment.Seq(rng.IntN(4))}
			table.add(f.stream, uint32(f.first-base), uint32(24+100*i))
			all = append(all, f)
			next = f.last + 1
		}
		v := view{id: 1, base: base, next: next, frames: table.frames, names: table.names}
		for range 200 {
			stream := fmt.Sprint("s", rng.IntN(streams+1))
			from := base - 5 + segment.Seq(rng.IntN(int(next-base)+10))
			to := from + segment.Seq(rng.IntN(int(next-base)+10))
			var ofAll, ofStream []int
			for i, f := range all {
				if f.last < from || f.first > to {
					continue
				}
				ofAll = append(ofAll, i)
				if f.stream == stream {
					ofStream = append(ofStream, i)
				}
			}
			v.chain = chain{}
			if n, ok := table.numbers[stream]; ok {
				v.chain = table.chains[n]
			}
			if got := slices.Collect(v.ofStream(from, to)); !slices.Equal(got, ofStream) {
				t.Fatalf("seed %d: frames of %s in [%d, %d]: %v, want %v", seed, stream, from, to, got, ofStream)
			}
			if got := slices.Collect(v.all(from, to)); !slices.Equal(got, ofAll) {
				t.Fatalf("seed %d: frames in [%d, %d]: %d, want %d", seed, from, to, len(got), len(ofAll))
			}
		}
		for i, f := range all {
			if v.stream(i) != f.stream || v.first(i) != f.first || v.end(i) != f.last+1 || v.frames.at(i).off != uint32(24+100*i) {
				t.Fatalf("seed %d: frame %d is %q %d to %d at %d", seed, i, v.stream(i), v.first(i), v.end(i), v.frames.at(i).off)
			}
		}
	}
}

// BenchmarkFramesSeek finds one of a stream's million frames in a segment: a search, and
// one step of links; a walk would take some milliseconds.
func BenchmarkFramesSeek(b *testing.B) {
	table := newFrameTable()
	const n = 1 << 20
	for i := range uint32(n) {
		table.add("s", i, 24+100*i)
	}
	v := view{id: 1, base: 1, next: n + 1, frames: table.frames, names: table.names, chain: table.chains[0]}
	rng := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		from := segment.Seq(1 + rng.IntN(n))
		for i := range v.ofStream(from, n) {
			if v.first(i) != from {
				b.Fatalf("frame %d for seq %d", i, from)
			}
			break
		}
	}
}

// TestViewsStay: what a reader looks at does not change while frames are added.
func TestViewsStay(t *testing.T) {
	table := newFrameTable()
	var views []view
	done := make(chan int)
	check := func(v view) (n int) {
		for i := range v.ofStream(0, v.next) {
			if v.stream(i) != "a" {
				return -1
			}
			n++
		}
		return n
	}
	for i := range uint32(3 * blockFrames) {
		table.add([]string{"a", "b"}[i%2], i, 24+100*i)
		if i%97 == 0 {
			v := view{id: 1, base: 1, next: segment.Seq(i) + 2, frames: table.frames, names: table.names, chain: table.chains[0]}
			views = append(views, v)
			go func() { done <- check(v) }()
		}
	}
	seen := map[int]bool{}
	for range views {
		seen[<-done] = true
	}
	for _, v := range views {
		if want := (v.frames.n + 1) / 2; !seen[want] || check(v) != want {
			t.Errorf("a view of %d frames has %d of the stream, %d wanted", v.frames.n, check(v), want)
		}
	}
}
