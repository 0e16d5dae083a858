package catalogtest

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
)

// Twin sends every verb to two catalogs, one verb at a time, and fails the test where they
// do not give the same answer, rows, order, versions and ids included. So whatever a test
// does not look at is compared as well.
type Twin struct {
	t             *testing.T
	first, second catalog.Catalog
	mu            sync.Mutex
	calls         int
}

var _ catalog.Catalog = (*Twin)(nil)

// NewTwin takes two empty catalogs with one clock; what the first answers is what the
// caller gets.
func NewTwin(t *testing.T, first, second catalog.Catalog) *Twin {
	return &Twin{t: t, first: first, second: second}
}

// Calls is how many verbs were compared.
func (w *Twin) Calls() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls
}

// call runs a verb on both and answers with what the first gave.
func call[V any](w *Twin, verb string, do func(catalog.Catalog) (V, error)) (V, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	got, err := do(w.first)
	want, wantErr := do(w.second)
	if !errors.Is(kindOf(err), kindOf(wantErr)) {
		w.t.Errorf("%s: %v, and the other %v", verb, err, wantErr)
		return got, err
	}
	// A conflict says what stood in words, which are the guards' own.
	var c *catalog.ConflictError
	if errors.As(err, &c) && err.Error() != wantErr.Error() {
		w.t.Errorf("%s: %v, and the other %v", verb, err, wantErr)
	}
	if err == nil && !same(reflect.ValueOf(got), reflect.ValueOf(want)) {
		w.t.Errorf("%s:\n%+v, and the other\n%+v", verb, got, want)
	}
	return got, err
}

func do(w *Twin, verb string, act func(catalog.Catalog) error) error {
	_, err := call(w, verb, func(c catalog.Catalog) (struct{}, error) { return struct{}{}, act(c) })
	return err
}

func kindOf(err error) error {
	if err == nil {
		return nil
	}
	if k := catalog.KindOf(err); k != nil {
		return k
	}
	return errors.New("of no kind: " + err.Error())
}

var settingsType = reflect.TypeFor[catalog.Settings]()

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
			if a.Type() == settingsType && a.Type().Field(i).Name == "Schema" {
				continue // each counts its own
			}
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

// CompareAll reads every table of both.
func (w *Twin) CompareAll() {
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

func must(w *Twin, verb string, err error) {
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

func (w *Twin) MarkersOf(ctx context.Context, d catalog.Duty, afterID string, limit int) ([]catalog.Marker, error) {
	return call(w, "MarkersOf", func(cat catalog.Catalog) ([]catalog.Marker, error) { return cat.MarkersOf(ctx, d, afterID, limit) })
}

func (w *Twin) Intents(ctx context.Context, afterKey string, limit int) ([]catalog.Intent, error) {
	return call(w, "Intents", func(cat catalog.Catalog) ([]catalog.Intent, error) { return cat.Intents(ctx, afterKey, limit) })
}

func (w *Twin) AuditRows(ctx context.Context, after int64, limit int) ([]catalog.AuditRow, error) {
	return call(w, "AuditRows", func(cat catalog.Catalog) ([]catalog.AuditRow, error) { return cat.AuditRows(ctx, after, limit) })
}

// Close is the cleanup's.
func (w *Twin) Close() error { return nil }
