package catalogtest

import (
	"slices"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// testWindowRefs: a window ends before the first slot whose refs begin behind the bound,
// and is whole up to there.
func testWindowRefs(t *testing.T, open Open) {
	for _, c := range []struct{ bound, slots int }{{1, 1}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {100, 8}} {
		w := newWorld(t, open, Options{WindowRefs: c.bound})
		for range 4 {
			w.Absorb("a:2 b:1")
		}
		for range 4 {
			w.Absorb("a:1 b:1 c:1")
		}
		win, err := w.C.Window(w.Ctx, w.Chain, 1<<30)
		w.OK(err)
		Equal(t, "slots", len(win.Slots), c.slots)
		w.whole(win)
	}
}

// whole: a window has all live refs of its slots, and no others.
func (w *World) whole(win catalog.Window) {
	w.T.Helper()
	var want []string
	streams := map[int64]bool{}
	for i, s := range win.Slots {
		Equal(w.T, "slot", s.ID, win.Slots[0].ID+segment.ID(i))
		live, err := w.C.Liveness(w.Ctx, segment.SlotKey(w.Chain, s.ID))
		w.OK(err)
		for _, l := range live {
			if !l.Dead(l.LiveFrom) {
				want = append(want, l.Key+" "+l.Stream)
				streams[l.StreamID] = true
			}
		}
	}
	var got []string
	for _, r := range win.Refs {
		got = append(got, r.Key+" "+r.Stream)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.T.Fatalf("refs of the window: %q, want %q", got, want)
	}
	Equal(w.T, "streams with a live_from", len(win.LiveFrom), len(streams))
}

// testWindowRefsDead: what a trim gave up does not count.
func testWindowRefsDead(t *testing.T, open Open) {
	w := newWorld(t, open, Options{WindowRefs: 2})
	w.Absorb("a:1 b:1") // 1, 2
	w.Absorb("b:1")     // 3
	w.Absorb("c:1")     // 4
	w.Absorb("c:1 d:1")
	w.Absorb("c:1 d:1")
	for _, s := range []string{"a", "b"} {
		_, err := w.C.TrimStream(w.Ctx, s, mustStream(w, s).Last.Next())
		w.OK(err)
	}
	win, err := w.C.Window(w.Ctx, w.Chain, 1<<30)
	w.OK(err)
	Equal(t, "slots", len(win.Slots), 4)
	Equal(t, "refs", len(win.Refs), 3)
	w.whole(win)
	// A slot without live refs ends none: it costs nothing.
	_, err = w.C.TrimStream(w.Ctx, "d", segment.Pos{Epoch: 1, Seq: 9})
	w.OK(err)
	_, err = w.C.TrimStream(w.Ctx, "c", segment.Pos{Epoch: 1, Seq: 7})
	w.OK(err)
	w.Absorb("e:1 f:1")
	w.Absorb("g:1")
	_, err = w.C.TrimStream(w.Ctx, "g", mustStream(w, "g").Last.Next())
	w.OK(err)
	win, err = w.C.Window(w.Ctx, w.Chain, 1<<30) // c's at 7; e and f; nothing
	w.OK(err)
	Equal(t, "slots", len(win.Slots), 7)
	Equal(t, "refs", len(win.Refs), 3)
	w.whole(win)
}

// testWindowRefsNext: the next window begins where the one before ended.
func testWindowRefsNext(t *testing.T, open Open) {
	w := newWorld(t, open, Options{WindowRefs: 2})
	for range 3 {
		w.Absorb("a:1 b:1")
	}
	for id := segment.ID(1); id <= 3; id++ {
		win, err := w.C.Window(w.Ctx, w.Chain, 1<<30)
		w.OK(err)
		Equal(t, "slots", len(win.Slots), 1)
		Equal(t, "slot", win.Slots[0].ID, id)
		w.packSlot(id, 0, catalog.Next{})
		n, err := w.C.ResolveSettled(w.Ctx, w.Chain, []catalog.MarkerRef{win.Slots[0].Marker.MarkerRef})
		w.OK(err)
		Equal(t, "resolved", n, 1)
	}
}

// testPackWindowRefs: a window of packs ends with the one that reaches the bound; one
// that reaches it by itself is passed over, and what lies behind it is not.
func testPackWindowRefs(t *testing.T, open Open) {
	const large = "a:1 b:1 c:1 d:1"
	for _, c := range []struct {
		name   string
		packs  []string
		ask    int
		in     []int
		passed []int
		refs   int
	}{
		{"below", []string{"a:1", "a:1 b:1"}, 8, []int{0, 1}, nil, 3},
		{"reached", []string{"a:1 b:1", "a:1 b:1", "a:1"}, 8, []int{0, 1}, nil, 4},
		{"reached and more", []string{"a:1 b:1 c:1", "a:1 b:1 c:1", "a:1"}, 8, []int{0, 1}, nil, 6},
		{"the first is large", []string{large, "a:1", "b:1"}, 8, []int{1, 2}, []int{0}, 2},
		{"in the middle", []string{"a:1", large + " e:1", "b:1"}, 8, []int{0, 2}, []int{1}, 2},
		{"large alone", []string{large, large}, 8, nil, []int{0, 1}, 0},
		{"asked for two", []string{large, large, "a:1", "b:1", "c:1"}, 2, []int{2, 3}, []int{0, 1}, 2},
		{"asked for one", []string{large, "a:1", "b:1", "c:1"}, 1, []int{1}, []int{0}, 1},
		{"as many passed over as asked for", []string{large, large, large, large, "a:1"}, 2, nil, []int{0, 1, 2, 3}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, open, Options{WindowRefs: 4})
			var keys []string
			for _, spans := range c.packs {
				keys = append(keys, w.pack(spans, 3, catalog.Next{}))
			}
			named := func(at []int) (out []string) {
				for _, i := range at {
					out = append(out, keys[i])
				}
				return out
			}
			win, err := w.C.PackWindow(w.Ctx, w.Chain, 3, c.ask)
			w.OK(err)
			if !slices.Equal(win.Packs, named(c.in)) || !slices.Equal(win.Passed, named(c.passed)) {
				t.Fatalf("packs %q, passed over %q, want %v and %v of %q", win.Packs, win.Passed, c.in, c.passed, keys)
			}
			Equal(t, "refs", len(win.Refs), c.refs)
			for i := range win.Refs {
				if r := &win.Refs[i]; !slices.Contains(win.Packs, r.Key) || win.LiveFrom[r.StreamID] != (segment.Pos{}) {
					t.Fatalf("ref %+v in a window of %q", r, win.Packs)
				}
			}
		})
	}
	// What is dead in a large pack does not count.
	w := newWorld(t, open, Options{WindowRefs: 4})
	key := w.pack(large, 3, catalog.Next{})
	_, err := w.C.TrimStream(w.Ctx, "a", mustStream(w, "a").Last.Next())
	w.OK(err)
	win, err := w.C.PackWindow(w.Ctx, w.Chain, 3, 8)
	w.OK(err)
	Equal(t, "packs", len(win.Packs), 1)
	Equal(t, "key", win.Packs[0], key)
	Equal(t, "refs", len(win.Refs), 3)
}
