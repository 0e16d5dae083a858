package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/catalogtest"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/internal/pgserver"
)

// op is a verb with its arguments; what it says is compared.
type op func(ctx context.Context, c catalog.Catalog) (any, error)

// race is two verbs that meet: set prepares a world, and both.
type race struct {
	name string
	set  func(w *catalogtest.World) (a, b op)
}

// arena is one database with two processes' catalogs, of which the first can be stopped
// between two of its statements.
type arena struct {
	t      *testing.T
	first  *DB
	second *DB
	raw    *pgx.Conn
	clock  func() time.Time
}

func newArena(t *testing.T) *arena {
	a := &arena{t: t, clock: time.Now}
	clock := func() time.Time { return a.clock() }
	dsn := pgserver.NewDatabase(t)
	a.second = openWith(t, Options{DSN: dsn, Clock: clock})
	a.first = openWith(t, Options{DSN: dsn, Clock: clock})
	raw, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	a.raw = raw
	t.Cleanup(func() { _ = raw.Close(context.Background()) })
	return a
}

// clear empties every table.
func (a *arena) clear() {
	a.t.Helper()
	if _, err := a.raw.Exec(a.t.Context(), "TRUNCATE strandline.settings, strandline.topology, strandline.chain, strandline.term, strandline.slot, strandline.stream, "+
		"strandline.object, strandline.ref, strandline.marker, strandline.lease, strandline.intent, strandline.auditor, strandline.audit RESTART IDENTITY"); err != nil {
		a.t.Fatal(err)
	}
}

func (a *arena) world(t *testing.T) *catalogtest.World {
	a.clear()
	return catalogtest.NewWorld(t, func(_ *testing.T, o catalogtest.Options) catalog.Catalog {
		a.clock = o.Clock
		return a.second
	})
}

// lockWaits says how many connections of this database wait for a lock.
func (a *arena) lockWaits() (n int) {
	a.t.Helper()
	if err := a.raw.QueryRow(a.t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&n); err != nil {
		a.t.Fatal(err)
	}
	return n
}

// run lets the first verb go as far as its k-th statement, the second as far as it comes,
// and then both to their ends. paused: the first has a k-th statement.
func (a *arena) run(x race, k int) (outcome string, paused bool) {
	w := a.world(a.t)
	verb, other := x.set(w)
	ctx := a.t.Context()
	at, goOn := make(chan struct{}), make(chan struct{})
	trips := 0
	a.first.hook = &hook{split: true, after: func(_ *tx, err error) error { return err }, before: func(*tx) error {
		if trips++; trips == k {
			close(at)
			<-goOn
		}
		return nil
	}}
	firstSaid, secondSaid := make(chan string, 1), make(chan string, 1)
	go func() { firstSaid <- say(verb(ctx, a.first)) }()
	var first, second string
	select {
	case first = <-firstSaid: // fewer statements than k
		second = say(other(ctx, a.second))
		return first + second + dump(ctx, a.t, a.second), false
	case <-at:
	}
	go func() { secondSaid <- say(other(ctx, a.second)) }()
	for second == "" && a.lockWaits() == 0 {
		select {
		case second = <-secondSaid:
		case <-time.After(time.Millisecond): // ask the server again
		}
	}
	close(goOn)
	first = <-firstSaid
	if second == "" {
		second = <-secondSaid
	}
	return first + second + dump(ctx, a.t, a.second), true
}

// serial is what the two give one after the other, in the catalog in memory.
func serial(t *testing.T, x race, swapped bool) string {
	w := catalogtest.NewWorld(t, func(_ *testing.T, o catalogtest.Options) catalog.Catalog {
		return memory.New(memory.Options{Clock: o.Clock})
	})
	a, b := x.set(w)
	var first, second string
	if swapped {
		second = say(b(t.Context(), w.C))
		first = say(a(t.Context(), w.C))
	} else {
		first = say(a(t.Context(), w.C))
		second = say(b(t.Context(), w.C))
	}
	return first + second + dump(t.Context(), t, w.C)
}

// say is what a verb answered, but for the words of a guard and the numbers of versions.
func say(v any, err error) string {
	if err == nil {
		return text(v)
	}
	var c *catalog.ConflictError
	if errors.As(err, &c) {
		return fmt.Sprintf("%v: %s\n", c.Kind, c.Verb)
	}
	return err.Error() + "\n"
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(string(b), "[]", "null") + "\n" // an empty list is none
}

// dump is all that a catalog holds, but for what order alone decides: versions.
func dump(ctx context.Context, t *testing.T, c catalog.Catalog) string {
	t.Helper()
	var out strings.Builder
	add := func(what string, v any, err error) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		out.WriteString(what + " " + text(v))
	}
	chains, err := c.Chains(ctx)
	add("chains", chains, err)
	for _, row := range chains {
		slots, err := c.Slots(ctx, row.Chain, 0, 0)
		add("slots", slots, err)
		terms, err := c.Terms(ctx, row.Chain)
		add("terms", terms, err)
	}
	tops, err := c.Topologies(ctx)
	add("topologies", tops, err)
	streams, err := c.Streams(ctx, "", 0)
	add("streams", streams, err)
	refs, err := c.RefsByKey(ctx, nil, 0)
	add("refs", refs, err)
	intents, err := c.Intents(ctx, "", 0)
	add("intents", intents, err)
	for _, d := range []catalog.Duty{
		catalog.DutySettle, catalog.DutyPackMerge, catalog.DutyGC, catalog.DutyTailFill, catalog.DutyReapCheck, catalog.DutyTrimCheck,
		catalog.DutyOrphan, catalog.DutyReclaim, catalog.DutyTeardown, catalog.DutySweep,
	} {
		ms, err := c.MarkersOf(ctx, d, "", 0)
		for i := range ms {
			ms[i].Version = 0
		}
		add(string(d), ms, err)
	}
	rows, err := c.AuditRows(ctx, 0, 0)
	for i := range rows {
		rows[i].Seq = 0
	}
	slices.SortFunc(rows, func(a, b catalog.AuditRow) int { return cmp.Compare(a.Detail, b.Detail) })
	add("audit", rows, err)
	return out.String()
}

// TestRaces: two verbs that meet leave, and answer, what they would one after the other,
// wherever the second comes between two statements of the first. The referee is the
// catalog in memory, which runs one verb at a time.
func TestRaces(t *testing.T) {
	a := newArena(t)
	for _, x := range slices.Concat(races, operators) {
		t.Run(x.name, func(t *testing.T) {
			a.t = t
			want := map[string]string{"first before second": serial(t, x, false), "second before first": serial(t, x, true)}
			for k := 1; ; k++ {
				got, paused := a.run(x, k)
				fits := got == want["first before second"] || got == want["second before first"]
				if !fits {
					t.Errorf("statement %d: neither order gives it\n%s", k, strings.Join(differs(got, want), "\n"))
				}
				if !paused {
					if k < 3 {
						t.Fatalf("the first verb had %d statements: nothing came in between", k-1)
					}
					return
				}
			}
		})
	}
}

// differs says in which lines an outcome is neither order's.
func differs(got string, want map[string]string) (out []string) {
	for order, w := range want {
		a, b := strings.Split(got, "\n"), strings.Split(w, "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				out = append(out, order+", got  "+a[i], order+", want "+b[i])
			}
		}
	}
	return out
}
