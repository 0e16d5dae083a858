package settle

import (
	"fmt"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
)

// A slot whose store asked to be left alone is not looked at sooner.
func TestPostponeWaitsAsAsked(t *testing.T) {
	x := newTier(t)
	x.fill(1)
	w, err := x.db.Window(t.Context(), x.chain, 1<<30)
	must(t, err)
	asked := fmt.Errorf("stream %q: %w", "s", &objstore.Error{Op: "get", Key: "k", Kind: objstore.ErrUnavailable, RetryAfter: 50 * time.Minute})
	must(t, x.settler(now()).postpone(t.Context(), w.Slots, func(*catalog.StandingSlot) error { return asked }))
	ms, err := x.db.MarkersOf(t.Context(), catalog.DutySettle, "", 10)
	must(t, err)
	if want := x.clock.Now().Add(50 * time.Minute); len(ms) != 1 || ms[0].Due.Before(want) {
		t.Errorf("%+v: want it due at %v or later", ms, want)
	}
}
