package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/doctor"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/fsstore"
	"github.com/strandline/strandline/objstore/memstore"
)

const prefix = "meta/doctor/"

var opts = doctor.Options{Prefix: prefix}

// newMem is a store whose referee lets the doctor overwrite, and read what it deleted.
func newMem() *memstore.Driver {
	mine := func(key string) bool { return strings.HasPrefix(key, prefix) }
	return memstore.New(memstore.Options{Mutable: mine, MayReadDeleted: mine})
}

func mustRun(t *testing.T, d objstore.Driver) doctor.Report {
	t.Helper()
	r, err := doctor.Run(t.Context(), d, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// healthy wants every required check to hold, and nothing left.
func healthy(t *testing.T, r doctor.Report) {
	t.Helper()
	for _, res := range r.Results {
		if !res.Holds() || res.Outcome == doctor.Failed || res.Outcome == doctor.Denied {
			t.Errorf("%s is %s: %s", res.Check, res.Outcome, res.Detail)
		}
	}
	if len(r.Left) > 0 {
		t.Errorf("left behind: %v", r.Left)
	}
}

// empty wants nothing at all in a bucket.
func empty(t *testing.T, d objstore.Driver) {
	t.Helper()
	page, err := d.List(context.Background(), "", "", "", 1000)
	if err != nil || len(page.Objects) > 0 {
		t.Errorf("objects left: %v %v", page.Objects, err)
	}
	ups, err := d.ListUploads(context.Background(), "")
	if err != nil || len(ups) > 0 {
		t.Errorf("uploads left: %v %v", ups, err)
	}
}

func TestMemory(t *testing.T) {
	mem := newMem()
	r := mustRun(t, mem)
	healthy(t, r)
	empty(t, mem)
	if v := mem.Violations(); len(v) > 0 {
		t.Error(v)
	}
	if r.Capabilities != mem.Capabilities() {
		t.Errorf("narrowed without a finding: %+v", r.Capabilities)
	}
	for _, res := range r.Results {
		if res.Proves == "" || res.Breaks == "" {
			t.Errorf("%s says nothing", res.Check)
		}
	}
}

// TestAWSLike: what AWS, R2 and S3 Express refuse honestly is no obstacle.
func TestAWSLike(t *testing.T) {
	mine := func(key string) bool { return strings.HasPrefix(key, prefix) }
	mem := memstore.New(memstore.Options{
		Mutable: mine, MayReadDeleted: mine, MinPart: 5 << 20, MinCopy: 5 << 20, EqualParts: true, Shuffle: 7, EmptyPages: true,
		DirectoryPrefix: true,
	})
	r := mustRun(t, mem)
	healthy(t, r)
	empty(t, mem)
	for check, want := range map[string]doctor.Outcome{
		"range-copy": doctor.OK, "range-copy-small": doctor.Missing, "unequal-parts": doctor.Skipped,
		"list-order": doctor.Skipped, "list-start-after": doctor.Skipped, "list-pages": doctor.OK,
	} {
		if res, _ := r.Find(check); res.Outcome != want {
			t.Errorf("%s is %s (%s), want %s", check, res.Outcome, res.Detail, want)
		}
	}
}

func TestDirectory(t *testing.T) {
	d := directory(t)
	r := mustRun(t, d)
	healthy(t, r)
	empty(t, d)
	if res, _ := r.Find("clock"); res.Outcome != doctor.OK {
		t.Errorf("clock: %+v", res)
	}
}

func directory(t testing.TB) *fsstore.Driver {
	t.Helper()
	d, err := fsstore.Open(t.TempDir(), fsstore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestSweepOfFaults: whichever call fails, in whatever way, the doctor ends, says no more
// than is known, and leaves nothing.
func TestSweepOfFaults(t *testing.T) {
	for name, run := range map[string]func(context.Context, objstore.Driver, doctor.Options) (doctor.Report, error){
		"run": doctor.Run, "quick": doctor.Quick,
	} {
		t.Run(name, func(t *testing.T) {
			faultstore.Sweep(t, faultstore.SweepOptions{Candidate: rare(name)}, func(t *testing.T, f *faultstore.Injector) {
				mem := newMem()
				r, err := run(t.Context(), f.Wrap(mem), opts)
				if err != nil && (!f.Hit() || !errors.Is(err, objstore.ErrUnavailable)) {
					t.Error(err)
				}
				if refused := r.Refused(); len(refused) > 0 {
					t.Errorf("one fault on the way proves nothing: %+v", refused)
				}
				if name == "run" && err == nil && !r.OK() {
					t.Error("one fault on the way stands in the way")
				}
				if len(r.Left) > 0 {
					t.Errorf("left: %v", r.Left)
				}
				empty(t, mem)
			})
		})
	}
}

// rare thins out the races, whose calls are alike.
func rare(run string) func(faultstore.Call) bool {
	return func(c faultstore.Call) bool {
		return run == "quick" || !strings.Contains(c.Key, "-race-") || c.N%16 == 0
	}
}

// TestInterrupt: Ctrl-C at any call ends the run, and leaves nothing.
func TestInterrupt(t *testing.T) {
	for n := 1; ; n += 3 {
		ctx, cancel := context.WithCancel(t.Context())
		mem := newMem()
		var calls atomic.Int64
		d := faultstore.Wrap(mem, func(c faultstore.Call) faultstore.Fault {
			calls.Add(1)
			if c.N == n {
				return faultstore.Fault{After: cancel}
			}
			return faultstore.Fault{}
		})
		r, err := doctor.Run(ctx, d, opts)
		whole := err == nil
		if ctx.Err() != nil && err == nil && len(r.Results) < 40 {
			t.Fatalf("interrupted at call %d, and no error", n)
		}
		if !whole && !errors.Is(err, context.Canceled) && !errors.Is(err, objstore.ErrUnavailable) {
			t.Errorf("interrupted at call %d: %v", n, err)
		}
		if len(r.Left) > 0 {
			t.Errorf("interrupted at call %d: left %v", n, r.Left)
		}
		empty(t, mem)
		cancel()
		if int(calls.Load()) < n {
			return
		}
	}
}

// TestUnreachable: a store that is away is an error of the run, not forty findings.
func TestUnreachable(t *testing.T) {
	t.Run("at first", func(t *testing.T) {
		d := faultstore.Wrap(newMem(), func(faultstore.Call) faultstore.Fault { return faultstore.Fault{Kind: faultstore.NotApplied} })
		r, err := doctor.Run(t.Context(), d, opts)
		if !errors.Is(err, objstore.ErrUnavailable) || r.Total() != 1 {
			t.Errorf("%v after %d requests", err, r.Total())
		}
	})
	t.Run("meanwhile", func(t *testing.T) {
		d := faultstore.Wrap(newMem(), func(c faultstore.Call) faultstore.Fault {
			if c.N == 30 {
				return faultstore.Fault{Kind: faultstore.Crash}
			}
			return faultstore.Fault{}
		})
		r, err := doctor.Run(t.Context(), d, opts)
		if !errors.Is(err, objstore.ErrUnavailable) || len(r.Results) > 10 {
			t.Errorf("%v with %d results", err, len(r.Results))
		}
		if len(r.Left) == 0 {
			t.Error("nothing is said of what could not be removed")
		}
	})
}

// TestLeftovers: what a killed run left goes when it is an hour old, by the store's clock,
// and what a running one needs stays.
func TestLeftovers(t *testing.T) {
	for name, run := range map[string]func(context.Context, objstore.Driver, doctor.Options) (doctor.Report, error){
		"run": doctor.Run, "quick": doctor.Quick,
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) // far from this machine's
			var shift atomic.Int64
			mine := func(key string) bool { return strings.HasPrefix(key, prefix) }
			mem := memstore.New(memstore.Options{Mutable: mine, MayReadDeleted: mine, Clock: func() time.Time { return now.Add(time.Duration(shift.Load())) }})
			leave := func(key string) {
				_, err := mem.Put(t.Context(), key, strings.NewReader("x"), 1, objstore.PutOptions{})
				if _, err2 := mem.CreateUpload(t.Context(), key+"-upload", nil); err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
			}
			leave(prefix + "aaaa/old")
			leave("seg/other") // not the doctor's
			shift.Store(int64(doctor.LeftoverAge))
			leave(prefix + "bbbb/young")
			r, err := run(t.Context(), mem, opts)
			if err != nil {
				t.Fatal(err)
			}
			if got := mem.Keys(); !slices.Equal(got, []string{prefix + "bbbb/young", "seg/other"}) {
				t.Errorf("keys %v", got)
			}
			if name == "quick" {
				return // the uploads are for the long form
			}
			ups, _ := mem.ListUploads(t.Context(), "")
			if len(ups) != 2 || r.Swept != 2 {
				t.Errorf("swept %d, uploads %v", r.Swept, ups)
			}
		})
	}
}

func TestPrefixMustEndInASlash(t *testing.T) {
	for _, bad := range []string{"", "meta/doctor"} {
		if _, err := doctor.Run(t.Context(), newMem(), doctor.Options{Prefix: bad}); !errors.Is(err, objstore.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestQuick holds its cost.
func TestQuick(t *testing.T) {
	mem := newMem()
	r, err := doctor.Quick(t.Context(), mem, opts)
	if err != nil {
		t.Fatal(err)
	}
	healthy(t, r)
	empty(t, mem)
	if n := r.Total(); n > 14 {
		t.Errorf("%d requests: %v", n, r.Requests)
	}
	if len(r.Results) != 10 {
		t.Errorf("%d results", len(r.Results))
	}
}

// TestQuickReadsTwice: a bit that flips in one answer refuses no start; bytes that stay
// wrong do.
func TestQuickReadsTwice(t *testing.T) {
	for wrong, refused := range map[int]int{1: 0, 2: 1} {
		left := wrong
		d := faultstore.Wrap(memstore.New(memstore.Options{}), func(c faultstore.Call) faultstore.Fault {
			if c.Op != objstore.OpGet || left == 0 {
				return faultstore.Fault{}
			}
			left--
			return faultstore.Fault{Kind: faultstore.WrongBytes}
		})
		r, err := doctor.Quick(t.Context(), d, opts)
		if err != nil || left != 0 || len(r.Refused()) != refused {
			t.Errorf("%d damaged answers, %d of them not read: %v, %v", wrong, left, r.Refused(), err)
		}
	}
}

// TestQuickReadOnly writes nothing.
func TestQuickReadOnly(t *testing.T) {
	var mutations []string
	d := faultstore.Wrap(newMem(), func(c faultstore.Call) faultstore.Fault {
		if c.Op.Mutation() {
			mutations = append(mutations, fmt.Sprint(c))
		}
		return faultstore.Fault{}
	})
	o := opts
	o.ReadOnly = true
	r, err := doctor.Quick(t.Context(), &liar{Driver: d, settings: &objstore.Settings{Versioning: "Enabled"}}, o)
	if err != nil || len(mutations) > 0 {
		t.Errorf("%v, %v", err, mutations)
	}
	if refused := r.Refused(); len(refused) != 1 || refused[0].Check != "versioning" {
		t.Errorf("%+v", refused)
	}
}

// TestQuickOnASlowStore: no answer in time is no proof, and the start is not held up.
func TestQuickOnASlowStore(t *testing.T) {
	stuck := &liar{Driver: newMem()}
	stuck.onPut = func(ctx context.Context, _ call) error {
		<-ctx.Done()
		return &objstore.Error{Op: "put", Kind: objstore.ErrAmbiguous, Err: ctx.Err()}
	}
	o := opts
	o.Limit = 20 * time.Millisecond
	r, err := doctor.Quick(t.Context(), stuck, o)
	if err != nil || len(r.Refused()) > 0 {
		t.Errorf("%v, refused %+v", err, r.Refused())
	}
	if res, _ := r.Find("create-once"); res.Outcome != doctor.Failed || r.OK() || len(r.Unproven()) == 0 {
		t.Errorf("%+v", res)
	}
}

// TestWriteUnderWay: Ctrl-C does not cut off a write that is on its way, or it might land
// after the cleanup; it starts no other.
func TestWriteUnderWay(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := &liar{Driver: newMem()}
	l.onPut = func(own context.Context, _ call) error {
		if ctx.Err() != nil {
			t.Error("a write began after the end")
		}
		cancel()
		if own.Err() != nil {
			t.Error("the write was cut off")
		}
		return nil
	}
	r, err := doctor.Run(ctx, l, opts)
	if !errors.Is(err, context.Canceled) || r.Requests[objstore.OpPut] != 1 {
		t.Errorf("%v, %v", err, r.Requests)
	}
	empty(t, l)
}
