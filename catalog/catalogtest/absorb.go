package catalogtest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func testAbsorb(t *testing.T, open Open) {
	w := NewWorld(t, open)
	got := w.Absorb("a:3 b:2")
	Equal(t, "inserted", got.Inserted, 2)
	Equal(t, "absorbed_end", got.Chain.AbsorbedEnd, 2)
	Equal(t, "next seq", got.Chain.NextSeq, 6)
	w.Clock.Advance(time.Second)
	sealed := w.Clock.Now().Add(-time.Second)
	w.Absorb("a:1 a:2 b:1") // two chunks of one stream
	a := w.Refs("a")
	Equal(t, "refs of a", len(a), 3)
	for i, want := range []segment.Seq{0, 3, 6} {
		Equal(t, "prev_last", a[i].PrevLast.Seq, want)
	}
	Equal(t, "key", a[2].Key, segment.SlotKey(w.Chain, 2))
	Equal(t, "class", a[2].Class, class)
	Equal(t, "kind", a[2].Kind, catalog.RefSlot)
	Equal(t, "sum", a[0].Sum, 1<<63+5)
	Equal(t, "row sum", a[0].RowSum, rowHash(1)+rowHash(2)+rowHash(3))
	Equal(t, "stream id", a[0].StreamID, a[2].StreamID)
	s, err := w.C.Stream(w.Ctx, "a")
	w.OK(err)
	Equal(t, "tip", s.Last, segment.Pos{Epoch: 1, Seq: 8})
	row := w.Row()
	Equal(t, "transit bytes", row.TransitBytes, 2000)
	Equal(t, "transit since", row.TransitSince, sealed)
	Equal(t, "last uuid", row.LastUUID, UUID(1002))
	Equal(t, "settle markers", len(w.SettleMarkers()), 2)
	m, ok := w.Marker(catalog.DutySettle, catalog.SettleID(w.Chain, 1))
	if !ok || m.Due.After(w.Clock.Now()) || m.Class != class {
		t.Fatalf("settle marker %+v", m)
	}
	terms, err := w.C.Terms(w.Ctx, w.Chain)
	w.OK(err)
	Equal(t, "term row", terms[0], catalog.TermRow{Chain: w.Chain, Term: 1, Owner: w.Owner, First: 1, Last: 2, LastSeq: 9})
	w.Absorb("") // a fence: no rows
	Equal(t, "next seq after a fence", w.Row().NextSeq, 10)
	slots, err := w.C.Slots(w.Ctx, w.Chain, 2, 10)
	w.OK(err)
	Equal(t, "slots from 2", len(slots), 2)
	Equal(t, "digest", slots[0].Digest, 0xfedcba9876543210+2)
	Equal(t, "prev", slots[1].Prev, UUID(1002))
}

func testAbsorbGuards(t *testing.T, open Open) {
	for _, c := range []struct {
		name, guard string
		kind        error
		change      func(*catalog.Absorb)
	}{
		{"position ahead", "absorbed_end", catalog.ErrConflict, func(a *catalog.Absorb) { a.Slot.ID++; a.Key = segment.SlotKey(a.Slot.Chain, a.Slot.ID) }},
		{"term below the last slot's", "term of the last absorbed slot", catalog.ErrConflict, func(a *catalog.Absorb) { a.Slot.Term = 1 }},
		{"term above the chain's", "term of the chain", catalog.ErrConflict, func(a *catalog.Absorb) { a.Slot.Term = 3 }},
		{"wrong previous UUID", "previous UUID", catalog.ErrConflict, func(a *catalog.Absorb) { a.Slot.Prev = UUID(5) }},
		{"caller fenced", "caller's term", catalog.ErrFenced, func(a *catalog.Absorb) { a.CallerTerm = 1 }},
		{"caller is not the owner", "caller's term", catalog.ErrFenced, func(a *catalog.Absorb) { a.CallerOwner = UUID(8) }},
		{"catalog lost terms", "caller's term", catalog.ErrConflict, func(a *catalog.Absorb) { a.CallerTerm = 9 }},
		{"no such chain", "", catalog.ErrNotFound, func(a *catalog.Absorb) {
			a.Slot.Epoch = 9
			a.Key, a.Refs[0].Epoch = segment.SlotKey(a.Slot.Chain, a.Slot.ID), 9
		}},
		{"void by a stranger while the lease lives", "right to void", catalog.ErrConflict, func(a *catalog.Absorb) { a.Void, a.CallerOwner, a.CallerTerm = true, segment.UUID{}, 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWorld(t, open)
			w.Absorb("a:1")
			w.reacquire(w.Owner)
			w.Absorb("a:1") // the last slot has term 2, as has the chain
			a := w.Build("a:2")
			c.change(&a)
			before := w.Row()
			_, err := w.C.AbsorbSlot(w.Ctx, a)
			w.Is(err, c.kind, c.guard)
			Equal(t, "absorbed_end unchanged", w.Row().AbsorbedEnd, before.AbsorbedEnd)
			Equal(t, "refs unchanged", len(w.Refs("a")), 2)
			_, err = w.C.AbsorbSlot(w.Ctx, w.Build("a:2"))
			w.OK(err)
		})
	}
	t.Run("seqs do not continue", func(t *testing.T) {
		w := NewWorld(t, open)
		w.Absorb("a:1")
		w.Next += 2
		_, err := w.C.AbsorbSlot(w.Ctx, w.Build("a:2"))
		w.Is(err, catalog.ErrConflict, "seq continuity")
	})
	t.Run("first slot of a chain has no previous", func(t *testing.T) {
		w := NewWorld(t, open)
		w.Prev = UUID(4)
		_, err := w.C.AbsorbSlot(w.Ctx, w.Build("a:2"))
		w.Is(err, catalog.ErrConflict, "previous UUID")
	})
}

// reacquire makes owner the chain's, at the next term.
func (w *World) reacquire(owner segment.UUID) {
	w.T.Helper()
	row, err := w.C.AcquireChain(w.Ctx, catalog.Acquire{Chain: w.Chain, Owner: owner, Lease: leaseTime, Expect: w.Term, Steal: true})
	w.OK(err)
	w.Owner, w.Term = owner, row.Term
}

func testAbsorbInvalid(t *testing.T, open Open) {
	w := NewWorld(t, open)
	for name, change := range map[string]func(*catalog.Absorb){
		"no position":       func(a *catalog.Absorb) { a.Slot.ID = 0 },
		"another's key":     func(a *catalog.Absorb) { a.Key = segment.SlotKey(a.Slot.Chain, 77) },
		"no uuid":           func(a *catalog.Absorb) { a.Slot.UUID = segment.UUID{} },
		"no term":           func(a *catalog.Absorb) { a.Slot.Term = 0 },
		"row says void":     func(a *catalog.Absorb) { a.Slot.Void = true },
		"next below first":  func(a *catalog.Absorb) { a.Slot.Next = 0 },
		"rows missing":      func(a *catalog.Absorb) { a.Refs[0].Rows-- },
		"chunk missing":     func(a *catalog.Absorb) { a.Refs = a.Refs[:1] },
		"chunk outside":     func(a *catalog.Absorb) { a.Refs[1].Last += 5 },
		"chunks disordered": func(a *catalog.Absorb) { a.Refs[0], a.Refs[1] = a.Refs[1], a.Refs[0] },
		"chunk of a pack":   func(a *catalog.Absorb) { a.Refs[0].Kind = catalog.RefPack },
		"other chain":       func(a *catalog.Absorb) { a.Refs[0].Shard = 1 },
	} {
		a := w.Build("a:2 b:2")
		change(&a)
		if _, err := w.C.AbsorbSlot(w.Ctx, a); !errors.Is(err, catalog.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	Equal(t, "absorbed_end", w.Row().AbsorbedEnd, 1)
}

// testAbsorbAgain: a position below absorbed_end is answered only to who may hear it.
func testAbsorbAgain(t *testing.T, open Open) {
	w := NewWorld(t, open)
	a := w.Build("a:2")
	w.Absorb("a:2")
	again := func(change func(*catalog.Absorb)) (catalog.Absorbed, error) {
		b := a
		change(&b)
		return w.C.AbsorbSlot(w.Ctx, b)
	}
	got, err := again(func(*catalog.Absorb) {})
	w.OK(err)
	Equal(t, "already", got.Already, true)
	Equal(t, "refs", len(w.Refs("a")), 1)
	got, err = again(func(b *catalog.Absorb) { b.CallerOwner, b.CallerTerm = segment.UUID{}, 0 })
	w.OK(err)
	Equal(t, "already, to one who acknowledges nothing", got.Already, true)
	_, err = again(func(b *catalog.Absorb) { b.Slot.UUID = UUID(5) })
	w.Is(err, catalog.ErrFenced, "slot at position")
	_, err = again(func(b *catalog.Absorb) { b.Slot.Digest++ })
	w.Is(err, catalog.ErrFenced, "slot at position")
	_, err = again(func(b *catalog.Absorb) { b.Void = true })
	w.Is(err, catalog.ErrConflict, "slot at position")

	old, oldTerm := w.Owner, w.Term
	w.reacquire(UUID(2))
	_, err = again(func(b *catalog.Absorb) { b.CallerOwner, b.CallerTerm = old, oldTerm })
	w.Is(err, catalog.ErrFenced, "caller's term")
	got, err = again(func(b *catalog.Absorb) { b.CallerOwner, b.CallerTerm = w.Owner, w.Term })
	w.OK(err)
	Equal(t, "already, to the successor", got.Already, true)
}

func testAbsorbVoid(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:2")
	before := w.Row()
	bad := w.Build("a:3")
	bad.Slot.Prev, bad.Void, bad.Reason = UUID(77), true, "does not link"
	got, err := w.C.AbsorbSlot(w.Ctx, bad)
	w.OK(err)
	row := w.Row()
	Equal(t, "absorbed_end moves", row.AbsorbedEnd, before.AbsorbedEnd+1)
	Equal(t, "answer", got.Chain.AbsorbedEnd, row.AbsorbedEnd)
	if row.LastUUID != before.LastUUID || row.NextSeq != before.NextSeq || row.LastTerm != before.LastTerm || row.TransitBytes != before.TransitBytes {
		t.Fatalf("only absorbed_end moves: %+v", row)
	}
	m, ok := w.Marker(catalog.DutySettle, catalog.SettleID(w.Chain, 2))
	if !ok || m.Due.Before(w.Clock.Now().AddDate(50, 0, 0)) || m.LastError == "" {
		t.Fatalf("parked marker %+v %v", m, ok)
	}
	rows, err := w.C.AuditRows(w.Ctx, 0, 10)
	w.OK(err)
	Equal(t, "audit rows", len(rows), 1)
	Equal(t, "audit kind", rows[0].Kind, "void")

	got, err = w.C.AbsorbSlot(w.Ctx, bad)
	w.OK(err)
	Equal(t, "void again", got.Already, true)
	notVoid := bad
	notVoid.Void = false
	_, err = w.C.AbsorbSlot(w.Ctx, notVoid)
	w.Is(err, catalog.ErrVoid, "slot at position")

	// The chain goes on behind it, linked to the last slot that counts. A stray
	// without rows owes nobody anything; anyone may void it after the lease's end.
	w.ID++
	w.Clock.Advance(leaseTime)
	stray := w.Build("")
	stray.Void, stray.Reason, stray.Slot.Term = true, "late fence", 0
	stray.CallerOwner, stray.CallerTerm = segment.UUID{}, 0
	_, err = w.C.AbsorbSlot(w.Ctx, stray)
	w.OK(err)
	_, ok = w.Marker(catalog.DutySettle, catalog.SettleID(w.Chain, 3))
	Equal(t, "marker of a stray without rows", ok, false)
	w.ID++
	w.Absorb("a:1")
	Equal(t, "refs", len(w.Refs("a")), 2)

	// Nothing passes the parked one, and ResolveSettled does not resolve it.
	w.Settle("a")
	n, err := w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	Equal(t, "resolved", n, 2)
	row, err = w.C.AdvanceRewritten(w.Ctx, w.Chain, 0)
	w.OK(err)
	Equal(t, "rewritten stops at the void slot", row.Rewritten, 2)
	win, err := w.C.Window(w.Ctx, w.Chain, 1<<30)
	w.OK(err)
	Equal(t, "window", len(win.Slots), 0)
}

func testAbsorbConsumers(t *testing.T, open Open) {
	w := NewWorld(t, open)
	send := func(cs ...segment.Consumer) {
		t.Helper()
		a := w.Build("a:5")
		a.Consumers = cs
		_, err := w.C.AbsorbSlot(w.Ctx, a)
		w.OK(err)
		w.Continue(a)
	}
	armed := func() int64 {
		m, _ := w.Marker(catalog.DutyTrimCheck, catalog.ChainID(w.Chain))
		return m.Version
	}
	send()
	Equal(t, "no consumer, no trim-check", armed(), 0)
	send(segment.Consumer{Name: "x", Cursor: 1}, segment.Consumer{Name: "y", Cursor: 5})
	first := armed()
	if first == 0 {
		t.Fatal("a consumer came: trim-check is armed")
	}
	send(segment.Consumer{Name: "x", Cursor: 1}, segment.Consumer{Name: "y", Cursor: 9})
	Equal(t, "slowest did not move", armed(), first)
	send(segment.Consumer{Name: "x", Cursor: 8}, segment.Consumer{Name: "y", Cursor: 9})
	if armed() == first {
		t.Fatal("slowest moved: trim-check is armed again")
	}
	send(segment.Consumer{Name: "x", Cursor: 3})
	row := w.Row()
	Equal(t, "consumers", len(row.Consumers), 1)
	Equal(t, "a cursor never goes back", row.Consumers[0].Cursor, 8)
}

func testAbsorbClosed(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:2")
	a := w.Build("")
	a.Slot.Closed = true
	_, err := w.C.AbsorbSlot(w.Ctx, a)
	w.OK(err)
	w.Continue(a)
	Equal(t, "closed", w.Row().Closed, true)
	_, err = w.C.AbsorbSlot(w.Ctx, w.Build("a:1"))
	w.Is(err, catalog.ErrConflict, "chain open")
	_, err = w.C.AcquireChain(w.Ctx, catalog.Acquire{Chain: w.Chain, Owner: w.Owner, Lease: leaseTime, Expect: w.Term, Resume: true})
	w.Is(err, catalog.ErrConflict, "chain open")
}

// testAbsorbDead: a stream keeps its name's id and its live_from for ever.
func testAbsorbDead(t *testing.T, open Open) {
	w := NewWorld(t, open)
	w.Absorb("a:4")
	before, err := w.C.DeleteStream(w.Ctx, "a")
	w.OK(err)
	Equal(t, "deleted", before.Deleted, true)
	Equal(t, "live_from", before.LiveFrom, segment.Pos{Epoch: 1, Seq: 5})
	got := w.Absorb("a:2")
	Equal(t, "dead", got.Dead, 0)
	s, err := w.C.Stream(w.Ctx, "a")
	w.OK(err)
	Equal(t, "id", s.ID, before.ID)
	Equal(t, "listed again", s.Deleted, false)
	Equal(t, "live_from stays", s.LiveFrom, before.LiveFrom)
	Equal(t, "refs", len(w.Refs("a")), 1)
	Equal(t, "prev_last", w.Refs("a")[0].PrevLast, segment.Pos{Epoch: 1, Seq: 4})
}

// testAbsorbPlain: a topology that does not settle owes no settle.
func testAbsorbPlain(t *testing.T, open Open) {
	w := NewWorld(t, open)
	_, err := w.C.EnsureTopology(w.Ctx, topology(2, false))
	w.OK(err)
	w.Chain = segment.Chain{Epoch: 2}
	w.Term = 0
	w.reacquire(UUID(1))
	w.Absorb("a:2")
	Equal(t, "settle markers", len(w.SettleMarkers()), 0)
	Equal(t, "transit bytes", w.Row().TransitBytes, 0)
	Equal(t, "refs", len(w.Refs("a")), 1)
	row, err := w.C.AdvanceRewritten(w.Ctx, w.Chain, 0)
	w.OK(err)
	Equal(t, "rewritten: retention gave nothing up", row.Rewritten, 1)
}

// testAbsorbRace: many absorb the same slots at once; each enters the history once.
func testAbsorbRace(t *testing.T, open Open) {
	w := NewWorld(t, open)
	const clients, slots = 8, 10
	for range slots {
		a := w.Build("a:2 b:1")
		var wg sync.WaitGroup
		var mu sync.Mutex
		first := 0
		for i := range clients {
			b := a
			b.Refs = append([]catalog.Ref(nil), a.Refs...)
			if i%2 == 1 { // the auditor's absorb-check
				b.CallerOwner, b.CallerTerm = segment.UUID{}, 0
			}
			wg.Go(func() {
				got, err := w.C.AbsorbSlot(w.Ctx, b)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("absorb of %d: %v", b.Slot.ID, err)
				} else if !got.Already {
					first++
				}
			})
		}
		wg.Wait()
		Equal(t, "first absorbs", first, 1)
		w.Continue(a)
	}
	Equal(t, "refs of a", len(w.Refs("a")), slots)
	Equal(t, "transit bytes", w.Row().TransitBytes, slots*1000)
}

// testK1: a fenced writer creates a key again that was trimmed long ago; the absorb
// fails loudly, and nothing is acknowledged.
func testK1(t *testing.T, open Open) {
	w := NewWorld(t, open)
	zombie := w.Build("a:2")
	w.Absorb("a:2")
	old, oldTerm := w.Owner, w.Term
	w.reacquire(UUID(2))
	w.Absorb("b:1")
	w.trimAll()
	Equal(t, "trimmed past the zombie's position", w.Row().Trimmed > zombie.Slot.ID, true)
	zombie.CallerOwner, zombie.CallerTerm = old, oldTerm
	_, err := w.C.AbsorbSlot(w.Ctx, zombie)
	w.Is(err, catalog.ErrFenced, "caller's term")
	other := zombie
	other.Slot.UUID = UUID(444)
	_, err = w.C.AbsorbSlot(w.Ctx, other)
	w.Is(err, catalog.ErrFenced, "caller's term")
	// Nor does the slot row that is gone speak for anyone else.
	other.CallerOwner, other.CallerTerm = segment.UUID{}, 0
	_, err = w.C.AbsorbSlot(w.Ctx, other)
	w.Is(err, catalog.ErrFenced, "slot at position")
	// The present owner, of whose present term the position is not, either.
	other.CallerOwner, other.CallerTerm = w.Owner, w.Term
	_, err = w.C.AbsorbSlot(w.Ctx, other)
	w.Is(err, catalog.ErrFenced, "slot at position")
	Equal(t, "refs of a", len(w.Refs("a")), 1)
}

// trimAll settles every stream, and runs the trim-check until nothing is due.
func (w *World) trimAll() {
	w.T.Helper()
	streams, err := w.C.Streams(w.Ctx, "", 0)
	w.OK(err)
	for _, s := range streams {
		if len(w.Refs(s.Name)) > 0 {
			w.Settle(s.Name)
		}
	}
	w.trimSettled()
}

// trimSettled trims the slots that no ref names, up to the first that one does.
func (w *World) trimSettled() {
	w.T.Helper()
	_, err := w.C.ResolveSettled(w.Ctx, w.Chain, w.SettleMarkers())
	w.OK(err)
	row, err := w.C.AdvanceRewritten(w.Ctx, w.Chain, 0)
	w.OK(err)
	m, ok := w.Marker(catalog.DutyTrimCheck, catalog.ChainID(w.Chain))
	if !ok {
		w.T.Fatal("no trim-check stands")
	}
	_, err = w.C.CondemnSlots(w.Ctx, m.MarkerRef, w.Chain, row.Condemned, row.Rewritten)
	w.OK(err)
	w.Clock.Advance(readGrace)
	_, err = w.C.AdvanceTrim(w.Ctx, w.Chain, row.Trimmed, row.Rewritten)
	w.OK(err)
}
