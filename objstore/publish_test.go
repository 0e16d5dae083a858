package objstore_test

import (
	"errors"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
)

// create publishes "k" by one PUT or by an upload, and returns how the upload ended.
func create(t *testing.T, s *objstore.Store, op objstore.Op) (done int, err error) {
	t.Helper()
	if op == objstore.OpPut {
		_, err := s.PutOnce(t.Context(), "k", numbers(250), nil)
		return 0, err
	}
	w := s.NewWriter(t.Context(), "k", objstore.UploadOptions{OnDone: func(string) { done++ }})
	if _, err := w.Write(numbers(250)); err != nil {
		t.Fatal(err)
	}
	_, err = w.Commit()
	return done, err
}

var publishing = []objstore.Op{objstore.OpPut, objstore.OpComplete}

// TestAppliedWhateverTheAnswer: the write was applied, and the answer that came says
// one of the things that stores and clients are known to say then (a lost answer, a
// 500, a retry's 412, MinIO's and AWS's 404 for a complete that is sent again).
func TestAppliedWhateverTheAnswer(t *testing.T) {
	for _, op := range publishing {
		for _, said := range []error{objstore.ErrAmbiguous, objstore.ErrUnavailable, objstore.ErrExists, objstore.ErrShort, objstore.ErrNotFound, errors.New("no kind")} {
			if op == objstore.OpPut && errors.Is(said, objstore.ErrNotFound) {
				continue // a PUT has no upload to be gone
			}
			t.Run(string(op)+"/"+said.Error(), func(t *testing.T) {
				m := mem(t, memstore.Options{})
				d := faultstore.Wrap(m, script(op, faultstore.Fault{Kind: faultstore.AnswerLost, Err: said}))
				done, err := create(t, newStore(t, d), op)
				if err != nil || d.Hits() != 1 {
					t.Fatalf("own write, after %d faults: %v", d.Hits(), err)
				}
				if op == objstore.OpComplete && done != 1 {
					t.Errorf("the upload ended %d times", done)
				}
				wantBytes(t, m, "k", numbers(250))
				noUploads(t, m)
			})
		}
	}
}

// TestLostWhateverTheAnswer: another's object stands, and the refusal comes as itself,
// as a broken connection (an early 412), as a 500 or as "no such upload" (R2, which
// aborts a loser's upload by itself, asked twice).
func TestLostWhateverTheAnswer(t *testing.T) {
	for _, op := range publishing {
		for _, said := range []error{nil, objstore.ErrAmbiguous, objstore.ErrUnavailable, objstore.ErrNotFound} {
			if op == objstore.OpPut && errors.Is(said, objstore.ErrNotFound) {
				continue
			}
			for _, r2 := range []bool{false, true} {
				m := mem(t, memstore.Options{AbortsLosers: r2})
				put(t, m, "k", []byte("theirs"))
				var faults []faultstore.Fault
				if said != nil {
					// AnswerLost: the store does refuse, and R2 aborts, before the answer is lost.
					faults = append(faults, faultstore.Fault{Kind: faultstore.AnswerLost, Err: said})
				}
				s := newStore(t, faultstore.Wrap(m, script(op, faults...)))
				done, err := create(t, s, op)
				if !errors.Is(err, objstore.ErrExists) || errors.Is(err, objstore.ErrAmbiguous) {
					t.Errorf("%s, R2 %v, after %v: %v", op, r2, said, err)
				}
				if op == objstore.OpComplete && done != 1 {
					t.Errorf("%s, R2 %v, after %v: the upload ended %d times", op, r2, said, done)
				}
				wantBytes(t, m, "k", []byte("theirs"))
				noUploads(t, m)
			}
		}
	}
}

// TestGoneUpload: "no such upload" while nothing stands under the key is no success and
// no loss: the caller begins a new upload. After an attempt whose outcome is open it is
// unknown.
func TestGoneUpload(t *testing.T) {
	gone := faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrNotFound}
	m := mem(t, memstore.Options{})
	s := newStore(t, faultstore.Wrap(m, script(objstore.OpComplete, gone)))
	_, err := create(t, s, objstore.OpComplete)
	wantKind(t, err, objstore.ErrNotFound)
	if errors.Is(err, objstore.ErrAmbiguous) {
		t.Errorf("got %v", err)
	}

	s = newStore(t, faultstore.Wrap(m, script(objstore.OpComplete, timedOut, gone)))
	done, err := create(t, s, objstore.OpComplete)
	wantKind(t, err, objstore.ErrAmbiguous)
	if errors.Is(err, objstore.ErrNotFound) || done != 0 {
		t.Errorf("ended %d times: %v", done, err)
	}
	if len(m.Keys()) != 0 {
		t.Errorf("stands: %q", m.Keys())
	}
}

// TestConflicts: a 409 says nothing about the key. A PUT is made again a few times; on
// a complete it is the caller's, who begins a new upload (K32), as is one that stays.
func TestConflicts(t *testing.T) {
	m := mem(t, memstore.Options{})
	s := newStore(t, faultstore.Wrap(m, script(objstore.OpPut, conflict, conflict, conflict, conflict)))
	if _, err := create(t, s, objstore.OpPut); err != nil {
		t.Errorf("four conflicts are to be withstood: %v", err)
	}
	m = mem(t, memstore.Options{})
	s = newStore(t, faultstore.Wrap(m, script(objstore.OpPut, conflict, conflict, conflict, conflict, conflict)))
	_, err := create(t, s, objstore.OpPut)
	wantKind(t, err, objstore.ErrConflict)
	s = newStore(t, faultstore.Wrap(m, script(objstore.OpComplete, timedOut, conflict)))
	done, err := create(t, s, objstore.OpComplete)
	wantKind(t, err, objstore.ErrAmbiguous) // the first may yet land
	if done != 0 {
		t.Error("an upload whose outcome is open was given up")
	}
	s = newStore(t, faultstore.Wrap(mem(t, memstore.Options{}), script(objstore.OpComplete, conflict)))
	done, err = create(t, s, objstore.OpComplete)
	wantKind(t, err, objstore.ErrConflict)
	if done != 1 || s.Counters().Requests[objstore.OpComplete] != 1 {
		t.Errorf("ended %d times after %d completes", done, s.Counters().Requests[objstore.OpComplete])
	}
}

// TestSameBytesAreNotMine: another writer's object with the very same bytes (and so the
// very same ETag, where that is a digest) is another's.
func TestSameBytesAreNotMine(t *testing.T) {
	for _, op := range publishing {
		m := mem(t, memstore.Options{})
		put(t, m, "k", numbers(250))
		s := newStore(t, faultstore.Wrap(m, script(op, timedOut)))
		_, err := create(t, s, op)
		wantKind(t, err, objstore.ErrExists)
	}
}
