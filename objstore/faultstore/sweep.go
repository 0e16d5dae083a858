package faultstore

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// Form is a way for the i-th call of a sweep to fail.
type Form string

const (
	FormNotApplied Form = "not-applied"
	FormAnswerLost Form = "answer-lost" // mutations only: a read has nothing to apply
	FormCrash      Form = "crash"       // not applied, nor any later call until Heal
	FormCrashAfter Form = "crash-after" // mutations only: applied, then as FormCrash
)

// SweepOptions narrows a sweep. The zero value sweeps every call, in the forms
// not-applied and answer-lost.
type SweepOptions struct {
	// Candidate says which calls are counted and may fail; nil: all. See Ops.
	Candidate func(Call) bool
	Forms     []Form
	// Sticky keeps the i-th call failing whenever it is repeated (same op and key)
	// until Heal, so that a Store's own retries do not hide the failure.
	Sticky bool
	// Err is the error's kind; nil: as Fault.Err.
	Err error
}

// Ops makes a Candidate of some operations.
func Ops(ops ...objstore.Op) func(Call) bool {
	return func(c Call) bool { return slices.Contains(ops, c.Op) }
}

// maxRuns bounds a sweep: a scenario that makes more calls is to be cut smaller.
const maxRuns = 5000

// Sweep runs scenario again and again, each time with one more call let through
// before one fails, until a run passes without meeting its fault; and that for
// each form. Each run is a subtest named form/i.
//
//	faultstore.Sweep(t, faultstore.SweepOptions{}, func(t *testing.T, f *faultstore.Injector) {
//		mem := memstore.New(memstore.Options{})       // a world of its own
//		store := newStore(t, f.Wrap(mem))
//		err := duty(store)
//		if err != nil && !f.Hit() {
//			t.Fatal(err)                          // nothing failed, yet it did
//		}
//		f.Heal()
//		mustConverge(t, duty(store), mem)             // run again: all is as it must be
//	})
//
// Everything that is checked is checked by scenario. Sweep itself fails the test
// if no call was a candidate, so that no fault was ever hit.
func Sweep(t *testing.T, opts SweepOptions, scenario func(t *testing.T, f *Injector)) {
	t.Helper()
	if len(opts.Forms) == 0 {
		opts.Forms = []Form{FormNotApplied, FormAnswerLost}
	}
	for _, form := range opts.Forms {
		hits, err := sweep(func(i int) (hit, ok bool) {
			inj := &Injector{opts: opts, form: form, target: i}
			ok = t.Run(fmt.Sprintf("%s/%d", form, i), func(t *testing.T) { scenario(t, inj) })
			return inj.Hit(), ok
		})
		if err != nil {
			t.Fatalf("sweep, %s: %v", form, err)
		}
		t.Logf("sweep, %s: each of %d calls failed once", form, hits)
	}
}

// sweep calls run with 1, 2, … until it passes without a hit.
func sweep(run func(i int) (hit, ok bool)) (hits int, err error) {
	for i := 1; i <= maxRuns; i++ {
		hit, ok := run(i)
		switch {
		case !ok:
			return hits, fmt.Errorf("run %d does not pass", i)
		case !hit && hits == 0:
			return 0, fmt.Errorf("no fault was hit: no call is a candidate")
		case !hit:
			return hits, nil
		}
		hits++
	}
	return hits, fmt.Errorf("no end after %d runs", maxRuns)
}

// Injector is one run's fault. It counts the candidate calls of all drivers that
// it wraps together, and fails one of them.
type Injector struct {
	opts   SweepOptions
	form   Form
	target int

	mu      sync.Mutex // all below
	seen    int
	hit     bool
	healed  bool
	op      objstore.Op // of the call that failed
	key     string
	wrapped []*Driver
}

// Wrap puts the fault into d's calls.
func (f *Injector) Wrap(d objstore.Driver) objstore.Driver {
	w := Wrap(d, f.pick)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrapped = append(f.wrapped, w)
	return w
}

// Hit says whether the fault has struck.
func (f *Injector) Hit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hit
}

// Heal ends a crash and a sticky fault; no call fails after it.
func (f *Injector) Heal() {
	f.mu.Lock()
	f.healed = true
	wrapped := slices.Clone(f.wrapped)
	f.mu.Unlock()
	for _, w := range wrapped {
		w.Revive()
	}
}

func (f *Injector) pick(c Call) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	crash := f.form == FormCrash || f.form == FormCrashAfter
	switch {
	case f.healed:
		return Fault{}
	case f.hit && crash: // a driver beside the one that crashed
		return Fault{Kind: NotApplied}
	case f.hit && f.opts.Sticky && c.Op == f.op && c.Key == f.key:
		return f.fault()
	case f.hit || !f.candidate(c):
		return Fault{}
	}
	f.seen++
	if f.seen < f.target {
		return Fault{}
	}
	f.hit, f.op, f.key = true, c.Op, c.Key
	return f.fault()
}

func (f *Injector) candidate(c Call) bool {
	lost := f.form == FormAnswerLost || f.form == FormCrashAfter
	return (!lost || c.Op.Mutation()) && (f.opts.Candidate == nil || f.opts.Candidate(c))
}

func (f *Injector) fault() Fault {
	kind := map[Form]Kind{
		FormNotApplied: NotApplied, FormAnswerLost: AnswerLost, FormCrash: Crash, FormCrashAfter: CrashAfter,
	}[f.form]
	return Fault{Kind: kind, Err: f.opts.Err}
}
