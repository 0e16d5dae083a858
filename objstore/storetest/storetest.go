package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/strandline/strandline/objstore"
)

// Run runs the suite. open gives a driver that the suite does not close.
func Run(t *testing.T, open func(t *testing.T) objstore.Driver) {
	for _, c := range slices.Concat(putCases(), getCases(), listCases(), deleteCases(), uploadCases(), copyCases(), raceCases()) {
		t.Run(c.name, func(t *testing.T) { c.run(newEnv(t, open(t))) })
	}
}

type testCase struct {
	name string
	run  func(*env)
}

// env is what one case works with.
type env struct {
	*testing.T
	d      objstore.Driver
	over   objstore.Driver // what Stores are put over; d but for RunStoreOver
	caps   objstore.Capabilities
	prefix string
}

func newEnv(t *testing.T, d objstore.Driver) *env {
	return &env{T: t, d: d, over: d, caps: d.Capabilities(), prefix: "t-" + uuid.NewString()[:8] + "/"}
}

func (e *env) ctx() context.Context   { return e.Context() }
func (e *env) key(name string) string { return e.prefix + name }

// rw is a key that may be overwritten.
func (e *env) rw(name string) string { return "rw/" + e.prefix + name }

var once = objstore.PutOptions{IfNoneMatch: true}

func (e *env) put(key string, body []byte, opts objstore.PutOptions) (objstore.Info, error) {
	return e.d.Put(e.ctx(), key, bytes.NewReader(body), int64(len(body)), opts)
}

// mustPut creates an object.
func (e *env) mustPut(key string, body []byte) objstore.Info {
	e.Helper()
	info, err := e.put(key, body, once)
	if err != nil {
		e.Fatalf("put %s: %v", key, err)
	}
	return info
}

// read gives the bytes of a range.
func (e *env) read(key string, r objstore.Range, ifMatch string) ([]byte, objstore.Info, error) {
	body, info, err := e.d.Get(e.ctx(), key, r, ifMatch)
	if err != nil {
		return nil, objstore.Info{}, err
	}
	b, err := io.ReadAll(body)
	return b, info, errors.Join(err, body.Close())
}

// holds checks an object's bytes.
func (e *env) holds(key string, want []byte) objstore.Info {
	e.Helper()
	got, info, err := e.read(key, objstore.Whole, "")
	if err != nil {
		e.Fatalf("get %s: %v", key, err)
	}
	if !bytes.Equal(got, want) {
		e.Fatalf("%s holds %d bytes %.40q, want %d bytes %.40q", key, len(got), got, len(want), want)
	}
	if info.Size != int64(len(want)) {
		e.Fatalf("%s: size %d, want %d", key, info.Size, len(want))
	}
	return info
}

// absent checks that nothing stands under key.
func (e *env) absent(key string) {
	e.Helper()
	_, _, err := e.read(key, objstore.Whole, "")
	e.wantKind("get "+key, err, objstore.ErrNotFound)
}

// wantKind checks that err is one of kinds.
func (e *env) wantKind(what string, err error, kinds ...error) {
	e.Helper()
	if !slices.ContainsFunc(kinds, func(k error) bool { return errors.Is(err, k) }) {
		e.Fatalf("%s: got error %v, want %v", what, err, kinds)
	}
}

// noise is n bytes that repeat for equal seeds and differ for others.
func noise(seed uint64, n int) []byte {
	src := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1})
	b := make([]byte, n)
	_, _ = src.Read(b) // never fails, by its documentation
	return b
}

// sameMeta checks that all of want is in got.
func (e *env) sameMeta(got, want map[string]string) {
	e.Helper()
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if got[k] != want[k] {
			e.Fatalf("metadata %q is %q, want %q (all: %v)", k, got[k], want[k], got)
		}
	}
}

func numbered(format string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(format, i)
	}
	return out
}
