package catalogtest

import (
	"errors"
	"testing"

	"github.com/strandline/strandline/catalog"
)

// testSession: verbs that are bound to the session that stands go on, and those that are bound
// to another one change nothing, and say nothing.
func testSession(t *testing.T, open Open) {
	w := NewWorld(t, open)
	if _, both := w.C.(*Twin); both {
		return // each of the two has sessions of its own
	}
	stands, err := w.C.Session(w.Ctx)
	w.OK(err)
	again, err := w.C.Session(w.Ctx)
	w.OK(err)
	if stands == "" || again != stands {
		t.Fatalf("the session is %q, and then %q", stands, again)
	}
	within := catalog.Within(w.Ctx, stands)
	w.OK(w.C.Arm(within, catalog.DutyGC, "seg/x", class, 0))
	_, err = w.C.Marker(within, catalog.DutyGC, "seg/x")
	w.OK(err)

	over := catalog.Within(w.Ctx, stands+" before")
	ended := func(verb string, err error) {
		t.Helper()
		if !errors.Is(err, catalog.ErrSessionEnded) || !errors.Is(err, catalog.ErrUnavailable) {
			t.Errorf("%s, bound to a session that is over: %v", verb, err)
		}
	}
	ended("Arm", w.C.Arm(over, catalog.DutyGC, "seg/y", class, 0))
	_, err = w.C.Marker(over, catalog.DutyGC, "seg/x")
	ended("Marker", err)
	_, err = w.C.Now(over)
	ended("Now", err)
	_, err = w.C.Chain(over, w.Chain)
	ended("Chain", err)
	_, err = w.C.Marker(w.Ctx, catalog.DutyGC, "seg/y")
	w.Is(err, catalog.ErrNotFound, "")

	// What cannot tell its sessions binds nothing.
	w.OK(w.C.Arm(catalog.Within(w.Ctx, ""), catalog.DutyGC, "seg/z", class, 0))
}
