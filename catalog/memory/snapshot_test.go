package memory

import (
	"errors"
	"reflect"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// rows is all that a view shows, copied.
func rows(v View) (out []any) {
	out = append(out, v.Settings())
	for c := range v.Chains() {
		out = append(out, copyChain(c))
		for s := range v.Slots(c.Chain, 0) {
			out = append(out, *s)
		}
		for r := range v.Terms(c.Chain) {
			out = append(out, *r)
		}
	}
	for s := range v.Streams() {
		out = append(out, *s)
		for r := range v.StreamRefs(s.ID) {
			out = append(out, *r)
		}
	}
	for r := range v.RefsByKey() {
		out = append(out, *r)
	}
	for m := range v.Markers() {
		out = append(out, *m)
	}
	for in := range v.Intents() {
		out = append(out, copyIntent(in))
	}
	for a := range v.AuditRows() {
		out = append(out, a)
	}
	return out
}

// TestSnapshot: what was taken stands as it was, whatever happens after, and comes
// back as often as it is asked for.
func TestSnapshot(t *testing.T) {
	w := newWorld(t)
	w.Absorb("a:4 b:2")
	w.Settle("a")
	at, row := w.mem.Snapshot(), w.Row()
	want := rows(at.View())
	then := func() {
		t.Helper()
		w.Absorb("a:4 c:1")
		w.Settle("b")
		_, err := w.C.TrimStream(w.Ctx, "a", segment.Pos{Epoch: 1, Seq: 3})
		w.OK(err)
		if reflect.DeepEqual(rows(w.mem.Snapshot().View()), want) {
			t.Fatal("nothing happened")
		}
	}
	for range 2 {
		then()
		if got := rows(at.View()); !reflect.DeepEqual(got, want) {
			t.Fatalf("the snapshot changed:\n%+v\nwas\n%+v", got, want)
		}
		changes := w.mem.Changes()
		w.mem.Restore(at)
		w.ID, w.Next, w.Prev = row.AbsorbedEnd, row.NextSeq, row.LastUUID
		w.mem.View(func(v View) {
			if got := rows(v); !reflect.DeepEqual(got, want) {
				t.Fatalf("restored:\n%+v\nwas\n%+v", got, want)
			}
		})
		if w.mem.Changes() == changes {
			t.Fatal("a catalog that went back says that nothing changed")
		}
	}
	if refs := w.Refs("b"); len(refs) != 1 || refs[0].Kind != catalog.RefSlot {
		t.Fatalf("b after the roll back: %+v", refs)
	}
}

// TestView: it finds what its lists have.
func TestView(t *testing.T) {
	w := newWorld(t)
	w.Absorb("a:4 b:2")
	key := w.Settle("a")
	slot := segment.SlotKey(w.Chain, 1)
	w.mem.View(func(v View) {
		var named int
		for r := range v.RefsOf(key) {
			if r.Stream != "a" || v.LiveFrom(r) != (segment.Pos{}) {
				t.Errorf("ref %+v", r)
			}
			named++
		}
		if named != 1 || !v.Named(slot) || v.Named("none") {
			t.Errorf("named by %d; slot %v", named, v.Named(slot))
		}
		if row, owed := v.Slot(w.Chain, 1); row == nil || !owed || v.Chain(w.Chain).AbsorbedEnd != 2 {
			t.Errorf("slot %+v %v", row, owed)
		}
		if v.Marker(catalog.DutySettle, catalog.SettleID(w.Chain, 1)) == nil || v.Stream("a") == nil || v.Intent(key) != nil {
			t.Error("marker, stream or intent")
		}
		refs, slots, markers, intents := v.Count()
		if refs != 2 || slots != 1 || markers != 1 || intents != 0 {
			t.Errorf("%d refs, %d slots, %d markers, %d intents", refs, slots, markers, intents)
		}
	})
}

// TestCopies: nobody outside holds a row, or what a row was made of.
func TestCopies(t *testing.T) {
	w := newWorld(t)
	a := w.Build("a:4")
	a.Consumers = []segment.Consumer{{Name: "c", Cursor: 1}}
	got, err := w.C.AbsorbSlot(w.Ctx, a)
	w.OK(err)
	a.Consumers[0].Cursor, got.Chain.Consumers[0].Cursor = 77, 77
	a.Refs[0].Last = 77
	w.Row().Consumers[0].Cursor = 77
	rows, err := w.C.Chains(w.Ctx)
	w.OK(err)
	rows[0].Consumers[0].Cursor = 77
	if c := w.Row().Consumers[0].Cursor; c != 1 || w.Refs("a")[0].Last != 4 {
		t.Fatalf("cursor %d, ref %+v", c, w.Refs("a")[0])
	}
	tops, err := w.C.Topologies(w.Ctx)
	w.OK(err)
	tops[0].Buckets[0] = "other"
	if tops, err = w.C.Topologies(w.Ctx); err != nil || tops[0].Buckets[0] != "b1" {
		t.Fatalf("%+v, %v", tops, err)
	}
	w.Announce("obj/x", "n")
	w.OK(w.C.AddUpload(w.Ctx, "obj/x", "n", "u1"))
	in, err := w.C.Intent(w.Ctx, "obj/x")
	w.OK(err)
	in.Uploads[0] = "other"
	all, err := w.C.Intents(w.Ctx, "", 0)
	w.OK(err)
	if all[0].Uploads[0] != "u1" {
		t.Fatalf("uploads %v", all[0].Uploads)
	}
	all[0].Uploads[0] = "other"
	w.OK(w.C.DropUpload(w.Ctx, "obj/x", "n", "u1"))
}

// TestTakenBack: a verb that fails after it wrote leaves nothing, ids included.
func TestTakenBack(t *testing.T) {
	w := newWorld(t)
	w.Absorb("b:4")
	before := rows(w.mem.Snapshot().View())
	other := segment.Chain{Epoch: 1, Shard: 1}
	a := w.Build("a:1 b:1") // a is new; b's tip stands above
	_, err := w.C.AcquireChain(w.Ctx, catalog.Acquire{Chain: other, Owner: w.Owner, Lease: 1})
	w.OK(err)
	a.Slot.Chain, a.Slot.ID, a.Slot.First, a.Slot.Next, a.Slot.Prev = other, 1, 1, 3, segment.UUID{}
	a.Key, a.CallerTerm, a.Slot.Term = segment.SlotKey(other, 1), 1, 1
	for i := range a.Refs {
		r := &a.Refs[i]
		r.Chain, r.First, r.Last = other, segment.Seq(i+1), segment.Seq(i+1)
	}
	acquired := rows(w.mem.Snapshot().View())
	if _, err := w.C.AbsorbSlot(w.Ctx, a); !errors.Is(err, catalog.ErrConflict) {
		t.Fatalf("want a conflict, got %v", err)
	}
	if got := rows(w.mem.Snapshot().View()); !reflect.DeepEqual(got, acquired) || reflect.DeepEqual(got, before) {
		t.Fatalf("a verb that failed left\n%+v\nof\n%+v", got, acquired)
	}
	w.Absorb("z:1")
	s, err := w.C.Stream(w.Ctx, "z")
	w.OK(err)
	if s.ID != 2 {
		t.Fatalf("the next stream has id %d", s.ID)
	}
}

// TestUnknownKind: a ref of a kind that this build does not know stops deletes (K16).
func TestUnknownKind(t *testing.T) {
	w := newWorld(t)
	w.Absorb("a:4")
	known := w.Refs("a")[0]
	odd := known
	odd.Kind = "tape"
	w.OK(w.mem.write(w.Ctx, "odd", func(t *tx) error { t.putRef(&odd); return nil }))
	_, err := w.C.RetireRefs(w.Ctx, []catalog.Ref{odd})
	w.Is(err, catalog.ErrCorrupt, "")
	_, err = w.C.DueSlots(w.Ctx, w.Chain, 1)
	w.Is(err, catalog.ErrCorrupt, "")
	w.OK(w.mem.write(w.Ctx, "known", func(t *tx) error { t.putRef(&known); return nil }))
	_, err = w.C.DueSlots(w.Ctx, w.Chain, 1)
	w.OK(err)
}

// TestResolveSettledLease: the lease of a settle marker that was armed during the run
// is given back, so that the next look need not wait for its end.
func TestResolveSettledLease(t *testing.T) {
	w := newWorld(t)
	w.Absorb("a:4")
	ms, err := w.C.TakeDue(w.Ctx, catalog.Take{Duties: []catalog.Duty{catalog.DutySettle}, Owner: "x", Lease: 1 << 40, Limit: 1})
	w.OK(err)
	w.OK(w.C.ArmWatchers(w.Ctx, w.Refs("a")))
	n, err := w.C.ResolveSettled(w.Ctx, w.Chain, []catalog.MarkerRef{ms[0].MarkerRef})
	w.OK(err)
	m, _ := w.World.Marker(catalog.DutySettle, ms[0].ID)
	if n != 0 || m.LeaseOwner != "" || !m.LeaseEnd.IsZero() {
		t.Fatalf("resolved %d, %+v", n, m)
	}
}
