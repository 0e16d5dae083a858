package objstore_test

import (
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
)

// TestAccountOfRetries: what is tried again is counted as retries, failures by kind, and a
// bucket of time for each attempt.
func TestAccountOfRetries(t *testing.T) {
	m := mem(t, memstore.Options{})
	put(t, m, "k", []byte("x"))
	s := newStore(t, faultstore.Wrap(m, script(objstore.OpHead, unavailable, unavailable)))
	if _, err := s.Head(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	a := s.Account()
	h := a.Ops[objstore.OpHead]
	var timed int64
	for _, n := range h.Buckets {
		timed += n
	}
	if a.Retries != 2 || h.Requests != 3 || h.Failed["unavailable"] != 2 || timed != 3 {
		t.Errorf("%d retries, %+v", a.Retries, h)
	}
	if _, ok := a.Ops[objstore.OpPut]; ok {
		t.Error("an operation that was never called is there")
	}
}
