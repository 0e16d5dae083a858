package check_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/doctor"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// TestDoctorsKeys: what a doctor is at work on waits, what a stopped one left is garbage
// with the way out, and the next doctor is that way.
func TestDoctorsKeys(t *testing.T) {
	x := tierOn(t, memstore.Options{MayReadDeleted: func(string) bool { return true }}, nil)
	key := segment.DoctorPrefix + "0198/create-once-1/key"
	x.Put(key, []byte("x"))
	young := must(t, x)
	if garbage(t, young, ""); young.Waiting != 1 {
		t.Fatalf("young: %+v", *young)
	}
	if n, err := check.Census(t.Context(), x.Classes); err != nil || n["doctor"] != (check.Count{Objects: 1, Bytes: 1}) {
		t.Errorf("%+v %v", n, err)
	}
	r, err := check.Fsck(t.Context(), x.Catalog, x.Classes, check.Config{Settled: true})
	if err != nil || len(r.Owed) == 0 { // the tier's slots: the look was one
		t.Fatalf("%+v, %v", r, err)
	}
	for _, o := range r.Owed {
		if o.ID == key {
			t.Errorf("no duty owes a doctor's key: %+v", o)
		}
	}
	x.Clock.Advance(time.Hour)
	garbage(t, must(t, x), check.Pending, key)
	if _, err := doctor.Quick(t.Context(), x.Store.Driver(), doctor.Options{Prefix: segment.DoctorPrefix}); err != nil {
		t.Fatal(err)
	}
	garbage(t, must(t, x), "")
}

// TestFoundingBesideADoctor: its keys do not make a bucket used.
func TestFoundingBesideADoctor(t *testing.T) {
	ctx, db, s := t.Context(), newCatalog(t), bucket(t)
	if _, err := s.PutOnce(ctx, segment.DoctorPrefix+"0198/now", []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	id, err := check.Ensure(ctx, db, classes(s))
	if err != nil || id == (uuid.UUID{}) {
		t.Fatal(id, err)
	}
	if _, err := s.Head(ctx, segment.StampKey()); errors.Is(err, objstore.ErrNotFound) {
		t.Fatal("it was not stamped")
	}
}
