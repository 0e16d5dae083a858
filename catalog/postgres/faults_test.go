package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/catalogtest"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/segment"
)

// faulted are the verbs that faults are tried on: the first of these races' two.
var faulted = []string{
	"commit against condemn", "condemn against commit", "announce against announce", "absorb against trim", "acquire against absorb", "trim against absorb",
	"retire against commit", "loss against commit", "watermark against a new consumer", "advance-trim against commit", "resolve against commit", "a plan against commit",
}

// alone is what a verb gives and leaves with nobody else there.
func alone(t *testing.T, x race) (said, left string) {
	w := catalogtest.NewWorld(t, func(_ *testing.T, o catalogtest.Options) catalog.Catalog {
		return memory.New(memory.Options{Clock: o.Clock})
	})
	a, _ := x.set(w)
	said = say(a(t.Context(), w.C))
	return said, dump(t.Context(), t, w.C)
}

// fits holds what a verb said and left against what it does alone.
func (a *arena) fits(x race, what string, said, left string) {
	a.t.Helper()
	wantSaid, wantLeft := alone(a.t, x)
	if said != wantSaid || left != wantLeft {
		a.t.Errorf("%s: said %s%v", what, said, differs(said+left, map[string]string{"alone": wantSaid + wantLeft}))
	}
}

// sweep has a fault at the first statement of a verb, then at the second, until a run has
// none. try runs the verb with a hook that faults at the i-th, and says whether it did.
func sweep(t *testing.T, try func(a *arena, x race, i int) (hit bool)) {
	a := newArena(t)
	for _, name := range faulted {
		for _, x := range races {
			if x.name != name {
				continue
			}
			t.Run(name, func(t *testing.T) {
				a.t = t
				for i := 1; try(a, x, i); i++ {
					if i > 60 {
						t.Fatal("it does not end")
					}
				}
			})
		}
	}
}

// refused is the answer of a server that ended the transaction in favour of another.
func refused(code string) error {
	return &pgconn.PgError{Severity: "ERROR", Code: code, Message: "injected"}
}

// TestRetry: a transaction that lost against another is run again, whichever statement is
// refused, and happens once.
func TestRetry(t *testing.T) {
	codes := []string{codeSerialize, codeDeadlock}
	sweep(t, func(a *arena, x race, i int) (hit bool) {
		w := a.world(a.t)
		verb, _ := x.set(w)
		trips := 0
		a.first.hook = &hook{split: true, after: func(_ *tx, err error) error { return err }, before: func(*tx) error {
			if trips++; trips == i {
				hit = true
				return refused(codes[i%2])
			}
			return nil
		}}
		said := say(verb(a.t.Context(), a.first))
		a.fits(x, fmt.Sprint("refused at statement ", i), said, dump(a.t.Context(), a.t, a.second))
		return hit
	})
}

// TestLostAnswer: a statement takes effect, but its answer is lost with the connection. A
// verb that certainly did not commit is run again; one whose COMMIT was on the wire is
// ErrAmbiguous: it did, or left nothing, and may be called again.
func TestLostAnswer(t *testing.T) {
	ran, committed := map[string]bool{}, map[string]bool{}
	sweep(t, func(a *arena, x race, i int) (hit bool) {
		ran[x.name] = x.name != "a plan against commit" // which commits nothing
		w := a.world(a.t)
		verb, _ := x.set(w)
		before := dump(a.t.Context(), a.t, a.second)
		trips := 0
		a.first.hook = &hook{split: true, before: func(*tx) error { return nil }, after: func(t *tx, err error) error {
			if trips++; trips != i || err != nil {
				return err
			}
			hit = true
			if err := t.c.Close(context.Background()); err != nil {
				return err
			}
			return io.ErrUnexpectedEOF
		}}
		v, err := verb(a.t.Context(), a.first)
		a.first.hook = nil
		left := dump(a.t.Context(), a.t, a.second)
		if !errors.Is(err, catalog.ErrAmbiguous) {
			a.fits(x, fmt.Sprint("lost at statement ", i), say(v, err), left)
			return hit
		}
		switch _, want := alone(a.t, x); left {
		case want:
			committed[x.name] = true
		case before:
		default:
			a.t.Errorf("lost at statement %d, it left a part: %v", i, differs(left, map[string]string{"before": before, "after": want}))
		}
		return hit
	})
	for name, writes := range ran {
		if committed[name] != writes {
			t.Errorf("%s: the answer to COMMIT was lost: %v", name, committed[name])
		}
	}
}

// TestTerminated: the server ends the connection before a statement, as one does that is
// shut down; the verb is run again on another.
func TestTerminated(t *testing.T) {
	sweep(t, func(a *arena, x race, i int) (hit bool) {
		w := a.world(a.t)
		verb, _ := x.set(w)
		trips := 0
		a.first.hook = &hook{split: true, after: func(_ *tx, err error) error { return err }, before: func(t *tx) error {
			if trips++; trips == i {
				hit = true
				_, err := a.raw.Exec(context.Background(), "SELECT pg_terminate_backend($1, 5000)", t.c.PgConn().PID())
				return err
			}
			return nil
		}}
		v, err := verb(a.t.Context(), a.first)
		if errors.Is(err, catalog.ErrAmbiguous) { // it was the COMMIT, which did not arrive
			a.first.hook = nil
			v, err = verb(a.t.Context(), a.first)
		}
		a.fits(x, fmt.Sprint("terminated before statement ", i), say(v, err), dump(a.t.Context(), a.t, a.second))
		return hit
	})
}

// TestStalled: a process that is stopped within a transaction, or between two, for longer
// than the server waits finds its session ended, runs the verb again, and does so once.
func TestStalled(t *testing.T) {
	d := openWith(t, Options{MaxConns: 1})
	prepareChain(t, d)
	for i, within := range []string{"idle_session_timeout", "idle_in_transaction_session_timeout", "idle_in_transaction_session_timeout", "idle_in_transaction_session_timeout"} {
		trips, hits := 0, 0
		d.hook = &hook{after: func(_ *tx, err error) error { return err }, before: func(x *tx) error {
			if trips++; trips != i+1 {
				return nil
			}
			hits++
			if _, err := x.c.Exec(context.Background(), "SET "+within+" = 10"); err != nil {
				return err
			}
			time.Sleep(300 * time.Millisecond)
			return nil
		}}
		got, err := d.AbsorbSlot(t.Context(), slotOf(testChain, uint64(i+1), 3))
		if err != nil || hits != 1 || got.Already || got.Chain.AbsorbedEnd != segment.ID(i+2) {
			t.Errorf("stalled before round trip %d: %+v, %v; stalled %d times", i+1, got, err, hits)
		}
	}
}

// TestCancelled: a verb whose context ends at any statement leaves nothing, and its
// connection is fit for the next. Once COMMIT is on its way the outcome is waited for.
func TestCancelled(t *testing.T) {
	sweep(t, func(a *arena, x race, i int) (hit bool) {
		w := a.world(a.t)
		verb, _ := x.set(w)
		before := dump(a.t.Context(), a.t, a.second)
		ctx, cancel := context.WithCancel(a.t.Context())
		defer cancel()
		trips := 0
		a.first.hook = &hook{split: true, after: func(_ *tx, err error) error { return err }, before: func(*tx) error {
			if trips++; trips == i {
				hit = true
				cancel()
			}
			return nil
		}}
		v, err := verb(ctx, a.first)
		a.first.hook = nil
		left := dump(a.t.Context(), a.t, a.second)
		switch {
		case !errors.Is(err, context.Canceled) || !errors.Is(err, catalog.ErrUnavailable):
			a.fits(x, fmt.Sprint("cancelled at statement ", i), say(v, err), left)
		case left != before:
			a.t.Errorf("cancelled at statement %d, it left something: %v", i, differs(left, map[string]string{"before": before}))
		}
		if _, err := a.first.Now(a.t.Context()); err != nil {
			a.t.Errorf("after a verb that was cancelled: %v", err)
		}
		return hit
	})
}

// TestConflictsEnd: a verb that loses again and again gives up, and says so.
func TestConflictsEnd(t *testing.T) {
	d := openWith(t, Options{})
	tries := 0
	d.hook = &hook{before: func(*tx) error { tries++; return refused(codeSerialize) }, after: func(_ *tx, err error) error { return err }}
	if _, err := d.Chains(t.Context()); !errors.Is(err, catalog.ErrUnavailable) {
		t.Fatal(err)
	}
	if tries != conflictTries+1 {
		t.Errorf("%d tries", tries)
	}
}

// TestPoolWait: a verb waits for a connection, but not for ever.
func TestPoolWait(t *testing.T) {
	d := openWith(t, Options{MaxConns: 1, AcquireWait: time.Minute}) // opening, and the last verb, may wait for as long
	if d.acquireWait != time.Minute {
		t.Errorf("a verb waits for %v", d.acquireWait)
	}
	c, err := d.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.acquireWait = 50 * time.Millisecond
	if _, err := d.Now(t.Context()); !errors.Is(err, catalog.ErrUnavailable) {
		t.Errorf("a pool that is used up: %v", err)
	}
	d.acquireWait = time.Minute
	c.Release()
	if _, err := d.Now(t.Context()); err != nil {
		t.Error(err)
	}
}
