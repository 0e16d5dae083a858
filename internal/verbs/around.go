package verbs

import (
	"context"

	"github.com/strandline/strandline/catalog"
)

// Verb is one call of a catalog.
type Verb struct {
	Name    string
	Mutates bool
	// About is what it was called with, but for owners, nonces and upload ids, which differ
	// between two runs of one scenario.
	About []any
}

// Func makes a call by do, at most once, or does not.
type Func func(ctx context.Context, v Verb, do func(ctx context.Context) error) error

// Around is c with f around every verb. It is as safe for concurrent use as c and f are.
func Around(c catalog.Catalog, f Func) catalog.Catalog { return &around{catalog: c, call: f} }

type around struct {
	catalog catalog.Catalog
	call    Func
}

// Close closes the catalog behind.
func (x *around) Close() error { return x.catalog.Close() }

// one is a verb with a result beside its error.
func one[A any](ctx context.Context, x *around, v Verb, do func(context.Context) (A, error)) (A, error) {
	var a A
	err := x.call(ctx, v, func(ctx context.Context) (err error) {
		a, err = do(ctx)
		return err
	})
	if err != nil {
		var none A
		return none, err
	}
	return a, nil
}

// two is a verb with two.
func two[A, B any](ctx context.Context, x *around, v Verb, do func(context.Context) (A, B, error)) (A, B, error) {
	var a A
	var b B
	err := x.call(ctx, v, func(ctx context.Context) (err error) {
		a, b, err = do(ctx)
		return err
	})
	if err != nil {
		var noA A
		var noB B
		return noA, noB, err
	}
	return a, b, nil
}
