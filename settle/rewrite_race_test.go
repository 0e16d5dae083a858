package settle

import (
	"fmt"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// K7: a stream is trimmed, deleted, or given up by retention during each step of each
// rewrite. Nothing dead comes back, nothing live is lost, what nothing names is
// watched, and the marker ends.
func TestK7TrimsAgainstRewrites(t *testing.T) {
	trims := map[string]func(x *tier){
		"trim into it":                func(x *tier) { x.trim("s", x.rows["s"][len(x.rows["s"])-3].Seq) },
		"rm":                          func(x *tier) { x.remove("s") },
		"retention":                   func(x *tier) { x.retain(x.id - 1) },
		"retention of the first slot": func(x *tier) { x.retain(1) },
		"a trim whose walk comes later": func(x *tier) {
			_, err := x.db.TrimStream(x.t.Context(), "s", segment.Pos{Epoch: 1, Seq: x.rows["s"][len(x.rows["s"])-3].Seq})
			must(x.t, err)
		},
	}
	for _, sc := range scenes() {
		for _, at := range steps(sc) {
			for name, trim := range trims {
				t.Run(fmt.Sprintf("%s, %s, %s", sc.name, at, name), func(t *testing.T) {
					x := quickParts(t)
					sc.build(x)
					if name == "retention" {
						x.slot(write{stream: "later", rows: 1, size: 10}) // a chain's end is never given up
						x.settleNow()
						x.id--
						defer func() { x.id++ }()
					}
					m := x.taken(sc.duty)
					w, trimmed := stall(at, false, func() { trim(x) })
					if _, err := x.through(w).RunMarker(t.Context(), m, "settler-1"); err != nil || !*trimmed {
						t.Fatalf("trimmed %t, error %v", *trimmed, err)
					}
					x.walk("s")
					x.convergeDebts()
					x.holdsNothingDead(t)
					x.buries()
					x.holdsNothingOf(t, name)
				})
			}
		}
	}
}

// holdsNothingOf: zero bytes of a stream that was deleted stand in settled objects.
func (x *tier) holdsNothingOf(t *testing.T, trim string) {
	t.Helper()
	if trim != "rm" {
		return
	}
	for _, key := range x.objects("") {
		if k, err := segment.ParseKey(key); err != nil || k.Kind == segment.KeyStream && k.Stream == "s" {
			t.Errorf("%s stands, error %v", key, err)
		}
	}
}

// holdsNothingDead: no ref is dead once the walk has come by.
func (x *tier) holdsNothingDead(t *testing.T) {
	t.Helper()
	for _, r := range x.refs() {
		if r.Dead(r.LiveFrom) {
			t.Errorf("ref %s..%s of %q is dead", r.FirstPos(), r.LastPos(), r.Stream)
		}
	}
}

// gc and tail-fill meet at one object: either comes by the other, in every step of the
// other, and both end.
func TestGCAgainstTailFill(t *testing.T) {
	build := func(t *testing.T) (x *tier, gc, tail catalog.Marker) {
		x = quickParts(t)
		for _, rows := range []int{60, 40} {
			x.slot(write{stream: "s", rows: rows, size: 2000, noise: true})
			x.settleNow()
		}
		x.trim("s", 21)
		tail = x.taken(catalog.DutyTailFill)
		must(t, x.db.Arm(t.Context(), catalog.DutyGC, tail.ID, segment.ClassStandard, 0))
		return x, x.taken(catalog.DutyGC), tail
	}
	sc := scene{name: "", duty: catalog.DutyGC, reads: "Liveness"}
	for _, first := range []catalog.Duty{catalog.DutyGC, catalog.DutyTailFill} {
		for _, at := range steps(sc) {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s after=%t", first, at, after), func(t *testing.T) {
					x, a, b := build(t)
					if first == catalog.DutyTailFill {
						a, b = b, a
					}
					w, met := stall(at, after, func() {
						rep, err := x.settlerOn(x.multipart(x.mem), x.db, few()).RunMarker(t.Context(), b, "settler-2")
						if err != nil || len(rep.Failures) != 0 {
							t.Fatalf("the other: %+v, %v", rep, err)
						}
					})
					if _, err := x.through(w).RunMarker(t.Context(), a, "settler-1"); err != nil || !*met {
						t.Fatalf("met %t, error %v", *met, err)
					}
					x.convergeDebts()
					for _, r := range x.refsOf("s") {
						if r.Key == a.ID {
							t.Errorf("%s stays named", r.Key)
						}
					}
					x.buries()
				})
			}
		}
	}
}

// A lost race with an object that covers less: its rows are committed up to a whole row,
// the rest is moved by the next run, for the marker is due at once.
func TestWinnerThatCoversLessLeavesTheRestOwed(t *testing.T) {
	for _, sc := range scenes() {
		for _, cut := range []string{"at a ref's end", "inside a ref"} {
			t.Run(sc.name+" "+cut, func(t *testing.T) {
				x := quickParts(t)
				sc.build(x)
				m := x.taken(sc.duty)
				refs := x.refsOf("s")
				rows, live := x.rows["s"], 0
				for rows[live].Seq < refs[0].First || rows[live].Seq < x.liveFrom("s") {
					live++
				}
				end := live + 2
				if cut == "at a ref's end" {
					for end = live; rows[end].Seq <= refs[0].Last; end++ {
						if end == len(rows)-1 {
							end++
							break
						}
					}
				}
				x.craftAt(t, sc, rows[live:end])
				s := x.settlerOn(x.multipart(x.mem), x.db, few())
				rep, err := s.RunMarker(t.Context(), m, "settler-1")
				must(t, err)
				// A run whose head is cut swaps whole refs only: the winner is passed over.
				passed := cut == "inside a ref" && sc.duty == catalog.DutyGC
				if passed {
					if rep.Lost != 0 || rep.Resolved != 1 {
						t.Fatalf("report %+v", rep)
					}
				} else if rep.Lost != 1 || rep.Resolved != 0 || len(rep.Failures) != 0 || len(x.debts(sc.duty)) != 1 || x.debts(sc.duty)[0].Due.After(x.clock.Now()) {
					t.Fatalf("report %+v, markers %+v", rep, x.debts())
				}
				x.convergeDebts()
				for _, r := range x.refs() {
					if r.Stream == "s" && r.Key == refs[0].Key && sc.duty == catalog.DutyGC {
						t.Errorf("ref %s names %s still", r.FirstPos(), r.Key)
					}
				}
			})
		}
	}
}

// liveFrom is a stream's first live seq.
func (x *tier) liveFrom(stream string) segment.Seq {
	s, err := x.db.Stream(x.t.Context(), stream)
	must(x.t, err)
	return s.LiveFrom.Seq
}

// craftAt puts an object of these rows of s where the scene's policy will come to.
func (x *tier) craftAt(t *testing.T, sc scene, rows []segment.Row) {
	t.Helper()
	refs := x.refsOf("s")
	if refs[0].Kind == catalog.RefStream {
		x.craft(segment.StreamKey("s", 1, refs[0].First, 1), segment.ObjStream, "s", rows)
		return
	}
	last := refs[len(refs)-1].Key
	from, err := segment.ParseKey(refs[0].Key)
	must(t, err)
	to, err := segment.ParseKey(last)
	must(t, err)
	x.generation = 0
	if sc.duty == catalog.DutyPackMerge {
		x.generation = 1
	}
	x.craft(segment.PackKey(x.chain, from.ID, to.LastID, 1), segment.ObjPack, "s", rows)
}

// A winner of a merge with other rows is refused loudly, and nothing of it is swapped.
func TestWinnerOfARewriteWithOtherRows(t *testing.T) {
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			x := smallParts(t)
			sc.build(x)
			before := x.refsOf("s")
			rows := append([]segment.Row(nil), x.rows["s"]...)
			for len(rows) > 0 && rows[0].Seq < x.liveFrom("s") {
				rows = rows[1:]
			}
			rows[1].Payload = []byte("forged")
			x.craftAt(t, sc, rows[:before[0].Last-rows[0].Seq+1:len(rows)])
			rep, err := x.settlerOn(x.multipart(x.mem), x.db, few()).RunMarker(t.Context(), x.taken(sc.duty), "settler-1")
			must(t, err)
			if len(rep.Failures) == 0 || !segment.IsStructural(rep.Failures[0].Err) || rep.Resolved != 0 {
				t.Fatalf("report %+v", rep)
			}
			x.unmoved(t, before)
			x.corruptionIsAudited(t)
		})
	}
}

// No mover deletes, and none reads a whole source that it copies.
func TestRewritesDeleteNothing(t *testing.T) {
	for _, sc := range scenes() {
		x := smallParts(t)
		sc.build(x)
		w := &world{}
		_, err := x.through(w).RunMarker(t.Context(), x.taken(sc.duty), "settler-1")
		must(t, err)
		if n := w.calls(string(objstore.OpDelete)) + w.calls(string(objstore.OpAbort)); n != 0 {
			t.Errorf("%s: %d deletes and aborts", sc.name, n)
		}
	}
}
