package catalogbench

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/strandline/strandline/internal/pgserver"
)

// quick is as little as says that everything was measured.
func quick(dir string) Options {
	return Options{Quick: true, Refs: []int{10_000, 20_000}, Absorbs: 2, Renewing: 20 * time.Millisecond, Dir: dir}
}

// checkDatabase: every verb at both sizes, with its ratio and its bare insert.
func checkDatabase(t *testing.T, d *Database) {
	t.Helper()
	if len(d.Sizes) != 2 {
		t.Fatalf("%s: %d sizes", d.Name, len(d.Sizes))
	}
	for i, s := range d.Sizes {
		if len(s.Verbs) != len(names) || s.FillPerSec <= 0 {
			t.Fatalf("%s: %+v", d.Name, s)
		}
		if s.BytesPerRef < 50 || s.BytesPerRef > 1000 || s.TotalPerRef < s.BytesPerRef {
			t.Errorf("%s, %d refs: %.0f bytes a ref, %.0f in all", d.Name, s.Refs, s.BytesPerRef, s.TotalPerRef)
		}
		for _, v := range s.Verbs {
			if v.Seconds <= 0 || v.PerSec <= 0 || v.Samples == 0 || (i > 0) != (v.Ratio > 0) {
				t.Errorf("%s, %d refs: %+v", d.Name, s.Refs, v)
			}
			if strings.HasPrefix(v.Name, "AbsorbSlot") != (v.BarePerSec > 0 && v.BareRatio > 0) {
				t.Errorf("%s, %d refs, beside bare: %+v", d.Name, s.Refs, v)
			}
			// A slot takes some pages, and even when each row splits its page not ten a row.
			if logged := d.Name == "sqlite" && strings.HasPrefix(v.Name, "AbsorbSlot"); logged != (v.LogPages > 0) || v.LogPages > float64(10*v.Rows) {
				t.Errorf("%s, %d refs, in the log: %+v", d.Name, s.Refs, v)
			}
		}
	}
}

// TestSQLite: everything once, and nothing is left.
func TestSQLite(t *testing.T) {
	dir := t.TempDir()
	var steps []string
	o := quick(dir)
	o.Progress = func(done, total int, now string) {
		if done != len(steps) || total != 4 {
			t.Errorf("%s: step %d of %d", now, done, total)
		}
		steps = append(steps, now)
	}
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Databases) != 1 || len(steps) != 4 {
		t.Fatalf("%d databases, steps %q", len(r.Databases), steps)
	}
	checkDatabase(t, &r.Databases[0])
	if len(r.Notes) != 2 || !strings.HasPrefix(r.Notes[0], "sqlite: "+absorbSmall+" writes ") {
		t.Errorf("notes: %q", r.Notes)
	}
	// 6 ratios, 2 verbs beside bare at 2 sizes, the bytes.
	if len(r.Expected) != 11 {
		t.Errorf("%d expectations: %+v", len(r.Expected), r.Expected)
	}
	for _, e := range r.Expected {
		if e.Binding != (e.Unit == "B") || e.Measured <= 0 {
			t.Errorf("a quick run binds, or measured nothing: %+v", e)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// TestPostgres: the same beside it, and no schema is left.
func TestPostgres(t *testing.T) {
	ctx, dsn := context.Background(), pgserver.NewDatabase(t)
	o := quick(t.TempDir())
	o.Postgres, o.NoSQLite = dsn, true
	r, err := Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Databases) != 1 || r.Databases[0].Name != "postgres" {
		t.Fatalf("%+v", r.Databases)
	}
	checkDatabase(t, &r.Databases[0])
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }() // read only
	var left int
	if err := c.QueryRow(ctx, "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'strandline%'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d schemas are left, %v", left, err)
	}
}

// TestCancelled: the throw-away file goes then, too.
func TestCancelled(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	o := quick(dir)
	o.Progress = func(done, _ int, _ string) {
		if done == 1 {
			cancel()
		}
	}
	if _, err := Run(ctx, o); err == nil || ctx.Err() == nil {
		t.Fatalf("went on: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// TestExpected: a figure that misses its bound is said to, at the sizes it is meant for.
func TestExpected(t *testing.T) {
	verbs := func(seconds, ratio, bare float64) []Verb {
		return []Verb{{Name: absorbSmall, Seconds: seconds, Ratio: ratio, BarePerSec: 1, BareRatio: bare}, {Name: renew, Ratio: 9}}
	}
	r := Report{Databases: []Database{{Name: "x", Sizes: []Sized{
		{Refs: 10_000, Verbs: verbs(1, 0, 0.6)}, {Refs: 1_000_000, Verbs: verbs(2.5, 2.5, 0.4), BytesPerRef: 301},
	}}}}
	var got []string
	for _, e := range expected(&r) {
		if !e.Binding {
			t.Errorf("does not bind: %+v", e)
		}
		if !e.Reached {
			got = append(got, e.Figure)
		}
	}
	want := "x: AbsorbSlot 1,000, 10^6 over 10^4 refs|x: AbsorbSlot 1,000 beside a bare insert, 10^6 refs|x: a ref with its indexes, 10^6 refs"
	if strings.Join(got, "|") != want {
		t.Errorf("missed: %q", got)
	}
}

func TestValidate(t *testing.T) {
	o := Options{Refs: []int{20_000, 10_000}, Rounds: -1, NoSQLite: true}
	err := o.Validate()
	for _, want := range []string{"ascending", "rounds -1", "nothing to measure"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	for n, want := range map[int]string{10_000: "10^4", 10_000_000: "10^7", 20_000: "20000"} {
		if got := counted(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
