package localtier

import (
	"errors"
	"fmt"
	"testing"

	"github.com/strandline/strandline/segment"
)

var errPower = errors.New("power cut")

// cutOnce cuts at the n-th time that step comes by, and says when.
func cutOnce(step Step, n int) (func(Step) error, <-chan struct{}) {
	done := make(chan struct{})
	seen := 0
	return func(s Step) error {
		if s == step {
			if seen++; seen == n {
				close(done)
			}
			if seen >= n {
				return errPower
			}
		}
		return nil
	}, done
}

// TestCutPublish cuts the publish protocol after each of its steps, opens what the
// directory had at that moment, and looks for every acknowledged row.
func TestCutPublish(t *testing.T) {
	for _, step := range []Step{StepBuilt, StepSent, StepPlaced, StepAbsorbed, StepCheckpointed} {
		for _, n := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/%d", step, n), func(t *testing.T) {
				w := newWorld(t, 1)
				cut, at := cutOnce(step, n)
				wr := w.open("a", func(o *Options) { o.Cut = cut })
				s := wr.shards[0]
				w.mustAppend(wr, "x", AckLocal, names("x1", 3)...)
				w.mustAppend(wr, "y", AckLocal, names("y1", 3)...)
				mustSeal(t, s)
				w.mustAppend(wr, "x", AckLocal, names("x2", 3)...)
				mustSeal(t, s)
				<-at
				w.mustAppend(wr, "y", AckLocal, names("y2", 2)...)
				w.crash(wr, "a", "b")

				again := w.open("b")
				if again.shards[0].owner != s.owner || again.shards[0].term != 2 {
					t.Errorf("not resumed: %+v", again.Status()[0])
				}
				w.mustAppend(again, "x", AckShared, "after")
				w.mustClose(again)
				w.checkStored()
				w.mustClose(w.open("b"))
				w.checkStored()
			})
		}
	}
}

// TestCutTakeover cuts the taking of a chain by an empty directory after each step.
func TestCutTakeover(t *testing.T) {
	for _, step := range []Step{StepAcquired, StepFencePlaced, StepFenced} {
		t.Run(string(step), func(t *testing.T) {
			w := newWorld(t, 1)
			first := w.open("a")
			w.mustAppend(first, "x", AckShared, names("x", 3)...)
			abandon(t, first)

			cut, at := cutOnce(step, 1)
			_, err := w.tryOpen("b", func(o *Options) { o.Cut, o.Steal = cut, true })
			if !errors.Is(err, errPower) {
				t.Fatalf("cut at %q: %v", step, err)
			}
			<-at
			again := w.open("b") // its own lease lives: no steal needed
			w.mustAppend(again, "x", AckShared, names("z", 2)...)
			w.mustClose(again)
			w.checkStored()
		})
	}
}

// TestResumeKeepsEverySeq: an unclean stop with unpublished segments, twice.
func TestResumeKeepsEverySeq(t *testing.T) {
	w := newWorld(t, 1)
	var last segment.Seq
	for i := range 4 {
		cut, _ := cutOnce(StepBuilt, 1) // nothing is ever published
		wr := w.open("a", func(o *Options) { o.Cut = cut })
		for range 3 {
			res, err := wr.Append(t.Context(), "s", []segment.Row{{Payload: []byte(fmt.Sprint(last + 1))}}, AckLocal)
			if err != nil {
				t.Fatal(err)
			}
			if res.First != last+1 || res.Term != segment.Term(i+1) {
				t.Fatalf("start %d: %+v after seq %d", i, res, last)
			}
			last = res.Last
			w.acked["s"] = append(w.acked["s"], fmt.Sprint(last))
		}
		abandon(t, wr)
	}
	w.mustClose(w.open("a"))
	w.checkStored()
	if row := w.chain(0); row.NextSeq != last+1 {
		t.Errorf("the chain goes on at %d, %d rows were acknowledged", row.NextSeq, last)
	}
}

// TestEmptyDirectoryGoesOn: the disk is lost, what was published stays, and the
// chain goes on above it behind a fence.
func TestEmptyDirectoryGoesOn(t *testing.T) {
	w := newWorld(t, 1)
	wr := w.open("a")
	w.mustAppend(wr, "s", AckShared, names("s", 5)...)
	next := wr.Status()[0].NextSeq
	abandon(t, wr)

	b := w.open("b", func(o *Options) { o.Steal = true })
	res, err := b.Append(t.Context(), "s", []segment.Row{{Payload: []byte("six")}}, AckShared)
	if err != nil {
		t.Fatal(err)
	}
	if res.First != next || res.Term != 2 {
		t.Errorf("%+v, next seq was %d", res, next)
	}
	w.acked["s"] = append(w.acked["s"], "six")
	abandon(t, b)
	// The directory that fenced resumes like any other.
	again := w.open("b")
	if got := again.Status()[0]; got.Term != 3 {
		t.Errorf("%+v", got)
	}
	w.mustAppend(again, "s", AckShared, "seven")
	w.mustClose(again)
	w.checkStored()
}

func mustSeal(t *testing.T, s *shardLog) {
	t.Helper()
	if _, err := s.wal.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
}
