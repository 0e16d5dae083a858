package verbs

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
)

// TestEveryVerb: each verb goes through the function once, under its own name, and to its
// own verb of the catalog behind.
func TestEveryVerb(t *testing.T) {
	all := reflect.TypeFor[catalog.Catalog]()
	for i := range all.NumMethod() {
		name := all.Method(i).Name
		if name == "Close" {
			continue
		}
		var met []string
		refused := errors.New("refused")
		c := Around(nil, func(_ context.Context, v Verb, _ func(context.Context) error) error {
			met = append(met, v.Name)
			return refused
		})
		m := reflect.ValueOf(c).MethodByName(name)
		args := make([]reflect.Value, m.Type().NumIn())
		for j := range args {
			args[j] = reflect.Zero(m.Type().In(j))
		}
		out := m.Call(args)
		if len(met) != 1 || met[0] != name {
			t.Errorf("%s went through the function as %v", name, met)
		}
		if err, _ := out[len(out)-1].Interface().(error); !errors.Is(err, refused) {
			t.Errorf("%s answers %v, not what the function says", name, err)
		}
	}
}

// TestAnswers: what the catalog says comes back; an answer that is lost was applied all the
// same, and is zero.
func TestAnswers(t *testing.T) {
	ctx := t.Context()
	db := memory.New(memory.Options{Clock: time.Now})
	fine := Around(db, func(ctx context.Context, _ Verb, do func(context.Context) error) error { return do(ctx) })
	lost := Around(db, func(ctx context.Context, v Verb, do func(context.Context) error) error {
		if err := do(ctx); err != nil || !v.Mutates {
			return err
		}
		return catalog.ErrAmbiguous
	})
	if m, err := lost.SeedReadGrace(ctx, time.Hour); !errors.Is(err, catalog.ErrAmbiguous) || m != (catalog.Margin{}) {
		t.Errorf("a lost answer is %v, %v", m, err)
	}
	if m, err := fine.SeedReadGrace(ctx, time.Minute); err != nil || m.Value != time.Hour {
		t.Errorf("it was not applied, or the next answer does not come back: %v, %v", m, err)
	}
	if _, err := fine.Stream(ctx, "none"); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("an error of the catalog comes back as %v", err)
	}
	if _, more, err := fine.NextDue(ctx, []catalog.Duty{catalog.DutyGC}); err != nil || more {
		t.Errorf("nothing is due, and yet: %v, %v", more, err)
	}
}
