package check_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

var update = flag.Bool("update", false, "write what explain says to testdata/explain")

// story is one situation: what was done to a tier, and what is asked.
type story struct {
	name string
	is   check.Situation
	do   func(x *tiertest.Tier) (key string, row check.RowQuestion)
	cat  func(c check.ExplainCatalog) check.ExplainCatalog // what the catalog says else
}

func key(do func(x *tiertest.Tier) string) func(x *tiertest.Tier) (string, check.RowQuestion) {
	return func(x *tiertest.Tier) (string, check.RowQuestion) { return do(x), check.RowQuestion{} }
}

func row(do func(x *tiertest.Tier) check.RowQuestion) func(x *tiertest.Tier) (string, check.RowQuestion) {
	return func(x *tiertest.Tier) (string, check.RowQuestion) { return "", do(x) }
}

func at(seq segment.Seq) check.RowQuestion {
	return check.RowQuestion{Stream: "a", Pos: segment.Pos{Epoch: 1, Seq: seq}}
}

func reading(q check.RowQuestion) check.RowQuestion {
	q.Read = true
	return q
}

func slotKey(id segment.ID) string { return segment.SlotKey(segment.Chain{Epoch: 1}, id) }

var objectOfA = segment.StreamKey("a", 1, 1, 0)

// settled has moved the rows of both slots, which are gone.
func settled(x *tiertest.Tier) {
	x.Settle(1)
	x.TrimSlots()
}

func minutes(x *tiertest.Tier, n int) { x.Clock.Advance(time.Duration(n) * time.Minute) }

// dead has stream "a" deleted and its object without a ref.
func dead(x *tiertest.Tier) {
	settled(x)
	deleteStream(x, "a")
	minutes(x, 3)
}

func marker(x *tiertest.Tier, d catalog.Duty, id string) catalog.MarkerRef {
	x.T.Helper()
	m, err := x.Catalog.Marker(x.T.Context(), d, id)
	fatal(x, err)
	return m.MarkerRef
}

func fatal(x *tiertest.Tier, err error) {
	x.T.Helper()
	if err != nil {
		x.T.Fatal(err)
	}
}

// burned has an announced key condemned and burned.
func burned(x *tiertest.Tier) string {
	k := segment.StreamKey("a", 1, 1, 9)
	announce(x.T.(*testing.T), x, k)
	minutes(x, 180)
	v, _, err := x.Catalog.CondemnIntent(x.T.Context(), marker(x, catalog.DutyOrphan, k))
	fatal(x, err)
	if v != catalog.Condemned {
		x.T.Fatal(v)
	}
	fatal(x, x.Catalog.BurnIntent(x.T.Context(), k))
	minutes(x, 5)
	return k
}

func trim(x *tiertest.Tier, seq segment.Seq) {
	x.T.Helper()
	_, err := x.Catalog.TrimStream(x.T.Context(), "a", segment.Pos{Epoch: 1, Seq: seq})
	fatal(x, err)
}

// heldBy has durable consumers in the chain's row.
type heldBy struct{ check.ExplainCatalog }

func (h heldBy) Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error) {
	row, err := h.ExplainCatalog.Chain(ctx, c)
	row.Consumers = []segment.Consumer{{Name: "fast", Cursor: 48}, {Name: "slow", Cursor: 30}}
	return row, err
}

// failing has a settle of slot 1 that fails, and a void slot 2.
type failing struct{ check.ExplainCatalog }

func (h failing) Marker(ctx context.Context, d catalog.Duty, id string) (catalog.Marker, error) {
	m, err := h.ExplainCatalog.Marker(ctx, d, id)
	if d == catalog.DutySettle {
		m.Due, m.Attempts, m.LastError = m.Due.Add(7*time.Minute), 4, "stream \"a\": read seg/…: unavailable"
		m.LeaseOwner, m.LeaseEnd = "auditor-1", m.Due
	}
	return m, err
}

type void struct{ failing }

func (h void) Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error) {
	rows, err := h.ExplainCatalog.Slots(ctx, c, from, limit)
	for i := range rows {
		rows[i].Void = true
	}
	return rows, err
}

// forked has a later term that began at seq 40.
type forked struct{ check.ExplainCatalog }

func (h forked) Terms(context.Context, segment.Chain) ([]catalog.TermRow, error) {
	return []catalog.TermRow{{Term: 1, First: 1, Last: 1, LastSeq: 39}, {Term: 2, First: 2, Last: 2, LastSeq: 48}}, nil
}

var stories = []story{
	{name: "slot-owes-settle", is: check.OwesSettle, do: key(func(*tiertest.Tier) string { return slotKey(2) })},
	{
		name: "slot-settle-fails", is: check.OwesSettle, do: key(func(*tiertest.Tier) string { return slotKey(1) }),
		cat: func(c check.ExplainCatalog) check.ExplainCatalog { return failing{c} },
	},
	{
		name: "slot-void", is: check.IsParked, do: key(func(x *tiertest.Tier) string { return slotKey(1) }),
		cat: func(c check.ExplainCatalog) check.ExplainCatalog { return void{failing{c}} },
	},
	{name: "slot-rewritten", is: check.WaitsForTrim, do: key(func(x *tiertest.Tier) string { x.Settle(1); return slotKey(1) })},
	{
		name: "slot-held", is: check.WaitsForTrim, do: key(func(x *tiertest.Tier) string { x.Settle(1); return slotKey(2) }),
		cat: func(c check.ExplainCatalog) check.ExplainCatalog { return heldBy{c} },
	},
	{name: "slot-condemned", is: check.IsCondemned, do: key(func(x *tiertest.Tier) string { x.Settle(1); x.CondemnSlots(); minutes(x, 4); return slotKey(1) })},
	{name: "slot-trimmed", is: check.IsTrimmed, do: key(func(x *tiertest.Tier) string { settled(x); return slotKey(1) })},
	{name: "slot-stray", is: check.IsLeaked, do: key(func(x *tiertest.Tier) string {
		body := read(x, slotKey(1))
		settled(x)
		x.Put(slotKey(1), body)
		return slotKey(1)
	})},
	{name: "slot-missing", is: check.IsMissing, do: key(func(x *tiertest.Tier) string { x.Delete(slotKey(1)); return slotKey(1) })},
	{name: "slot-gone-early", is: check.IsMissing, do: key(func(x *tiertest.Tier) string { x.Settle(1); x.Delete(slotKey(1)); return slotKey(1) })},
	{name: "slot-published", is: check.NotAbsorbed, do: key(func(x *tiertest.Tier) string { x.Put(slotKey(3), []byte("of a writer")); return slotKey(3) })},
	{name: "slot-next", is: check.NotAbsorbed, do: key(func(*tiertest.Tier) string { return slotKey(3) })},
	{name: "slot-no-chain", is: check.NotOurs, do: key(func(x *tiertest.Tier) string {
		k := segment.SlotKey(segment.Chain{Epoch: 9}, 1)
		x.Put(k, nil)
		return k
	})},
	{name: "object-live", is: check.IsLive, do: key(func(x *tiertest.Tier) string { settled(x); return objectOfA })},
	{name: "pack-partly-dead", is: check.PartlyDead, do: key(func(x *tiertest.Tier) string {
		x.Settle(1 << 20)
		x.TrimSlots()
		deleteStream(x, "a")
		return x.Keys(segment.KeyPack)[0]
	})},
	{name: "object-gc-owed", is: check.IsLive, do: key(func(x *tiertest.Tier) string {
		settled(x)
		fatal(x, x.Catalog.Arm(x.T.Context(), catalog.DutyGC, objectOfA, segment.ClassStandard, 0))
		fatal(x, x.Catalog.Arm(x.T.Context(), catalog.DutyTailFill, objectOfA, segment.ClassStandard, time.Minute))
		return objectOfA
	})},
	{name: "object-dead-named", is: check.DeadNamed, do: key(func(x *tiertest.Tier) string {
		settled(x)
		trim(x, 29)
		return objectOfA
	})},
	{name: "object-dead", is: check.DeadWaiting, do: key(func(x *tiertest.Tier) string { dead(x); return objectOfA })},
	{name: "object-confirmed", is: check.DeadWaiting, do: key(func(x *tiertest.Tier) string {
		dead(x)
		minutes(x, 8)
		fatal(x, x.Catalog.Confirm(x.T.Context(), marker(x, catalog.DutyReapCheck, objectOfA)))
		minutes(x, 4)
		return objectOfA
	})},
	{name: "object-reaped", is: check.GoneBurned, do: key(func(x *tiertest.Tier) string { dead(x); reap(x); minutes(x, 1); return objectOfA })},
	{name: "object-landed-late", is: check.LandedLate, do: key(func(x *tiertest.Tier) string { k := burned(x); x.Put(k, []byte("late")); return k })},
	{name: "object-being-made", is: check.BeingMade, do: key(func(x *tiertest.Tier) string {
		k := segment.StreamKey("a", 1, 1, 9)
		announce(x.T.(*testing.T), x, k)
		minutes(x, 2)
		return k
	})},
	{name: "object-abandoned", is: check.Abandoned, do: key(func(x *tiertest.Tier) string {
		k := segment.StreamKey("a", 1, 1, 9)
		announce(x.T.(*testing.T), x, k)
		x.Put(k, []byte("half"))
		minutes(x, 40)
		return k
	})},
	{name: "object-gc-of-dead", is: check.DeadWaiting, do: key(func(x *tiertest.Tier) string {
		k := segment.StreamKey("a", 1, 1, 9)
		x.Put(k, []byte("x"))
		fatal(x, x.Catalog.Arm(x.T.Context(), catalog.DutyGC, k, segment.ClassStandard, 0))
		return k
	})},
	{name: "object-leaked", is: check.IsLeaked, do: key(func(x *tiertest.Tier) string {
		k := segment.StreamKey("a", 1, 1, 9)
		x.Put(k, []byte("x"))
		fatal(x, x.Catalog.Arm(x.T.Context(), catalog.DutyTailFill, k, segment.ClassStandard, 0)) // watches nothing
		return k
	})},
	{name: "object-missing", is: check.IsMissing, do: key(func(x *tiertest.Tier) string { settled(x); x.Delete(objectOfA); return objectOfA })},
	{name: "object-damaged", is: check.IsDamaged, do: key(func(x *tiertest.Tier) string {
		settled(x)
		replace(x, objectOfA, []byte("what is this"))
		return objectOfA
	})},
	{name: "object-of-another", is: check.IsDamaged, do: key(func(x *tiertest.Tier) string {
		settled(x)
		replace(x, objectOfA, read(x, span(x, "z z", "").Key))
		return objectOfA
	})},
	{name: "head", is: check.IsRecord, do: key(func(x *tiertest.Tier) string {
		x.Put(segment.HeadKey(x.Chain), headOf(x.T.(*testing.T), x.Chain))
		return segment.HeadKey(x.Chain)
	})},
	{name: "trim-record", is: check.IsRecord, do: key(func(x *tiertest.Tier) string {
		x.Put(segment.TrimKey(x.Chain, 1), []byte("{}"))
		return segment.TrimKey(x.Chain, 1)
	})},
	{name: "doctor", is: check.DeadWaiting, do: key(func(x *tiertest.Tier) string {
		k := segment.DoctorPrefix + "0198/create-once-1/key"
		x.Put(k, nil)
		return k
	})},
	{name: "unknown", is: check.NotOurs, do: key(func(x *tiertest.Tier) string { x.Put("hello/there", []byte("hi")); return "hello/there" })},
	{name: "upload", is: check.NotAbsorbed, do: key(func(x *tiertest.Tier) string {
		_, err := x.Mem.CreateUpload(x.T.Context(), slotKey(3), nil)
		fatal(x, err)
		return slotKey(3)
	})},

	{name: "row-in-slot", is: check.IsLive, do: row(func(*tiertest.Tier) check.RowQuestion { return at(2) })},
	{name: "row-read", is: check.IsLive, do: row(func(*tiertest.Tier) check.RowQuestion { return reading(at(2)) })},
	{name: "row-settled", is: check.IsLive, do: row(func(x *tiertest.Tier) check.RowQuestion { x.Settle(1); return reading(at(27)) })},
	{name: "row-first", is: check.IsLive, do: row(func(x *tiertest.Tier) check.RowQuestion {
		settled(x)
		trim(x, 3)
		return check.RowQuestion{Stream: "a", Word: check.FirstRow, Read: true}
	})},
	{name: "row-last", is: check.IsLive, do: row(func(x *tiertest.Tier) check.RowQuestion {
		return check.RowQuestion{Stream: "z z", Word: check.LastRow}
	})},
	{name: "row-perhaps", is: check.IsLive, do: row(func(x *tiertest.Tier) check.RowQuestion { settled(x); return at(4) })},
	{name: "row-of-another", is: check.NoRow, do: row(func(x *tiertest.Tier) check.RowQuestion { settled(x); return reading(at(5)) })},
	{name: "row-between", is: check.NoRow, do: row(func(x *tiertest.Tier) check.RowQuestion { return at(10) })},
	{name: "row-trimmed", is: check.IsTrimmed, do: row(func(x *tiertest.Tier) check.RowQuestion { settled(x); trim(x, 3); return at(2) })},
	{name: "row-walked", is: check.IsTrimmed, do: row(func(x *tiertest.Tier) check.RowQuestion { trim(x, 20); x.Walk("a"); return at(2) })},
	{name: "row-deleted", is: check.IsDeleted, do: row(func(x *tiertest.Tier) check.RowQuestion { dead(x); return at(27) })},
	{name: "row-retained", is: check.IsTrimmed, do: row(func(x *tiertest.Tier) check.RowQuestion { raise(x.T.(*testing.T), x); return at(2) })},
	{name: "row-beyond", is: check.BeyondTip, do: row(func(*tiertest.Tier) check.RowQuestion { return at(99) })},
	{name: "row-beyond-another", is: check.BeyondTip, do: row(func(*tiertest.Tier) check.RowQuestion { return at(40) })},
	{name: "row-forked", is: check.IsForked, do: row(func(*tiertest.Tier) check.RowQuestion {
		q := at(27)
		q.Token = &segment.Token{Epoch: 1, Term: 1, Seq: 47}
		return q
	}), cat: func(c check.ExplainCatalog) check.ExplainCatalog { return forked{c} }},
	{name: "row-lost", is: check.IsLost, do: row(func(x *tiertest.Tier) check.RowQuestion {
		settled(x)
		x.Delete(objectOfA)
		_, err := x.Catalog.AcceptLoss(x.T.Context(), objectOfA, "a")
		fatal(x, err)
		return at(2)
	})},
	{name: "row-missing", is: check.IsMissing, do: row(func(x *tiertest.Tier) check.RowQuestion { settled(x); x.Delete(objectOfA); return at(2) })},
	{name: "row-rotten", is: check.IsDamaged, do: row(func(x *tiertest.Tier) check.RowQuestion {
		settled(x)
		replace(x, objectOfA, flipIn(x.T.(*testing.T), read(x, objectOfA), "a"))
		return reading(at(2))
	})},
}

// plain takes out what differs from run to run: UUIDs, and what they compress to.
func plain(text string) string {
	for _, r := range [][2]string{
		{`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "UUID"},
		{`[1-9][0-9,]* bytes`, "N bytes"},
		{`at byte [1-9][0-9,]*`, "at byte N"},
		{`CRC [0-9a-f]+, [0-9a-f]+ wanted`, "CRC N, N wanted"},
		{`are live, [1-9][0-9,]* dead`, "are live, N dead"},
		{`and [0-9,]+ of its N`, "and N of its N"},
		{`object shorter than a trailer: [1-9][0-9]* bytes`, "object shorter than a trailer: N bytes"},
	} {
		text = regexp.MustCompile(r[0]).ReplaceAllString(text, r[1])
	}
	return text
}

// TestExplain: what people are told, word for word, in each situation.
func TestExplain(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			x := tier(t)
			key, row := s.do(x)
			var cat check.ExplainCatalog = x.Catalog
			if s.cat != nil {
				cat = s.cat(cat)
			}
			explainer := &check.Explainer{Catalog: cat, Classes: x.Classes}
			e, err := explainer.Key(t.Context(), key)
			if key == "" {
				e, err = explainer.Row(t.Context(), row)
			}
			if err != nil {
				t.Fatal(err)
			}
			if e.Situation != s.is {
				t.Errorf("it is %q, want %q:\n%s", e.Situation, s.is, e.Text())
			}
			if _, err := json.Marshal(e); err != nil {
				t.Error(err)
			}
			golden(t, s.name, plain(e.Text()))
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "explain", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it says\n%s\nand %s\n%s", got, path, want)
	}
}

// TestExplainNothing: what is not there is an error that says what to do next.
func TestExplainNothing(t *testing.T) {
	x := tier(t)
	explainer := &check.Explainer{Catalog: x.Catalog, Classes: x.Classes}
	for _, key := range []string{"hello", segment.StreamKey("a", 1, 77, 0), segment.HeadKey(segment.Chain{Epoch: 9}), segment.SlotKey(segment.Chain{Epoch: 9}, 1), segment.TrimKey(x.Chain, 7), "/x", ""} {
		if e, err := explainer.Key(t.Context(), key); !errors.Is(err, check.ErrNothing) {
			t.Errorf("%q: %+v, %v", key, e, err)
		}
	}
	for _, q := range []check.RowQuestion{{Stream: "nope"}, {Stream: "a", Pos: segment.Pos{Epoch: 9, Seq: 1}}, {Stream: "a", Word: "middle"}} {
		if e, err := explainer.Row(t.Context(), q); !errors.Is(err, check.ErrNothing) {
			t.Errorf("%+v: %+v, %v", q, e, err)
		}
	}
	q := at(2)
	q.Token = &segment.Token{Epoch: 1, Term: 7, Seq: 2}
	if e, err := explainer.Row(t.Context(), q); !errors.Is(err, catalog.ErrNoPosition) {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestExplainWay: every object that may have had a row, as far as the catalog knows.
func TestExplainWay(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	// An older revision that is dying, one that was burned, and another row's.
	for _, k := range []string{segment.StreamKey("a", 1, 1, 7), segment.StreamKey("a", 1, 40, 0), segment.StreamKey("a~b", 1, 1, 7), segment.PackKey(x.Chain, 1, 2, 3), segment.PackKey(x.Chain, 2, 2, 3)} {
		fatal(x, x.Catalog.Arm(t.Context(), catalog.DutyReapCheck, k, segment.ClassStandard, time.Hour))
	}
	burned(x)
	e, err := (&check.Explainer{Catalog: x.Catalog, Classes: x.Classes}).Row(t.Context(), at(2))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		slotKey(1) + ": rewritten", segment.StreamKey("a", 1, 1, 7) + " may have held it", segment.StreamKey("a", 1, 1, 9) + " may have held it: burned",
		segment.PackKey(x.Chain, 1, 2, 3) + " may have held it", objectOfA + ", revision 0, serves it now",
	}
	if len(e.Row.Way) != len(want) {
		t.Fatalf("%q", e.Row.Way)
	}
	for i := range want {
		if !strings.Contains(e.Row.Way[i], want[i]) {
			t.Errorf("%q, want %q", e.Row.Way[i], want[i])
		}
	}
}

// badOnce turns a bit of the footer in the answer to the n-th GET, counted from begin on.
type badOnce struct {
	objstore.Driver
	on   bool
	n    int
	hits int
}

func (b *badOnce) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	body, info, err := b.Driver.Get(ctx, key, r, ifMatch)
	if err != nil || !b.on {
		return body, info, err
	}
	if b.n--; b.n != 0 {
		return body, info, err
	}
	all, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, info, err
	}
	b.hits++
	return io.NopCloser(bytes.NewReader(flip(all, max(0, len(all)-segment.TrailerBytes-3)))), info, nil
}

// TestExplainOneBadRead: bytes that are wrong once were a bad moment, and are no verdict.
func TestExplainOneBadRead(t *testing.T) {
	for n := 1; ; n++ {
		bad := &badOnce{n: n}
		x := tierOn(t, memstore.Options{}, func(d objstore.Driver) objstore.Driver {
			bad.Driver = d
			return bad
		})
		x.Settle(1)
		bad.on = true
		e, err := (&check.Explainer{Catalog: x.Catalog, Classes: x.Classes}).Row(t.Context(), reading(at(2)))
		if err != nil || e.Situation != check.IsLive || e.Row.Read == nil || !e.Row.Read.Found {
			t.Fatalf("GET %d: %+v %v", n, e, err)
		}
		if bad.hits == 0 {
			if n < 4 {
				t.Fatalf("only %d GETs", n-1)
			}
			return
		}
	}
}

// TestExplainFacts: the slot of a row at a border, and what was recorded of a key and of no
// other.
func TestExplainFacts(t *testing.T) {
	x := tier(t)
	explainer := &check.Explainer{Catalog: x.Catalog, Classes: x.Classes}
	for seq, want := range map[segment.Seq]segment.ID{1: 1, 4: 1, 24: 1, 25: 2, 28: 2} {
		e, err := explainer.Row(t.Context(), at(seq))
		if err != nil || e.Row.Slot == nil || e.Row.Slot.ID != want || e.Row.SlotKey != slotKey(want) {
			t.Errorf("row %d: %+v, %v", seq, e, err)
		}
	}
	for range 3 {
		fatal(x, x.Catalog.Audit(t.Context(), "damage", slotKey(1), "of the one"))
	}
	fatal(x, x.Catalog.Audit(t.Context(), "damage", slotKey(2), "of the other"))
	e, err := explainer.Key(t.Context(), slotKey(1))
	if err != nil || len(e.Key.Audit) != 1 || !strings.Contains(e.Text(), "damage: of the one (said 3 times)") {
		t.Errorf("%+v, %v", e, err)
	}
}
