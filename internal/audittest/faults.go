package audittest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/verbs"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
)

// Form is how a call of store or catalog goes wrong.
type Form string

// The forms.
const (
	Fine       Form = ""
	NotApplied Form = "not-applied"
	AnswerLost Form = "answer-lost" // applied, though the caller sees an error
	Crash      Form = "crash"       // not applied, and nothing works until Heal
	CrashAfter Form = "crash-after" // applied, its answer lost, and nothing works until Heal
)

// AllForms are the forms of a sweep.
func AllForms() []Form { return []Form{NotApplied, AnswerLost, Crash, CrashAfter} }

// Faults are those of one run, over the calls of store and catalog together.
type Faults struct {
	// Pick decides each call's fate; call is "store <op> <key>" or a verb.
	Pick func(n int, call string) Form
	// Hook runs around every call.
	Hook func(call string, after bool)

	mu   sync.Mutex // all below
	on   bool
	n    int
	hit  string
	dead bool
	log  []string
}

// Start begins counting.
func (f *Faults) Start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on = true
}

// Heal ends the faults.
func (f *Faults) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on, f.dead = false, false
}

// Hit is the call that failed, or "".
func (f *Faults) Hit() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hit
}

// Calls are those made since Start, in order.
func (f *Faults) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.log...)
}

func (f *Faults) next(call string) Form {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.on {
		return Fine
	}
	if f.dead {
		return NotApplied
	}
	f.n++
	f.log = append(f.log, call)
	if f.Pick == nil {
		return Fine
	}
	form := f.Pick(f.n, call)
	if form != Fine {
		f.hit = call
	}
	f.dead = form == Crash || form == CrashAfter
	return form
}

func (f *Faults) hook(call string, after bool) {
	f.mu.Lock()
	on := f.on
	f.mu.Unlock()
	if f.Hook != nil && on {
		f.Hook(call, after)
	}
}

// errInjected is the cause of every fault.
var errInjected = errors.New("injected fault")

// verb makes one catalog call, or not.
func (f *Faults) verb(ctx context.Context, v verbs.Verb, do func(context.Context) error) error {
	form := f.next(v.Name)
	if form == NotApplied || form == Crash {
		return fmt.Errorf("%w: %s: %w", catalog.ErrUnavailable, v.Name, errInjected)
	}
	f.hook(v.Name, false)
	err := do(ctx)
	f.hook(v.Name, true)
	if form != Fine {
		return fmt.Errorf("%w: %s: %w", catalog.ErrAmbiguous, v.Name, errInjected)
	}
	return err
}

// Around puts the faults around every verb of c.
func (f *Faults) Around(c catalog.Catalog) catalog.Catalog { return verbs.Around(c, f.verb) }

// Driver puts the faults before every call of d.
func (f *Faults) Driver(d objstore.Driver) objstore.Driver {
	return faultstore.Wrap(d, func(c faultstore.Call) faultstore.Fault {
		call := fmt.Sprintf("store %s %s", c.Op, c.Key)
		out := faultstore.Fault{Before: func() { f.hook(call, false) }, After: func() { f.hook(call, true) }}
		switch f.next(call) {
		case NotApplied, Crash:
			out.Kind = faultstore.NotApplied
		case AnswerLost, CrashAfter:
			out.Kind = faultstore.AnswerLost
		}
		return out
	})
}

// Sweep runs scenario with the i-th call failing, for every i and form, until a
// run meets no fault. The scenario heals and checks that all converges. Under the
// race detector the forms go by turns.
func Sweep(t *testing.T, forms []Form, scenario func(t *testing.T, f *Faults)) {
	t.Helper()
	if raceEnabled {
		SweepMixed(t, forms, scenario)
		return
	}
	for _, form := range forms {
		sweep(t, string(form), func(int) Form { return form }, scenario)
	}
}

// SweepMixed is Sweep for long scenarios: each call fails once, in the forms by
// turns.
func SweepMixed(t *testing.T, forms []Form, scenario func(t *testing.T, f *Faults)) {
	t.Helper()
	sweep(t, "mixed", func(i int) Form { return forms[i%len(forms)] }, scenario)
}

func sweep(t *testing.T, name string, form func(i int) Form, scenario func(t *testing.T, f *Faults)) {
	t.Helper()
	hits := 0
	for i := 1; ; i++ {
		f := &Faults{Pick: func(n int, _ string) Form {
			if n == i {
				return form(i)
			}
			return Fine
		}}
		if !t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) { scenario(t, f) }) {
			t.Fatalf("%s: call %d (%s)", name, i, f.Hit())
		}
		if f.Hit() == "" {
			break
		}
		hits++
	}
	if hits == 0 {
		t.Fatalf("%s: no fault was hit", name)
	}
	t.Logf("%s: each of %d calls failed once", name, hits)
}

// Cut is the Pick that crashes right after the n-th call for which match says yes.
func Cut(nth int, match func(call string) bool) func(int, string) Form {
	seen := 0
	return func(_ int, call string) Form {
		if match(call) {
			if seen++; seen == nth {
				return CrashAfter
			}
		}
		return Fine
	}
}

// Store is a Store through the faults, on the tier's bucket.
func (f *Faults) Store(x *Tier) *objstore.Store { return x.Open(f.Driver(x.Mem)) }

// Catalog is the tier's catalog through the faults.
func (f *Faults) Catalog(x *Tier) catalog.Catalog { return f.Around(x.DB) }
