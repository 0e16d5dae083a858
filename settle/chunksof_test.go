package settle

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// TestChunksOf holds the search in a table against a look at every chunk.
func TestChunksOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	f := &segment.Footer{}
	for s := range 7 {
		for e := segment.Epoch(1); e <= 3; e++ {
			at := segment.Seq(1)
			for range rng.IntN(5) {
				at += segment.Seq(rng.IntN(3)) // gaps
				last := at + segment.Seq(rng.IntN(4))
				f.Chunks = append(f.Chunks, segment.Chunk{Stream: fmt.Sprintf("s%d", s), Epoch: e, First: at, Last: last})
				at = last + 1
			}
		}
	}
	found := 0
	for range 20_000 {
		of := &catalog.Ref{Stream: fmt.Sprintf("s%d", rng.IntN(9)-1)}
		of.Epoch = segment.Epoch(rng.IntN(5))
		first := segment.Seq(rng.IntN(25))
		last := first + segment.Seq(rng.IntN(10))
		var want []segment.Chunk
		for _, c := range f.Chunks {
			if c.Stream == of.Stream && c.Epoch == of.Epoch && c.Last >= first && c.First <= last {
				want = append(want, c)
			}
		}
		got := chunksOf(f, of, first, last)
		if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%s epoch %d, %d to %d: %v, want %v", of.Stream, of.Epoch, first, last, got, want)
		}
		found += len(got)
	}
	if found == 0 {
		t.Fatal("no chunk was ever found")
	}
}
