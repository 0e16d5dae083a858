package coldload_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/segment"
)

// takeOver makes another writer the chain's owner. Its term begins with its first slot.
func takeOver(t *testing.T, x *tiertest.Tier) {
	t.Helper()
	x.Owner = uuid.New()
	row, err := x.Catalog.AcquireChain(t.Context(), catalog.Acquire{
		Chain: x.Chain, Owner: x.Owner, Address: "other", Lease: time.Hour, Expect: x.Term, Steal: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	x.Term = row.Term
}

func resume(ctx context.Context, r *coldload.Reader, tok segment.Token) (rows []coldload.Row, err error) {
	for row, err := range r.Resume(ctx, "a", tok, segment.Pos{}) {
		if err != nil {
			return rows, err
		}
		rows = append(rows, coldload.Row{Epoch: row.Epoch, Row: row.Clone()})
	}
	return rows, nil
}

func wantFork(t *testing.T, rows []coldload.Row, err error, at segment.Seq, term segment.Term) {
	t.Helper()
	var fork *catalog.ForkedError
	if !errors.As(err, &fork) || !errors.Is(err, catalog.ErrForked) || fork.Forked != at || fork.Term != term || len(rows) != 0 {
		t.Fatalf("%d rows, %v; want none, and a fork at seq %d by term %d", len(rows), err, at, term)
	}
}

// TestResume: a reader that saw rows which the chain lost with their owner's disk is told
// so, once a later term has begun, and not before.
func TestResume(t *testing.T) {
	x := tiertest.New(t, nil)
	r := reader(t, x, coldload.Config{})
	x.Slot(tiertest.Write{Stream: "a", Rows: 10, Size: 40})
	beyond := segment.Token{Epoch: 1, Term: 1, Seq: 15} // its owner showed rows that were not absorbed
	quiet := func() {
		t.Helper()
		if rows, err := resume(t.Context(), r, beyond); err != nil || len(rows) != 0 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
	}
	quiet()
	takeOver(t, x)
	quiet() // nothing of term 2 was absorbed: the rows may still come
	x.Slot(tiertest.Write{Stream: "a", Rows: 20, Size: 40})
	rows, err := resume(t.Context(), r, beyond)
	wantFork(t, rows, err, 11, 2)
	for _, tok := range []segment.Token{{Epoch: 1, Term: 1, Seq: 10}, {Epoch: 1, Term: 2, Seq: 15}, {Epoch: 1, Term: 1, Seq: 3}} {
		rows, err := resume(t.Context(), r, tok)
		if err != nil {
			t.Fatalf("from %s: %v", tok, err)
		}
		same(t, rows, x.Rows["a"][tok.Seq:])
	}
	if err := r.CheckShard(t.Context(), 0, beyond); !errors.Is(err, catalog.ErrForked) {
		t.Errorf("shard scan: %v", err)
	}
	if err := r.CheckShard(t.Context(), 0, segment.Token{Epoch: 1, Term: 1, Seq: 10}); err != nil {
		t.Errorf("shard scan: %v", err)
	}
	if err := r.Check(t.Context(), "a", segment.Token{Epoch: 9, Term: 1, Seq: 1}); !errors.Is(err, catalog.ErrNoPosition) || !strings.Contains(err.Error(), "topology show") {
		t.Errorf("an epoch that never was: %v", err)
	}
	for _, term := range []segment.Term{3, 4711} {
		rows, err := resume(t.Context(), r, segment.Token{Epoch: 1, Term: term, Seq: 3})
		if !errors.Is(err, catalog.ErrNoPosition) || len(rows) != 0 {
			t.Errorf("term %d, which never was: %d rows, %v", term, len(rows), err)
		}
	}
}

// TestResumeForkMeanwhile: the history forks just before the plan is made; a check made
// ahead of it would have let the other history's rows through.
func TestResumeForkMeanwhile(t *testing.T) {
	x := tiertest.New(t, nil)
	x.Slot(tiertest.Write{Stream: "a", Rows: 10, Size: 40})
	forks := &beforePlan{Catalog: x.Catalog, do: func() {
		takeOver(t, x)
		x.Slot(tiertest.Write{Stream: "a", Rows: 20, Size: 40})
	}}
	r, err := coldload.New(forks, x.Classes, coldload.Config{Clock: x.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := resume(t.Context(), r, segment.Token{Epoch: 1, Term: 1, Seq: 15})
	wantFork(t, rows, err, 11, 2)
}

// beforePlan does something once, before the first plan.
type beforePlan struct {
	coldload.Catalog
	do func()
}

func (b *beforePlan) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return b.Catalog.Plan(ctx, r)
}

// TestScanWithoutReserved: a shard's system records are read by name, not scanned.
func TestScanWithoutReserved(t *testing.T) {
	for _, settled := range []bool{false, true} {
		x := tiertest.New(t, nil)
		audit := segment.AuditStream(0)
		x.Slot(
			tiertest.Write{Stream: "a", Rows: 3, Size: 40}, tiertest.Write{Stream: audit, Rows: 2, Size: 40},
			tiertest.Write{Stream: "a", Rows: 4, Size: 40},
		)
		if settled {
			x.Settle(1 << 26)
			x.TrimSlots()
		}
		r := reader(t, x, coldload.Config{})
		byName, err := collect(t.Context(), r, audit, segment.Pos{}, segment.Pos{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, byName, x.Rows[audit])
		got, err := scanAll(t.Context(), r, x, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		delete(x.Rows, audit)
		sameScan(t, got, chainRows(x, 0, nil))
	}
}
