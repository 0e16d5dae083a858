package settle

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/segment"
)

// form is how a call of store or catalog goes wrong.
type form int

const (
	fine form = iota
	notApplied
	answerLost
	crash      // not applied, and nothing works until heal
	crashAfter // applied, its answer lost, and nothing works until heal
)

func (f form) String() string {
	return [...]string{"fine", "not-applied", "answer-lost", "crash", "crash-after"}[f]
}

// world is the faults of one run, over the calls of store and catalog together.
type world struct {
	mu   sync.Mutex
	pick func(n int, call string) form
	n    int
	hit  string // the call that failed
	dead bool
	hook func(call string, after bool) // runs around every call, unlocked
	log  []string
}

func (w *world) next(call string) form {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return notApplied
	}
	w.n++
	w.log = append(w.log, call)
	if w.pick == nil {
		return fine
	}
	f := w.pick(w.n, call)
	if f != fine {
		w.hit = call
	}
	w.dead = f == crash || f == crashAfter
	return f
}

// heal ends a crash and all faults.
func (w *world) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pick, w.dead, w.hook = nil, false, nil
}

func (w *world) around(call string, after bool) {
	w.mu.Lock()
	hook := w.hook
	w.mu.Unlock()
	if hook != nil {
		hook(call, after)
	}
}

func (w *world) calls(name string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.log {
		if c == name {
			n++
		}
	}
	return n
}

// driver puts the faults into a store's calls.
func (w *world) driver(d objstore.Driver) objstore.Driver {
	return faultstore.Wrap(d, func(c faultstore.Call) faultstore.Fault {
		call := string(c.Op)
		f := faultstore.Fault{
			Before: func() { w.around(call, false) },
			After:  func() { w.around(call, true) },
		}
		switch w.next(call) {
		case notApplied, crash:
			f.Kind = faultstore.NotApplied
		case answerLost, crashAfter:
			f.Kind = faultstore.AnswerLost
		}
		return f
	})
}

// faulty puts the faults into a catalog's calls.
type faulty struct {
	Catalog
	w *world
}

func call[T any](f *faulty, verb string, do func() (T, error)) (T, error) {
	var none T
	f.w.around(verb, false)
	form := f.w.next(verb)
	if form == notApplied || form == crash {
		return none, fmt.Errorf("%w: injected into %s", catalog.ErrUnavailable, verb)
	}
	out, err := do()
	f.w.around(verb, true)
	if (form == answerLost || form == crashAfter) && err == nil {
		return none, fmt.Errorf("%w: injected into %s", catalog.ErrAmbiguous, verb)
	}
	return out, err
}

func call0(f *faulty, verb string, do func() error) error {
	_, err := call(f, verb, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func (f *faulty) LeaseDuty(ctx context.Context, h catalog.Holder, d time.Duration) error {
	return call0(f, "LeaseDuty", func() error { return f.Catalog.LeaseDuty(ctx, h, d) })
}

func (f *faulty) ReleaseDuty(ctx context.Context, h catalog.Holder) error {
	return call0(f, "ReleaseDuty", func() error { return f.Catalog.ReleaseDuty(ctx, h) })
}

func (f *faulty) Window(ctx context.Context, c segment.Chain, n int64) (catalog.Window, error) {
	return call(f, "Window", func() (catalog.Window, error) { return f.Catalog.Window(ctx, c, n) })
}

func (f *faulty) ResolveSettled(ctx context.Context, c segment.Chain, m []catalog.MarkerRef) (int, error) {
	return call(f, "ResolveSettled", func() (int, error) { return f.Catalog.ResolveSettled(ctx, c, m) })
}

func (f *faulty) Postpone(ctx context.Context, m catalog.MarkerRef, in time.Duration, cause string) error {
	return call0(f, "Postpone", func() error { return f.Catalog.Postpone(ctx, m, in, cause) })
}

func (f *faulty) Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error) {
	return call(f, "Liveness", func() ([]catalog.LiveRef, error) { return f.Catalog.Liveness(ctx, key) })
}

func (f *faulty) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	return call(f, "Plan", func() (catalog.Plan, error) { return f.Catalog.Plan(ctx, r) })
}

func (f *faulty) PackWindow(ctx context.Context, c segment.Chain, generation uint32, packs int) (catalog.PackWindow, error) {
	return call(f, "PackWindow", func() (catalog.PackWindow, error) { return f.Catalog.PackWindow(ctx, c, generation, packs) })
}

func (f *faulty) Arm(ctx context.Context, d catalog.Duty, id string, class segment.Class, in time.Duration) error {
	return call0(f, "Arm", func() error { return f.Catalog.Arm(ctx, d, id, class, in) })
}

func (f *faulty) Resolve(ctx context.Context, m catalog.MarkerRef) error {
	return call0(f, "Resolve", func() error { return f.Catalog.Resolve(ctx, m) })
}

func (f *faulty) Announce(ctx context.Context, a catalog.Announce) (catalog.Intent, error) {
	return call(f, "Announce", func() (catalog.Intent, error) { return f.Catalog.Announce(ctx, a) })
}

func (f *faulty) AddUpload(ctx context.Context, key, nonce, upload string) error {
	return call0(f, "AddUpload", func() error { return f.Catalog.AddUpload(ctx, key, nonce, upload) })
}

func (f *faulty) DropUpload(ctx context.Context, key, nonce, upload string) error {
	return call0(f, "DropUpload", func() error { return f.Catalog.DropUpload(ctx, key, nonce, upload) })
}

func (f *faulty) CommitRewrite(ctx context.Context, r catalog.Rewrite) (catalog.Rewritten, error) {
	return call(f, "CommitRewrite", func() (catalog.Rewritten, error) { return f.Catalog.CommitRewrite(ctx, r) })
}

func (f *faulty) Now(ctx context.Context) (time.Time, error) {
	return call(f, "Now", func() (time.Time, error) { return f.Catalog.Now(ctx) })
}

func (f *faulty) Settings(ctx context.Context) (catalog.Settings, error) {
	return call(f, "Settings", func() (catalog.Settings, error) { return f.Catalog.Settings(ctx) })
}

func (f *faulty) Audit(ctx context.Context, kind, subject, detail string) error {
	return call0(f, "Audit", func() error { return f.Catalog.Audit(ctx, kind, subject, detail) })
}

// faultySettler is a settler whose every call of store and catalog goes through w.
func (x *tier) faultySettler(w *world, cfg Config) *Settler {
	return x.settlerOn(x.open(w.driver(x.mem)), &faulty{x.db, w}, cfg)
}

// sweep runs scenario with the i-th call of store and catalog failing, for every
// i and every form, until a run meets no fault; each then has to converge.
func sweep(t *testing.T, forms []form, scenario func(t *testing.T, w *world)) {
	for _, f := range forms {
		hits := 0
		for i := 1; ; i++ {
			w := &world{}
			w.pick = func(n int, _ string) form {
				if n == i {
					return f
				}
				return fine
			}
			ok := t.Run(fmt.Sprintf("%s/%d", f, i), func(t *testing.T) { scenario(t, w) })
			if !ok {
				t.Fatalf("%s: call %d (%s)", f, i, w.hit)
			}
			if w.hit == "" {
				break
			}
			hits++
		}
		if hits == 0 {
			t.Fatalf("%s: no fault was hit", f)
		}
		t.Logf("%s: each of %d calls failed once", f, hits)
	}
}
