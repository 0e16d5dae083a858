package check_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/segment"
)

// slotRows changes what the catalog says it absorbed at position 1.
type slotRows struct {
	check.Catalog
	change func(s *catalog.SlotRow)
}

func (s *slotRows) Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error) {
	rows, err := s.Catalog.Slots(ctx, c, from, limit)
	for i := range rows {
		if rows[i].ID == 1 {
			s.change(&rows[i])
		}
	}
	return rows, err
}

// TestSlotsAgainstRows: an object at a position that is not the one absorbed there. While
// refs name it that is damage, afterwards a slot that no owner may fill its disk from.
func TestSlotsAgainstRows(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *catalog.SlotRow)
		why    string
	}{
		"uuid":   {func(s *catalog.SlotRow) { s.UUID = uuid.Nil }, "absorbed was"},
		"digest": {func(s *catalog.SlotRow) { s.Digest++ }, "absorbed was"},
		"term":   {func(s *catalog.SlotRow) { s.Term++ }, "term"},
		"end":    {func(s *catalog.SlotRow) { s.Next++ }, "ends before seq"},
	} {
		t.Run(name, func(t *testing.T) {
			x := tier(t)
			cat := &slotRows{x.Catalog, c.change}
			r := walk(t, x, cat, check.Config{})
			if r.Verdict != check.Damage || r.DamageTotal != int64(len(names)) || r.Damage[0].Key != segment.SlotKey(x.Chain, 1) || !strings.Contains(r.Damage[0].Why, c.why) {
				t.Fatalf("%+v", *r)
			}
			x.Settle(1)
			r = walk(t, x, cat, check.Config{})
			if r.Verdict != check.Rotten || r.RottenTotal != 1 || r.Rotten[0].Key != segment.SlotKey(x.Chain, 1) || !strings.Contains(r.Rotten[0].Why, c.why) {
				t.Fatalf("%+v", *r)
			}
		})
	}
}

// TestSlotMetadata: what a HEAD says of whose rows stand there.
func TestSlotMetadata(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	key := segment.SlotKey(x.Chain, 1)
	body := read(x, key)
	f, _, err := segment.OpenTail(body, int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	meta := f.Slot.Meta()
	for _, right := range []bool{true, false} {
		if !right {
			meta.UUID = uuid.New()
		}
		x.Delete(key)
		if _, err := x.Store.PutOnce(t.Context(), key, body, meta.Map()); err != nil {
			t.Fatal(err)
		}
		r := must(t, x)
		if right && r.Verdict != check.Clean || !right && (r.Verdict != check.Rotten || !strings.Contains(r.Rotten[0].Why, "metadata")) {
			t.Fatalf("%t: %+v", right, *r)
		}
	}
}

// TestRestingSlots: a slot whose rows are settled, and which its chain has not given up.
func TestRestingSlots(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	key := segment.SlotKey(x.Chain, 2)
	body := read(x, key)
	rotten := func(r *check.Report, why string) {
		t.Helper()
		if r.Verdict != check.Rotten || r.RottenTotal != 1 || r.Rotten[0].Key != key || !strings.Contains(r.Rotten[0].Why, why) {
			t.Fatalf("%+v", *r)
		}
	}
	replace(x, key, body[:len(body)-1])
	rotten(must(t, x), "corrupt")
	replace(x, key, flipIn(t, body, "a"))
	garbage(t, must(t, x), "")
	rotten(deep(t, x), "chunk at byte")
	x.Delete(key)
	rotten(must(t, x), "has not condemned it")
	// From condemned on the trim-check deletes it.
	x.CondemnSlots()
	garbage(t, must(t, x), "")
}

// owing makes a settle marker stand for a slot, as that of a void slot does.
type owing struct{ slotRows }

func (o *owing) Marker(ctx context.Context, d catalog.Duty, id string) (catalog.Marker, error) {
	if d == catalog.DutySettle {
		return catalog.Marker{}, nil
	}
	return o.Catalog.Marker(ctx, d, id)
}

// TestMissingSlotThatOwes: of a void slot, rows are gone that waited for a person.
func TestMissingSlotThatOwes(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	x.Delete(segment.SlotKey(x.Chain, 1))
	r := walk(t, x, &owing{slotRows{x.Catalog, func(s *catalog.SlotRow) { s.Void = true }}}, check.Config{})
	damaged(t, r, check.DamageItem{First: 1, Last: 24, Key: segment.SlotKey(x.Chain, 1), Why: "void"})
	r = walk(t, x, &owing{slotRows{x.Catalog, func(*catalog.SlotRow) {}}}, check.Config{})
	if r.Verdict != check.Rotten || !strings.Contains(r.Rotten[0].Why, "still owes a settle") {
		t.Fatalf("%+v", *r)
	}
}

// TestLostSlotWaits: a slot whose last rows were accepted as lost waits for its settle. One
// of whose rows nobody said so does not, whatever was accepted of its neighbours.
func TestLostSlotWaits(t *testing.T) {
	x := tier(t)
	x.Slot(tiertest.Write{Stream: "late", Rows: 3, Size: 50})
	lost := segment.SlotKey(x.Chain, 2)
	for _, name := range names {
		if _, err := x.Catalog.AcceptLoss(t.Context(), lost, name); err != nil {
			t.Fatal(err)
		}
	}
	x.Delete(lost)
	r := must(t, x)
	if r.RottenTotal != 0 || r.DamageTotal != 0 || r.LostTotal != int64(len(names)) {
		t.Fatalf("%+v", *r)
	}
	for id := segment.ID(1); id <= 3; id += 2 {
		// Its rows were trimmed away: the slot still owes its settle.
		x := tier(t)
		x.Slot(tiertest.Write{Stream: "late", Rows: 3, Size: 50})
		if _, err := x.Catalog.AcceptLoss(t.Context(), lost, "a"); err != nil {
			t.Fatal(err)
		}
		key := segment.SlotKey(x.Chain, id)
		for name, rows := range x.Rows {
			end := rows[0].Seq + 4 // behind its rows in slot 1, or in slot 3
			if name == "late" && id == 1 || name != "late" && id == 3 {
				continue
			}
			if _, err := x.Catalog.TrimStream(t.Context(), name, segment.Pos{Epoch: 1, Seq: min(end, rows[len(rows)-1].Seq+1)}); err != nil {
				t.Fatal(err)
			}
			x.Walk(name)
		}
		x.Delete(key)
		if r := must(t, x); r.RottenTotal != 1 || r.Rotten[0].Key != key || !strings.Contains(r.Rotten[0].Why, "still owes a settle") {
			t.Fatalf("slot %d: %+v", id, *r)
		}
	}
}

// chainSays changes a chain's row.
type chainSays struct {
	check.Catalog
	change func(r *catalog.ChainRow)
}

func (c *chainSays) Chains(ctx context.Context) ([]catalog.ChainRow, error) {
	rows, err := c.Catalog.Chains(ctx)
	for i := range rows {
		c.change(&rows[i])
	}
	return rows, err
}

func TestChainRows(t *testing.T) {
	x := tier(t)
	for name, c := range map[string]struct {
		change func(r *catalog.ChainRow)
		why    string
	}{
		"cursors":           {func(r *catalog.ChainRow) { r.Trimmed = 2 }, "not in order"},
		"term":              {func(r *catalog.ChainRow) { r.LastTerm = 9 }, "of term 9"},
		"watermark":         {func(r *catalog.ChainRow) { r.WatermarkSeq = 49 }, "beyond its last row 48"},
		"watermark segment": {func(r *catalog.ChainRow) { r.WatermarkSeq, r.WatermarkSegment = 48, 3 }, "slot 3 is not absorbed"},
		"consumer":          {func(r *catalog.ChainRow) { r.Consumers = []segment.Consumer{{Name: "c", Cursor: 49}} }, `consumer "c"`},
		"twice":             {func(r *catalog.ChainRow) { r.Consumers = []segment.Consumer{{Name: "c"}, {Name: "c"}} }, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			r := walk(t, x, &chainSays{x.Catalog, c.change}, check.Config{})
			found := false
			for _, d := range r.Damage {
				found = found || strings.Contains(d.Why, c.why) && strings.HasPrefix(d.Why, "chain 00000001.00000000")
			}
			if r.Verdict != check.Damage || !found {
				t.Fatalf("%+v", *r)
			}
		})
	}
	r := walk(t, x, &chainSays{x.Catalog, func(r *catalog.ChainRow) {
		r.WatermarkSeq, r.WatermarkSegment, r.Consumers = 0, 0, []segment.Consumer{{Name: "c", Cursor: 48}, {Name: "d"}}
	}}, check.Config{})
	if r.Verdict != check.Clean {
		t.Fatalf("%+v", *r)
	}
}

// TestAcceptedLoss is told, and is neither damage nor garbage.
func TestAcceptedLoss(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	lose := func(r *catalog.Ref) { *r = catalog.LoseRef(*r) }
	cat := &skewed{Catalog: x.Catalog, ref: lose, plan: func(p *catalog.Plan) { lose(&p.Refs[0]) }}
	want := span(x, "z z", "")
	x.Delete(want.Key)
	r := walk(t, x, cat, check.Config{})
	if r.Verdict != check.Clean || r.LostTotal != 1 || r.Lost[0].Stream != "z z" || r.Lost[0].First != want.First || r.Lost[0].Last != want.Last {
		t.Fatalf("%+v", *r)
	}
}

// TestSettled: what waits by design is a finding once nothing should wait any more.
func TestSettled(t *testing.T) {
	x := tier(t)
	settled := func(verdict check.Verdict, owed ...string) *check.Report {
		t.Helper()
		r := walk(t, x, x.Catalog, check.Config{Settled: true, Page: 1})
		var got []string
		for _, o := range r.Owed {
			got = append(got, o.What)
		}
		if r.Verdict != verdict || strings.Join(got, " ") != strings.Join(owed, " ") || r.OwedTotal != int64(len(owed)) {
			t.Fatalf("want %q: %+v", owed, *r)
		}
		return r
	}
	settled(check.Unsettled, "settle", "settle")
	x.Settle(1)
	settled(check.Unsettled, "object", "object", "trim-check")
	x.CondemnSlots()
	settled(check.Unsettled, "object", "object", "trim-check")
	x.DeleteSlots()
	ms, err := x.Catalog.MarkersOf(t.Context(), catalog.DutyTrimCheck, "", 10)
	if err != nil || len(ms) != 1 {
		t.Fatal(ms, err)
	}
	if err := x.Catalog.Resolve(t.Context(), ms[0].MarkerRef); err != nil {
		t.Fatal(err)
	}
	settled(check.Clean)
	announce(t, x, segment.StreamKey("a", 1, 1, 9))
	settled(check.Unsettled, "intent", "orphan")
	x.Clock.Advance(3 * tiertest.OrphanGrace)
	m, err := x.Catalog.Marker(t.Context(), catalog.DutyOrphan, segment.StreamKey("a", 1, 1, 9))
	if err != nil {
		t.Fatal(err)
	}
	if v, _, err := x.Catalog.CondemnIntent(t.Context(), m.MarkerRef); err != nil || v != catalog.Condemned {
		t.Fatal(v, err)
	}
	settled(check.Unsettled, "intent", "orphan")
	if err := x.Catalog.BurnIntent(t.Context(), segment.StreamKey("a", 1, 1, 9)); err != nil {
		t.Fatal(err)
	}
	settled(check.Clean) // a burned key waits for nothing
	if _, err := x.Mem.CreateUpload(t.Context(), segment.StreamKey("a", 1, 1, 8), nil); err != nil {
		t.Fatal(err)
	}
	settled(check.Unsettled, "upload")
}

// TestSettledHeld: a slot that a durable consumer has not passed stands for good reason.
func TestSettledHeld(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	ms, err := x.Catalog.MarkersOf(t.Context(), catalog.DutyTrimCheck, "", 10)
	if err != nil || len(ms) != 1 {
		t.Fatal(ms, err)
	}
	if err := x.Catalog.Resolve(t.Context(), ms[0].MarkerRef); err != nil {
		t.Fatal(err)
	}
	says := &chainSays{x.Catalog, func(r *catalog.ChainRow) { r.Consumers = []segment.Consumer{{Name: "c"}} }}
	if r := walk(t, x, says, check.Config{Settled: true}); r.Verdict != check.Clean || r.Waiting != 2 {
		t.Fatalf("%+v", *r)
	}
	passed := &chainSays{x.Catalog, func(r *catalog.ChainRow) { r.Consumers, r.Rewritten = []segment.Consumer{{Name: "c", Cursor: 48}}, 3 }}
	if r := walk(t, x, passed, check.Config{Settled: true}); r.Verdict != check.Unsettled || r.OwedTotal != 2 {
		t.Fatalf("%+v", *r)
	}
	if r := walk(t, x, x.Catalog, check.Config{Settled: true}); r.Verdict != check.Unsettled || r.OwedTotal != 2 {
		t.Fatalf("%+v", *r)
	}
}
