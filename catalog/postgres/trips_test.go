package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// tripper counts the round trips of a catalog.
type tripper struct {
	*DB
	n int
}

func newTripper(t *testing.T) *tripper {
	d := &tripper{DB: openWith(t, Options{MaxConns: 1})}
	d.hook = &hook{before: func(*tx) error { d.n++; return nil }, after: func(_ *tx, err error) error { return err }}
	prepareChain(t, d)
	return d
}

// most are the round trips of each set operation, its COMMIT included.
var most = map[string]int{
	"AbsorbSlot": 6, "AbsorbSlot of streams that stand": 5, "Plan": 4, "Liveness": 1, "Window": 5,
	"Announce": 3, "CommitRewrite": 6, "ResolveSettled": 3, "WalkStream": 2, "ArmWatchers": 2, "RetireRefs": 4, "TakeDue": 2, "BurnKey": 2,
}

// TestRoundTrips: a constant number of them for any number of refs. With few refs they go
// along in a queue; with many a COPY, and the queue before it, are round trips of their own.
func TestRoundTrips(t *testing.T) {
	few, many := tripsOf(t, 10), tripsOf(t, 10_000)
	for verb, bound := range most {
		if few[verb] == 0 || many[verb] < few[verb] || many[verb] > few[verb]+2 || many[verb] > bound {
			t.Errorf("%s: %d round trips for 10, %d for 10,000, at most %d may be", verb, few[verb], many[verb], bound)
		}
	}
}

func tripsOf(t *testing.T, n int) map[string]int {
	d, ctx := newTripper(t), context.Background()
	out := map[string]int{}
	count := func(verb string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", verb, err)
		}
		out[verb], d.n = d.n, 0
	}
	d.n = 0
	for i, verb := range []string{"AbsorbSlot", "AbsorbSlot of streams that stand"} {
		_, err := d.AbsorbSlot(ctx, slotOf(testChain, uint64(i+1), n))
		count(verb, err)
	}
	w, err := d.Window(ctx, testChain, 1<<40)
	count("Window", err)
	if len(w.Refs) != 2*n {
		t.Fatalf("%d refs", len(w.Refs))
	}
	key := segment.PackKey(testChain, 1, 2, 0)
	h := catalog.Holder{Duty: catalog.DutySettle, ID: catalog.ChainID(testChain), Owner: "a"}
	count("LeaseDuty", d.LeaseDuty(ctx, h, time.Hour))
	_, err = d.Announce(ctx, catalog.Announce{Key: key, Class: segment.ClassStandard, Holder: h, Nonce: "n", Deadline: time.Minute})
	count("Announce", err)
	commit := packing(key, w.Refs)
	got, err := d.CommitRewrite(ctx, commit)
	count("CommitRewrite", err)
	if len(got.Committed) != n || got.Retired != n {
		t.Fatalf("%d committed, %d retired", len(got.Committed), got.Retired)
	}
	resolved, err := d.ResolveSettled(ctx, testChain, []catalog.MarkerRef{w.Slots[0].Marker.MarkerRef, w.Slots[1].Marker.MarkerRef})
	count("ResolveSettled", err)
	live, err := d.Liveness(ctx, key)
	count("Liveness", err)
	if len(live) != n || resolved != 2 {
		t.Fatalf("%d live, %d resolved", len(live), resolved)
	}
	one := manyOfOne(t, d, n)
	d.n = 0
	p, err := d.Plan(ctx, catalog.PlanRequest{Stream: one})
	count("Plan", err)
	if len(p.Refs) != n {
		t.Fatalf("%d refs in the plan", len(p.Refs))
	}
	_, err = d.DeleteStream(ctx, one)
	count("DeleteStream", err)
	page, err := d.WalkStream(ctx, p.Stream.ID, 0)
	count("WalkStream", err)
	count("ArmWatchers", d.ArmWatchers(ctx, page.Dead))
	retired, err := d.RetireRefs(ctx, page.Dead)
	count("RetireRefs", err)
	if retired != n {
		t.Fatalf("%d retired", retired)
	}
	takeAndBurn(t, d, n, count)
	return out
}

// packing is the commit of a pack that takes all refs, which come by stream.
func packing(key string, refs []catalog.Ref) catalog.Rewrite {
	r := catalog.Rewrite{Key: key, Nonce: "n", Next: catalog.Next{PackFan: 8, TailTarget: 1 << 20}}
	for i := range refs {
		if i == 0 || refs[i].StreamID != refs[i-1].StreamID {
			out := refs[i]
			out.Key, out.Kind, out.Class, out.Revision, out.Rows, out.RowSum, out.Bytes = key, catalog.RefPack, segment.ClassStandard, 0, 0, 0, 0
			r.Runs = append(r.Runs, catalog.Run{New: out})
		}
		run := &r.Runs[len(r.Runs)-1]
		run.Expect = append(run.Expect, refs[i])
		run.New.Last = refs[i].Last
		run.New.Rows, run.New.RowSum, run.New.Bytes = run.New.Rows+refs[i].Rows, run.New.RowSum+refs[i].RowSum, run.New.Bytes+refs[i].Bytes
	}
	return r
}

// manyOfOne absorbs, on a chain of its own, a slot with n refs of one stream.
func manyOfOne(t *testing.T, d *tripper, n int) string {
	t.Helper()
	a := slotOf(segment.Chain{Epoch: 1, Shard: 1}, 1, n)
	for i := range a.Refs {
		a.Refs[i].Stream = "one"
	}
	if _, err := d.AbsorbSlot(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return "one"
}

// takeAndBurn takes n markers, and burns n condemned keys.
func takeAndBurn(t *testing.T, d *tripper, n int, count func(string, error)) {
	t.Helper()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("obj/%06d", i)
	}
	const condemned = `INSERT INTO intent SELECT key, 'standard', '', '', '[]', 0, 0, 'condemned', 0 FROM unnest($1::text[]) key`
	const markers = `INSERT INTO marker SELECT 'reap-check', key, nextval('marker_version'), 0, 'standard', 0, '', 0, 0, 0, '' FROM unnest($1::text[]) key`
	for _, q := range []string{condemned, markers} {
		if _, err := d.pool.Exec(t.Context(), q, keys); err != nil {
			t.Fatal(err)
		}
	}
	d.n = 0
	took, err := d.TakeDue(t.Context(), catalog.Take{Duties: []catalog.Duty{catalog.DutyReapCheck, catalog.DutyGC}, Owner: "a", Lease: time.Hour, Limit: n})
	count("TakeDue", err)
	if len(took) != n {
		t.Fatalf("%d taken", len(took))
	}
	count("BurnKey", d.BurnKey(t.Context(), keys))
}
