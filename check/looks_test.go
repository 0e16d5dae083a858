package check_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// blind sees no marker in a first look at an object, which met it between two of its
// states, and acts after the first answer of the second look.
type blind struct {
	check.Catalog
	calls int
	act   func()
}

func (b *blind) Marker(ctx context.Context, d catalog.Duty, id string) (catalog.Marker, error) {
	b.calls++
	if b.calls <= 2 { // gc and reap-check
		return catalog.Marker{}, catalog.ErrNotFound
	}
	m, err := b.Catalog.Marker(ctx, d, id)
	if b.calls == 3 {
		b.act()
	}
	return m, err
}

// TestGCArmsWhileLookedAt: gc arms the reap-check before it resolves, so its marker is
// asked for before the reap-check's.
func TestGCArmsWhileLookedAt(t *testing.T) {
	x := tier(t)
	settled(x)
	unwatchedButByGC(x)
	b := &blind{Catalog: x.Catalog, act: func() { serve(x, catalog.DutyGC) }}
	garbage(t, walk1(t, x, b), check.Pending, objectOfA)
	if b.calls < 3 {
		t.Error("it was not raced")
	}
}

// TestLooksFail: an object that one look beside the walk cannot read is told, and no verdict
// is given on it.
func TestLooksFail(t *testing.T) {
	hits := 0
	for i := 1; ; i++ {
		on, n, hit := false, 0, false
		var mu sync.Mutex // n, hit
		x := tierOn(t, memstore.Options{}, func(d objstore.Driver) objstore.Driver {
			return faultstore.Wrap(d, func(c faultstore.Call) faultstore.Fault {
				mu.Lock()
				defer mu.Unlock()
				if !on || c.Op != objstore.OpGet || !strings.HasPrefix(c.Key, "obj/") {
					return faultstore.Fault{}
				}
				if n++; n != i {
					return faultstore.Fault{}
				}
				hit = true
				return faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrDenied}
			})
		})
		settled(x)
		on = true
		r, err := check.Fsck(t.Context(), x.Catalog, x.Classes, check.Config{Concurrency: 2})
		if !hit {
			break
		}
		if hits++; err != nil || r.Verdict != check.Unreadable || r.UnreadableTotal != 1 || !strings.Contains(r.Unreadable[0].Why, "denied") {
			t.Fatalf("GET %d: %+v, %v", i, r, err)
		}
	}
	if hits < len(names) {
		t.Fatalf("%d hits", hits)
	}
}

// TestOneChunkRefs: a ref of one chunk over an object that has two there is read wrongly.
func TestOneChunkRefs(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	body, chunks := twoChunks(t, x.Rows["z z"])
	want := span(x, "z z", "has 2 chunks there, the ref says one")
	replace(x, want.Key, body)
	sums := func(n uint32) *skewed {
		return &skewed{Catalog: x.Catalog, ref: func(r *catalog.Ref) {
			r.Chunks, r.Rows, r.RowSum = n, chunks[0].Rows+chunks[1].Rows, chunks[0].RowSum+chunks[1].RowSum
		}}
	}
	damaged(t, walk1(t, x, sums(1)), want)
	if r := walk(t, x, sums(2), check.Config{Deep: true}); r.Verdict != check.Clean {
		t.Fatalf("%+v", *r)
	}
	// A rotten chunk is damage of its own rows.
	replace(x, want.Key, flip(body, int(chunks[1].Offset)))
	want.First, want.Why = chunks[1].First, "chunk at byte"
	damaged(t, walk(t, x, sums(2), check.Config{Deep: true}), want)
	replace(x, want.Key, body)
	// Of a ref that cuts the second chunk, the first alone has more rows than it says.
	few := &skewed{Catalog: x.Catalog, ref: func(r *catalog.Ref) {
		r.Chunks, r.Last, r.Rows = 2, chunks[1].First, chunks[0].Rows-1
	}}
	if r := walk1(t, x, few); r.Verdict != check.Damage || !strings.Contains(r.Damage[0].Why, "rows of sum") {
		t.Fatalf("%+v", *r)
	}
}

// TestSlotElsewhere: an object that is whole, of another position.
func TestSlotElsewhere(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	body := read(x, slotKey(1))
	replace(x, slotKey(2), body)
	cat := &slotRows{x.Catalog, func(*catalog.SlotRow) {}}
	rows, err := x.Catalog.Slots(t.Context(), x.Chain, 1, 2)
	fatal(x, err)
	same := &sameSlots{cat, rows[0]} // the row of 2 says all that the object of 1 does
	r := walk(t, x, same, check.Config{})
	if r.Verdict != check.Rotten || r.RottenTotal != 1 || r.Rotten[0].Key != slotKey(2) || !strings.Contains(r.Rotten[0].Why, "it is slot 1") {
		t.Fatalf("%+v", *r)
	}
}

type sameSlots struct {
	check.Catalog
	as catalog.SlotRow
}

func (s *sameSlots) Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error) {
	rows, err := s.Catalog.Slots(ctx, c, from, limit)
	for i := range rows {
		id := rows[i].ID
		rows[i] = s.as
		rows[i].ID = id
	}
	return rows, err
}

// trimmedAt moves the chain's cursors at its row's first reading.
type trimmedAt struct {
	check.Catalog
	act func()
}

func (c *trimmedAt) Chain(ctx context.Context, chain segment.Chain) (catalog.ChainRow, error) {
	if c.act != nil {
		c.act()
		c.act = nil
	}
	return c.Catalog.Chain(ctx, chain)
}

// TestRestingThatGoes: a rotten slot that is trimmed while it is looked at is nobody's
// concern any more.
func TestRestingThatGoes(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	x.CondemnSlots()
	body := read(x, slotKey(1))
	replace(x, slotKey(1), body[:len(body)-1])
	if r := walk1(t, x, x.Catalog); r.Verdict != check.Rotten {
		t.Fatalf("%+v", *r)
	}
	if r := walk1(t, x, &trimmedAt{x.Catalog, x.DeleteSlots}); r.Verdict != check.Clean {
		t.Fatalf("%+v", *r)
	}
}

// twoChunks is a stream object with the rows in two chunks.
func twoChunks(t *testing.T, rows []segment.Row) ([]byte, []segment.Chunk) {
	t.Helper()
	var buf bytes.Buffer
	o := segment.NewObjectWriter(&buf, &segment.Footer{Kind: segment.ObjStream, Object: uuid.New(), Created: 1, Writer: "test"})
	for _, part := range [][]segment.Row{rows[:len(rows)/2], rows[len(rows)/2:]} {
		payload, err := segment.AppendBatch(nil, &segment.Batch{Stream: "z z", First: part[0].Seq, Rows: part})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := segment.AppendFrame(nil, uuid.New(), 0, segment.KindBatch, 0, payload)
		if err != nil {
			t.Fatal(err)
		}
		tally, err := segment.TallyFrames(raw)
		if err != nil {
			t.Fatal(err)
		}
		c := segment.Chunk{Stream: "z z", Epoch: 1}
		c.SetTally(tally)
		if err := o.AddChunk(c, raw); err != nil {
			t.Fatal(err)
		}
	}
	f, err := o.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes(), f.Chunks
}
