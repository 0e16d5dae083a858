package auditor_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/segment"
)

// deletable is a tier with an object whose delete is due.
func deletable(t *testing.T) *audittest.Tier {
	x := newTier(t)
	x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	x.RunDry()
	drop(x, "s")
	once(x, x.Auditor("before", auditor.Config{}))
	x.Clock.Advance(audittest.ReadGrace)
	once(x, x.Auditor("before", auditor.Config{})) // confirmed
	x.Clock.Advance(audittest.ReadGrace)
	return x
}

// stamped is the bucket, its stamp answered by fate.
func stamped(x *audittest.Tier, fate func() faultstore.Fault) (*objstore.Store, *int) {
	looks := 0
	return x.Open(faultstore.Wrap(x.Mem, func(c faultstore.Call) faultstore.Fault {
		if c.Key != segment.StampKey() {
			return faultstore.Fault{}
		}
		looks++
		return fate()
	})), &looks
}

// TestEmptiedBucketStopsDeletes: the bucket is emptied under a running auditor. It says so
// and what to do, once, looks at most once a minute, and goes on when the bucket is back.
func TestEmptiedBucketStopsDeletes(t *testing.T) {
	x := deletable(t)
	var fault faultstore.Fault
	store, looks := stamped(x, func() faultstore.Fault { return fault })
	a := x.AuditorOn("a", auditor.Config{Duties: []string{string(catalog.DutyReapCheck), string(catalog.DutyTrimCheck), string(catalog.DutyOrphan), string(catalog.DutySweep)}}, store, x.DB)
	fault = faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrNotFound}
	for range 60 { // ten minutes
		sum, err := a.Once(x.Ctx(), auditor.OnceOptions{})
		if !errors.Is(err, auditor.ErrNotOurs) || !strings.Contains(sum.Held, "was emptied") || !strings.Contains(sum.Held, "restore it") {
			t.Fatalf("%v, held %q", err, sum.Held)
		}
		x.Clock.Advance(10 * time.Second)
	}
	if *looks == 0 || *looks > 11 {
		t.Fatalf("%d looks at the stamp in ten minutes, want one a minute", *looks)
	}
	if len(x.Settled()) != 1 {
		t.Fatal("deleted from a bucket that is not ours")
	}
	for _, d := range []catalog.Duty{catalog.DutyReapCheck, catalog.DutyTrimCheck, catalog.DutyOrphan, catalog.DutySweep} {
		if a.Summary().Duties[string(d)].Kept["bucket not ours"] != 60 {
			t.Errorf("%s did not ask in every pass: %+v", d, a.Summary().Duties[string(d)].Kept)
		}
	}
	if rows := x.Audited("bucket"); len(rows) != 1 {
		t.Fatalf("told %d times: %+v", len(rows), rows)
	}
	fault = faultstore.Fault{}
	x.Clock.Advance(time.Minute)
	if sum := once(x, a); sum.Held != "" || len(x.Settled()) != 0 {
		t.Fatalf("held %q, %v: the bucket is back", sum.Held, x.Settled())
	}
	x.RunDry()
	x.MustBeClean()
}

// TestReplacedBucketStopsDeletes: another deployment's bucket under the same name.
func TestReplacedBucketStopsDeletes(t *testing.T) {
	x := deletable(t)
	other := newTier(t)
	other.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
	other.RunDry() // the same keys
	if !slices.Equal(x.Settled(), other.Settled()) {
		t.Fatalf("%v and %v", x.Settled(), other.Settled())
	}
	_, err := x.AuditorOn("a", auditor.Config{}, other.Store, x.DB).Once(x.Ctx(), auditor.OnceOptions{})
	if !errors.Is(err, auditor.ErrNotOurs) || !strings.Contains(err.Error(), "look at --store") {
		t.Fatalf("%v", err)
	}
	if len(other.Settled()) != 1 {
		t.Fatal("another deployment's object was deleted")
	}
	_, err = x.AuditorOn("dry", auditor.Config{DryRun: true}, other.Store, x.DB).Once(x.Ctx(), auditor.OnceOptions{})
	if !errors.Is(err, auditor.ErrNotOurs) {
		t.Fatalf("a dry run: %v", err)
	}
	x.RunDry()
	x.MustBeClean()
}

// TestStampOfAnotherClass: two stores were given the wrong way round.
func TestStampOfAnotherClass(t *testing.T) {
	x := deletable(t)
	settings, err := x.DB.Settings(x.Ctx())
	x.Must(err)
	for _, stamp := range []segment.Stamp{
		{Deployment: settings.Deployment, Class: "express"},
		{Deployment: uuid.New(), Class: segment.ClassStandard},
	} {
		body, err := segment.EncodeStamp(stamp)
		x.Must(err)
		mem := x.Another()
		_, err = mem.PutOnce(x.Ctx(), segment.StampKey(), body, nil)
		x.Must(err)
		if _, err = x.AuditorOn("a", auditor.Config{}, mem, x.DB).Once(x.Ctx(), auditor.OnceOptions{}); !errors.Is(err, auditor.ErrNotOurs) {
			t.Fatalf("stamp %+v: %v", stamp, err)
		}
	}
	x.RunDry()
	x.MustBeClean()
}

// TestStampThatCannotBeRead is no verdict, and no leave to delete either.
func TestStampThatCannotBeRead(t *testing.T) {
	x := deletable(t)
	fault := faultstore.Fault{Kind: faultstore.NotApplied}
	store, looks := stamped(x, func() faultstore.Fault { return fault })
	a := x.AuditorOn("a", auditor.Config{}, store, x.DB)
	sum, err := a.Once(x.Ctx(), auditor.OnceOptions{})
	if err == nil || errors.Is(err, auditor.ErrNotOurs) || len(x.Settled()) != 1 || *looks == 0 {
		t.Fatalf("%v, %v after %d looks", err, x.Settled(), *looks)
	}
	if sum.Held != "" || len(x.Audited("bucket")) != 0 {
		t.Fatalf("held %q: a fault was taken for a verdict", sum.Held)
	}
	fault = faultstore.Fault{}
	x.Clock.Advance(time.Minute)
	if once(x, a); len(x.Settled()) != 0 {
		t.Fatal("not deleted after the fault")
	}
	x.RunDry()
	x.MustBeClean()
}
