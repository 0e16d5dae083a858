package storetest

import (
	"context"
	"errors"
	"slices"

	"github.com/strandline/strandline/objstore"
)

func deleteCases() []testCase {
	return []testCase{
		{"Delete/Bulk", deleteBulk},
		{"Delete/TooMany", deleteTooMany},
		{"Delete/FullSet", deleteFullSet},
		{"Delete/None", deleteNone},
		{"Delete/Cancelled", deleteCancelled},
	}
}

// mustDelete deletes keys, in sets as large as the store takes, and checks the
// answer for each.
func (e *env) mustDelete(keys ...string) {
	e.Helper()
	for set := range slices.Chunk(keys, e.caps.MaxDeleteSet) {
		results, err := e.d.Delete(e.ctx(), set)
		if err != nil || len(results) != len(set) {
			e.Fatalf("delete of %d keys: %d results, %v", len(set), len(results), err)
		}
		for i, r := range results {
			if r.Key != set[i] || r.Err != nil {
				e.Fatalf("delete result %d: %q, %v; want %q gone", i, r.Key, r.Err, set[i])
			}
		}
	}
}

func deleteBulk(e *env) {
	keys := e.fill("d/1", "d/2", "d/sub/3", "e/4")
	stays := e.fill("d/stays", "d/sub-/3")
	asked := []string{keys[0], e.key("d/absent"), keys[1], e.key("absent/dir/x"), keys[2], keys[3]}
	e.mustDelete(asked...)
	for _, k := range keys {
		e.absent(k)
	}
	e.listed(e.prefix, stays)
	e.mustDelete(asked...) // gone already: fine
}

func deleteTooMany(e *env) {
	present := e.mustPut(e.key("m/present"), []byte("x")).Key
	keys := append([]string{present}, prefixed(e, e.caps.MaxDeleteSet)...)
	_, err := e.d.Delete(e.ctx(), keys)
	e.wantKind("one key more than MaxDeleteSet", err, objstore.ErrInvalid)
	e.holds(present, []byte("x"))
}

// deleteFullSet: one call of MaxDeleteSet keys, few of them present.
func deleteFullSet(e *env) {
	keys := prefixed(e, e.caps.MaxDeleteSet)
	present := []string{keys[0], keys[len(keys)/2], keys[len(keys)-1]}
	if len(keys) < 3 {
		present = keys
	}
	for _, k := range present {
		e.mustPut(k, []byte(k))
	}
	e.mustDelete(keys...)
	e.listed(e.prefix, nil)
}

func prefixed(e *env, n int) []string {
	keys := numbered("m/%04d", n)
	for i := range keys {
		keys[i] = e.key(keys[i])
	}
	return keys
}

func deleteNone(e *env) {
	results, err := e.d.Delete(e.ctx(), nil)
	if err != nil || len(results) != 0 {
		e.Fatalf("delete of no keys: %v, %v", results, err)
	}
}

func deleteCancelled(e *env) {
	k := e.mustPut(e.key("stays"), []byte("x")).Key
	ctx, cancel := context.WithCancel(e.ctx())
	cancel()
	results, err := e.d.Delete(ctx, []string{k})
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	e.wantKind("delete under a cancelled context", err, objstore.ErrUnavailable, objstore.ErrAmbiguous)
	e.holds(k, []byte("x"))
}
