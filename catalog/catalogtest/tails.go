package catalogtest

import (
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// tailTarget is the target of the tail-fill in these cases: 40 rows.
const tailTarget = 40 * rowBytes

// commitNext is a rewrite that arms what next says, announced before.
func (w *World) commitNext(next catalog.Next, runs ...catalog.Run) catalog.Rewritten {
	w.T.Helper()
	key := runs[0].New.Key
	w.Announce(key, "nonce")
	got, err := w.C.CommitRewrite(w.Ctx, catalog.Rewrite{Key: key, Nonce: "nonce", Runs: runs, Next: next})
	w.OK(err)
	return got
}

// streamRun moves refs into the stream object that begins with them.
func streamRun(stream string, refs ...catalog.Ref) catalog.Run {
	rev := int32(-1)
	for _, r := range refs {
		rev = max(rev, r.Revision)
	}
	key := segment.StreamKey(stream, refs[0].Epoch, refs[0].First, uint32(rev+1))
	return Output(key, rev+1, catalog.RefStream, refs...)
}

// tail makes a stream object of this many rows of a, and gives its key.
func (w *World) tail(rows int) string {
	w.T.Helper()
	w.Absorb("a:" + itoa(rows))
	refs := w.Refs("a")
	run := streamRun("a", refs[len(refs)-1])
	w.commitNext(catalog.Next{}, run)
	return run.New.Key
}

// tailFills are the keys of the standing tail-fill markers.
func (w *World) tailFills() (keys []string) {
	w.T.Helper()
	ms, err := w.C.MarkersOf(w.Ctx, catalog.DutyTailFill, "", 0)
	w.OK(err)
	for _, m := range ms {
		keys = append(keys, m.ID)
	}
	return keys
}

// testTailFillArmed: the commit that sees a small tail right before its output arms it.
func testTailFillArmed(t *testing.T, open Open) {
	w := NewWorld(t, open)
	fill := catalog.Next{TailTarget: tailTarget}
	w.Absorb("a:8")
	w.commitNext(fill, streamRun("a", w.Refs("a")...))
	Equal(t, "nothing stands before the first", len(w.tailFills()), 0)
	tail := w.Refs("a")[0].Key
	w.Absorb("a:2 b:1")
	run := streamRun("a", w.Refs("a")[1])
	w.commitNext(fill, run)
	m, ok := w.Marker(catalog.DutyTailFill, tail)
	if !ok || !m.Due.Equal(w.Clock.Now()) || m.Class != segment.ClassStandard {
		t.Fatalf("tail-fill %+v %v", m, ok)
	}
	Equal(t, "markers", len(w.tailFills()), 1)
	Equal(t, "taken", w.takeOne(catalog.DutyTailFill).MarkerRef, m.MarkerRef)
	// A lost answer arms nothing: the commit had done so.
	got, err := w.C.CommitRewrite(w.Ctx, catalog.Rewrite{Key: run.New.Key, Nonce: "nonce", Runs: []catalog.Run{run}, Next: fill})
	w.OK(err)
	Equal(t, "already", got.Already, true)
	same, _ := w.Marker(catalog.DutyTailFill, tail)
	Equal(t, "version", same.Version, m.Version)
	// Another object right behind the tail, while its marker is held: not lost.
	w.Clock.Advance(time.Second)
	w.commitNext(fill, streamRun("a", w.Refs("a")[1]))
	again, _ := w.Marker(catalog.DutyTailFill, tail)
	if again.Version == m.Version || !again.Due.Equal(w.Clock.Now()) {
		t.Fatalf("armed again %+v, before %+v", again, m)
	}
	w.OK(w.C.Resolve(w.Ctx, m.MarkerRef))
	Equal(t, "the arm meanwhile stays", len(w.tailFills()), 1)
	// The tail is the object right before, not an earlier one.
	second := w.Refs("a")[1].Key
	w.Absorb("a:2")
	w.commitNext(fill, streamRun("a", w.Refs("a")[2]))
	if _, ok := w.Marker(catalog.DutyTailFill, second); !ok {
		t.Fatalf("tail-fills %v; want one of %s", w.tailFills(), second)
	}
	_, err = w.C.CommitRewrite(w.Ctx, catalog.Rewrite{Key: run.New.Key, Nonce: "nonce", Runs: []catalog.Run{run}, Next: catalog.Next{TailTarget: -1}})
	w.Is(err, catalog.ErrInvalid, "")
}

// testTailFillRules: which tails are worth it.
func testTailFillRules(t *testing.T, open Open) {
	fill := catalog.Next{TailTarget: tailTarget}
	behind := func(rows int, next catalog.Next) func(*World) {
		return func(w *World) {
			w.Absorb("a:" + itoa(rows))
			refs := w.Refs("a")
			w.commitNext(next, streamRun("a", refs[len(refs)-1]))
		}
	}
	for _, c := range []struct {
		name  string
		tail  int // rows
		act   func(*World)
		armed bool
	}{
		{"a quarter", 8, behind(2, fill), true},
		{"less than a quarter", 9, behind(2, fill), false},
		{"below the target", 39, behind(30, fill), true},
		{"at the target", 40, behind(30, fill), false},
		{"nobody asked", 8, behind(8, catalog.Next{}), false},
		{"a pack", 8, func(w *World) {
			w.Absorb("a:8")
			key := segment.PackKey(w.Chain, w.ID-1, w.ID-1, 0)
			w.commitNext(fill, Output(key, 0, catalog.RefPack, w.Refs("a")[1]))
		}, false},
		{"slots between", 8, func(w *World) {
			w.Absorb("a:8")
			behind(8, fill)(w)
		}, false},
		{"behind a pack", 8, func(w *World) {
			w.Absorb("a:8")
			key := segment.PackKey(w.Chain, w.ID-1, w.ID-1, 0)
			w.commitNext(fill, Output(key, 0, catalog.RefPack, w.Refs("a")[1]))
			behind(8, fill)(w)
		}, false},
		{"a lost tail", 8, func(w *World) {
			_, err := w.C.AcceptLoss(w.Ctx, w.Refs("a")[0].Key, "a")
			w.OK(err)
			behind(8, fill)(w)
		}, false},
		{"a dead tail", 8, func(w *World) {
			_, err := w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: 9})
			w.OK(err)
			behind(8, fill)(w)
		}, false},
		{"a dead tail by retention", 8, func(w *World) {
			w.Absorb("a:8")
			_, err := w.C.RaiseWatermark(w.Ctx, catalog.Watermark{Chain: w.Chain, Seq: 8, Segment: 1, Term: w.Term})
			w.OK(err)
			w.commitNext(fill, streamRun("a", w.Refs("a")...))
		}, false},
		{"its own object", 8, func(w *World) { // two runs side by side, of one output
			w.Absorb("b:1")
			w.Absorb("b:1")
			b := w.Refs("b")
			one, two := streamRun("b", b[0]), streamRun("b", b[1])
			two.New.Key = one.New.Key
			w.commitNext(fill, one, two)
		}, false},
		{"runs with a gap", 8, func(w *World) { // only the first is behind the tail
			for range 3 {
				w.Absorb("a:8")
			}
			a := w.Refs("a")
			one, three := streamRun("a", a[1]), streamRun("a", a[3])
			three.New.Key = one.New.Key
			w.commitNext(fill, one, three)
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWorld(t, open)
			key := w.tail(c.tail)
			c.act(w)
			got := w.tailFills()
			if armed := len(got) == 1 && got[0] == key; armed != c.armed || !c.armed && len(got) > 0 {
				t.Fatalf("tail-fills %v; want one of %s: %v", got, key, c.armed)
			}
		})
	}
}
