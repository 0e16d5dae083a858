package localtier

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// TestCloseReleases: after a clean close any directory may take the chain, and the
// same one resumes.
func TestCloseReleases(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppend(a, "s", AckLocal, "one")
	w.mustClose(a)
	w.mustClose(a) // the second close says the same
	w.checkStored()
	a = w.open("a")
	if st := a.Status()[0]; st.Term != 2 || st.NextSeq != 2 {
		t.Errorf("%+v", st)
	}
	w.mustAppend(a, "s", AckLocal, "two")
	w.mustClose(a)
	b := w.open("b") // no steal
	w.mustAppend(b, "s", AckShared, "three")
	w.mustClose(b)
	w.checkStored()
}

// TestCloseSaysWhatIsLeft: bounded by ctx; what is left stays local, and is published
// by the next start.
func TestCloseSaysWhatIsLeft(t *testing.T) {
	w := newWorld(t, 1)
	c := &awayCatalog{Catalog: w.cat}
	a := w.open("a", func(o *Options) { o.Catalog = c })
	c.away.Store(true)
	w.mustAppend(a, "s", AckLocal, "one")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	err := a.Close(ctx)
	var left *LeftError
	if !errors.As(err, &left) || left.Segments != 1 || left.Bytes == 0 || !errors.Is(err, ErrUnpublished) {
		t.Errorf("%v", err)
	}
	if _, err := w.tryOpen("b"); !errors.Is(err, ErrHeld) {
		t.Errorf("the lease went although rows are left: %v", err)
	}
	c.away.Store(false)
	w.mustClose(w.open("a"))
	w.checkStored()
}

// TestLeftoverUploadIsAborted: a crash between parts and complete.
func TestLeftoverUploadIsAborted(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	s := a.shards[0]
	store := w.set.First()
	id, err := store.Driver().CreateUpload(t.Context(), "seg/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.recordUpload("seg/x", id); err != nil {
		t.Fatal(err)
	}
	abandon(t, a)
	a = w.open("a")
	if ups, err := store.ListUploads(t.Context(), ""); err != nil || len(ups) != 0 {
		t.Errorf("uploads %v, %v", ups, err)
	}
	if names, err := s.fs().ReadDir(s.dir + "/" + uploadsDir); err != nil || len(names) != 0 {
		t.Errorf("records %v, %v", names, err)
	}
	// A large slot records its upload, and forgets it.
	w.mustAppend(a, "s", AckShared, big())
	if names, err := s.fs().ReadDir(s.dir + "/" + uploadsDir); err != nil || len(names) != 0 {
		t.Errorf("records %v, %v", names, err)
	}
	w.mustClose(a)
	w.checkStored()
}

// TestBucketSet: the other buckets have the slot before it is absorbed.
func TestBucketSet(t *testing.T) {
	w := newWorld(t, 1)
	second := memstore.New(memstore.Options{})
	w.set = append(w.set, newStore(t, second))
	a := w.open("a")
	w.mustAppend(a, "s", AckShared, "one", big())
	w.mustClose(a)
	first := objstore.Set{w.set[0]}
	for _, key := range w.mem.Keys() {
		if string(second.Dump()[key]) != string(w.mem.Dump()[key]) {
			t.Errorf("%s differs", key)
		}
		if info, err := w.set[1].Head(t.Context(), key); err != nil || len(info.Meta) == 0 {
			t.Errorf("%s: %+v, %v", key, info, err)
		}
	}
	w.set = objstore.Set{w.set[1]}
	w.checkStored() // from the copy alone
	w.set = first
	w.checkStored()
	if _, err := segment.ParseKey(w.mem.Keys()[0]); err != nil {
		t.Error(err)
	}
}
