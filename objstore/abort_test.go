package objstore_test

import (
	"context"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
)

// TestK36AbortIsRetriedAndCounted: a failed abort is seen, and sent again.
func TestK36AbortIsRetriedAndCounted(t *testing.T) {
	m := mem(t, memstore.Options{})
	id, err := m.CreateUpload(t.Context(), "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t, faultstore.Wrap(m, script(objstore.OpAbort, unavailable, conflict, lost)))
	if err := s.Abort(t.Context(), "k", id); err != nil {
		t.Fatal(err)
	}
	noUploads(t, m)
	if c := s.Counters(); c.Requests[objstore.OpAbort] != 4 || c.Errors[objstore.OpAbort] != 3 {
		t.Errorf("%d aborts, %d of them failed: want 4 and 3", c.Requests[objstore.OpAbort], c.Errors[objstore.OpAbort])
	}
	if err := s.Abort(t.Context(), "k", id); err != nil {
		t.Errorf("an upload that is gone: %v", err)
	}
}

// TestAbortRefusals: what does not get through is an error, and a cancelled ctx
// starts nothing.
func TestAbortRefusals(t *testing.T) {
	m := mem(t, memstore.Options{})
	id, err := m.CreateUpload(t.Context(), "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t, faultstore.Wrap(m, func(faultstore.Call) faultstore.Fault { return unavailable }))
	wantKind(t, s.Abort(t.Context(), "k", id), objstore.ErrUnavailable)
	if n := s.Counters().Requests[objstore.OpAbort]; n != objstore.DefaultAttempts {
		t.Errorf("%d tries, want %d", n, objstore.DefaultAttempts)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantKind(t, newStore(t, m).Abort(ctx, "k", id), objstore.ErrUnavailable)
	wantKind(t, s.Abort(t.Context(), "", id), objstore.ErrInvalid)
	if ups, err := m.ListUploads(t.Context(), ""); err != nil || len(ups) != 1 {
		t.Errorf("uploads %v, %v: want the one", ups, err)
	}
}
