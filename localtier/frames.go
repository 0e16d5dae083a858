package localtier

import (
	"iter"
	"sort"

	"github.com/strandline/strandline/segment"
)

// frameAt is the place of one frame, 16 bytes. Nothing is kept of its rows: seqs have
// no holes, so they end where the next frame's begin.
type frameAt struct {
	off    uint32 // in the segment file, whose offsets fit 32 bits
	first  uint32 // its first seq less the segment's base: a row takes 3 bytes or more
	stream uint32 // number of its stream in this segment
	prev   uint32 // the frame before it of that stream, counted from 1; 0: none
}

const (
	// blockFrames entries are made room for at once: appending never copies what is
	// there, however large a segment grows, and wastes 16 KiB a segment at most.
	blockFrames = 1024
	// firstFrames is the first block's first length: most segments of an idle shard
	// hold a few frames.
	firstFrames = 16
	// chainStep is how many frames of a stream lie between two that can be found
	// without following the chain.
	chainStep = 64
)

// frames holds entries in seq order. Entries never change once they are there, so a
// copy of it stays right while frames are added behind it.
type frames struct {
	blocks [][]frameAt // each of its full length; the first one grows
	n      int
}

func (f *frames) at(i int) frameAt { return f.blocks[i/blockFrames][i%blockFrames] }

func (f *frames) add(e frameAt) {
	switch last := len(f.blocks) - 1; {
	case f.n == 0:
		f.blocks = [][]frameAt{make([]frameAt, firstFrames)}
	case f.n == len(f.blocks[0]) && f.n < blockFrames:
		// In a new outer slice: copies of f read the old one.
		bigger := make([]frameAt, min(4*f.n, blockFrames))
		copy(bigger, f.blocks[0])
		f.blocks = [][]frameAt{bigger}
	case f.n == last*blockFrames+len(f.blocks[last]):
		f.blocks = append(f.blocks, make([]frameAt, blockFrames))
	}
	f.blocks[f.n/blockFrames][f.n%blockFrames] = e
	f.n++
}

// chain leads through the frames of one stream, from the newest back. every makes it
// a list of short chains: the ends of each chainStep frames, the last few left out.
type chain struct {
	last  uint32 // number of its newest frame
	n     uint32
	every []uint32
}

func (c *chain) add(number uint32) {
	c.last = number
	if c.n++; c.n%chainStep == 0 {
		c.every = append(c.every, number)
	}
}

// frameTable is the index of one segment: its frames, and each of its streams once.
type frameTable struct {
	frames
	numbers map[string]uint32 // of streams
	names   []string          // by number; never changed once there
	chains  []chain           // by number
}

func newFrameTable() *frameTable { return &frameTable{numbers: make(map[string]uint32)} }

// add appends a frame. The name is kept only if it is new here.
func (t *frameTable) add(stream string, first, off uint32) {
	number, known := t.numbers[stream]
	if !known {
		number = uint32(len(t.names)) //nolint:gosec // frames, and so streams, fit 32 bits
		t.numbers[stream] = number
		t.names, t.chains = append(t.names, stream), append(t.chains, chain{})
	}
	c := &t.chains[number]
	e := frameAt{off: off, first: first, stream: number}
	if c.n > 0 {
		e.prev = c.last + 1
	}
	c.add(uint32(t.n)) //nolint:gosec // a segment of 2 GiB has fewer frames
	t.frames.add(e)
}

// view is what a reader sees of one segment's index, at one moment.
type view struct {
	id         segment.ID
	base, next segment.Seq // rows from base to before next
	frames     frames
	names      []string
	chain      chain // of the stream that was asked for; n is 0 if it is not here
}

// first is the first seq of frame i.
func (v *view) first(i int) segment.Seq { return v.base + segment.Seq(v.frames.at(i).first) }

// end is the seq after the last of frame i.
func (v *view) end(i int) segment.Seq {
	if i+1 < v.frames.n {
		return v.first(i + 1)
	}
	return v.next
}

func (v *view) stream(i int) string { return v.names[v.frames.at(i).stream] }

// all are the frames with rows of [from, to], in order.
func (v *view) all(from, to segment.Seq) iter.Seq[int] {
	return func(yield func(int) bool) {
		i := sort.Search(v.frames.n, func(i int) bool { return v.end(i) > from })
		for ; i < v.frames.n && v.first(i) <= to; i++ {
			if !yield(i) {
				return
			}
		}
	}
}

// ofStream are the stream's frames with rows of [from, to], in order: found in
// O(log n), then link by link, chainStep of them at a time turned round.
func (v *view) ofStream(from, to segment.Seq) iter.Seq[int] {
	return func(yield func(int) bool) {
		steps := (int(v.chain.n) + chainStep - 1) / chainStep
		step := sort.Search(steps, func(s int) bool { return v.end(v.chain.stepEnd(s)) > from })
		var links [chainStep]int
		for ; step < steps; step++ {
			for _, i := range v.links(step, &links) {
				if v.first(i) > to {
					return
				}
				if v.end(i) > from && !yield(i) {
					return
				}
			}
		}
	}
}

// stepEnd is the last frame of a step.
func (c *chain) stepEnd(step int) int {
	if step < len(c.every) {
		return int(c.every[step])
	}
	return int(c.last)
}

// links are the frames of one step, in order.
func (v *view) links(step int, buf *[chainStep]int) []int {
	n := min(chainStep, int(v.chain.n)-step*chainStep)
	i := v.chain.stepEnd(step)
	for k := n - 1; k >= 0; k-- {
		buf[k] = i
		i = int(v.frames.at(i).prev) - 1
	}
	return buf[:n]
}
