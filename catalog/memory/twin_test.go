//go:build !race

// SQLite under the race detector takes minutes, and the two are called one after the other.

package memory

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/catalogtest"
	"github.com/strandline/strandline/catalog/sqlite"
)

// TestTwin runs the suite on two catalogs at once, this one and SQLite's: every verb
// goes to both, and has to give the same answer, rows, order, versions and ids
// included. So whatever the suite does not look at is compared as well.
func TestTwin(t *testing.T) {
	calls := 0
	t.Run("suite", func(t *testing.T) {
		catalogtest.Run(t, func(t *testing.T, o catalogtest.Options) catalog.Catalog {
			db, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(t.TempDir(), "catalog.db"), Create: true, Clock: o.Clock, WindowRefs: o.WindowRefs})
			if err != nil {
				t.Fatal(err)
			}
			w := &twin{t: t, mem: New(Options{Clock: o.Clock, WindowRefs: o.WindowRefs}), db: db}
			t.Cleanup(func() {
				w.compareAll()
				checkIndexes(t, w.mem)
				w.mu.Lock()
				calls += w.calls
				w.mu.Unlock()
				if err := errors.Join(db.Close(), w.mem.Close()); err != nil {
					t.Error(err)
				}
			})
			return w
		})
	})
	if calls < 10_000 {
		t.Errorf("only %d verbs were compared", calls)
	}
	t.Logf("%d verbs compared", calls)
}

// twin sends every verb to both, one verb at a time.
type twin struct {
	t     *testing.T
	mem   *Catalog
	db    *sqlite.DB
	mu    sync.Mutex
	calls int
}

var _ catalog.Catalog = (*twin)(nil)

// call runs a verb on both and answers with what the first gave.
func call[V any](w *twin, verb string, do func(catalog.Catalog) (V, error)) (V, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	got, err := do(w.mem)
	want, wantErr := do(w.db)
	if !errors.Is(kindOf(err), kindOf(wantErr)) {
		w.t.Errorf("%s: %v, and in SQLite %v", verb, err, wantErr)
		return got, err
	}
	// A conflict says what stood in words, which are the guards' own.
	var c *catalog.ConflictError
	if errors.As(err, &c) && err.Error() != wantErr.Error() {
		w.t.Errorf("%s: %v, and in SQLite %v", verb, err, wantErr)
	}
	if err == nil && !same(reflect.ValueOf(got), reflect.ValueOf(want)) {
		w.t.Errorf("%s:\n%+v, and in SQLite\n%+v", verb, got, want)
	}
	return got, err
}

func do(w *twin, verb string, act func(catalog.Catalog) error) error {
	_, err := call(w, verb, func(c catalog.Catalog) (struct{}, error) { return struct{}{}, act(c) })
	return err
}

func kindOf(err error) error {
	if err == nil {
		return nil
	}
	for _, k := range []error{
		catalog.ErrFenced, catalog.ErrVoid, catalog.ErrConflict, catalog.ErrNotFound, catalog.ErrBeyondTip,
		catalog.ErrUnavailable, catalog.ErrAmbiguous, catalog.ErrCorrupt, catalog.ErrInvalid, catalog.ErrReadOnly, catalog.ErrNoSpace,
	} {
		if errors.Is(err, k) {
			return k
		}
	}
	return errors.New("of no kind: " + err.Error())
}

// same is reflect.DeepEqual, but that an empty slice or map is the same as none, and
// moments are compared as such.
func same(a, b reflect.Value) bool {
	if a.Type() != b.Type() {
		return false
	}
	if at, ok := a.Interface().(time.Time); ok {
		return at.Equal(b.Interface().(time.Time))
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for _, k := range a.MapKeys() {
			if v := b.MapIndex(k); !v.IsValid() || !same(a.MapIndex(k), v) {
				return false
			}
		}
		return true
	case reflect.Pointer:
		return a.IsNil() == b.IsNil() && (a.IsNil() || same(a.Elem(), b.Elem()))
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// compareAll reads every table of both.
func (w *twin) compareAll() {
	w.t.Helper()
	ctx := context.Background()
	chains, _ := w.Chains(ctx)
	for _, c := range chains {
		must(w, "Terms", second(w.Terms(ctx, c.Chain)))
		must(w, "Slots", second(w.Slots(ctx, c.Chain, 0, 0)))
		must(w, "ChainRefs", second(w.ChainRefs(ctx, c.Chain, 0, 0)))
		_, err := w.Window(ctx, c.Chain, 1<<40)
		must(w, "Window", err)
	}
	must(w, "Topologies", second(w.Topologies(ctx)))
	must(w, "Streams", second(w.Streams(ctx, "", 0)))
	must(w, "RefsByKey", second(w.RefsByKey(ctx, nil, 0)))
	must(w, "Intents", second(w.Intents(ctx, "", 0)))
	must(w, "AuditRows", second(w.AuditRows(ctx, 0, 0)))
	st, err := w.Status(ctx)
	must(w, "Status", err)
	must(w, "Debts", second(w.Debts(ctx)))
	for d := range st.Markers {
		must(w, "MarkersOf", second(w.MarkersOf(ctx, d, "", 0)))
		_, _, err := w.NextDue(ctx, []catalog.Duty{d})
		must(w, "NextDue", err)
	}
}

func second[V any](_ V, err error) error { return err }

func must(w *twin, verb string, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Errorf("%s: %v", verb, err)
	}
}

// pair is an answer of a verb that gives two values beside the error.
type pair[A, B any] struct {
	A A
	B B
}

func pairOf[A, B any](a A, b B, err error) (pair[A, B], error) { return pair[A, B]{a, b}, err }
