package settle

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/segment"
)

// K2: uploaded, not yet published outputs deleted as garbage. A live job's output is
// never judged before its deadline.
func TestK2LiveOutputIsNotJudgedBeforeItsDeadline(t *testing.T) {
	x := newTier(t)
	x.slot(write{stream: "s", rows: 100, size: 2000})
	w := &world{}
	asked := false
	w.hook = func(call string, after bool) {
		if call != "CommitRewrite" || after {
			return
		}
		asked = true
		x.clock.advance(29 * time.Minute)
		ms, err := x.db.MarkersOf(t.Context(), catalog.DutyOrphan, "", 10)
		must(t, err)
		if len(ms) != 1 {
			t.Fatalf("orphan markers %+v", ms)
		}
		v, _, err := x.db.CondemnIntent(t.Context(), ms[0].MarkerRef)
		must(t, err)
		if v != catalog.NotYet {
			t.Errorf("the judge says %q", v)
		}
	}
	rep := x.once(x.faultySettler(w, now()))
	if !asked || rep.Resolved != 1 || len(rep.Failures) != 0 {
		t.Fatalf("asked %t, report %+v", asked, rep)
	}
}

// K6: job slower than its reservation's life. It gives up at its deadline, sends no
// completing request after it, and its sources are intact.
func TestK6StalledJobNeverCompletes(t *testing.T) {
	for _, stall := range []string{"get", "create-upload", "AddUpload", "upload-part"} {
		t.Run(stall, func(t *testing.T) {
			x := smallParts(t)
			x.slot(write{stream: "s", rows: 100, size: 2000, noise: true})
			w := &world{}
			stalled := false
			var once sync.Once
			announced := make(chan struct{}) // sources are fetched beside the announce
			w.hook = func(call string, after bool) {
				if call == "Announce" && after {
					close(announced)
				}
				if call == stall && after {
					once.Do(func() { <-announced; stalled = true; x.clock.advance(31 * time.Minute) })
				}
			}
			rep, err := x.settlerOn(x.multipart(w.driver(x.mem)), &faulty{x.db, w}, serial()).RunOnce(t.Context(), x.chain, "settler-1")
			if !stalled || w.calls("complete")+w.calls("put") != 0 {
				t.Fatalf("stalled %t, then %v", stalled, w.log)
			}
			if err != nil && !errors.Is(err, errLeaseLost) {
				t.Fatal(err)
			}
			if err == nil && (len(rep.Failures) != 1 || !errors.Is(rep.Failures[0].Err, errDeadline)) {
				t.Fatalf("report %+v", rep)
			}
			if k := x.kinds(); k[catalog.RefSlot] != 1 {
				t.Errorf("refs %v", k)
			}
			w.heal()
			x.clock.advance(time.Hour)
			x.converge()
		})
	}
}

// K8: read error or short body swallowed, a hole in the output. The swap is refused.
func TestK8HoleOrShortBodyIsNeverCommitted(t *testing.T) {
	for name, kind := range map[string]faultstore.Kind{
		"wrong bytes": faultstore.WrongBytes, "short body": faultstore.ShortBody, "read error": faultstore.NotApplied,
	} {
		t.Run(name, func(t *testing.T) {
			x := newTier(t)
			x.slot(write{stream: "s", rows: 100, size: 2000}, write{stream: "s", rows: 100, size: 2000})
			broken := true
			d := faultstore.Wrap(x.mem, func(c faultstore.Call) faultstore.Fault {
				if broken && c.Op == objstore.OpGet {
					return faultstore.Fault{Kind: kind, Keep: 10}
				}
				return faultstore.Fault{}
			})
			s := x.settlerOn(x.open(d), x.db, now())
			rep := x.once(s)
			if len(rep.Failures) != 1 || rep.Outputs != 0 || d.Hits() == 0 {
				t.Fatalf("report %+v", rep)
			}
			if k := x.kinds(); k[catalog.RefSlot] != 1 || len(k) != 1 {
				t.Errorf("refs %v", k)
			}
			ms, err := x.db.MarkersOf(t.Context(), catalog.DutySettle, "", 10)
			must(t, err)
			if len(ms) != 1 || ms[0].Attempts != 1 || ms[0].LastError == "" {
				t.Errorf("markers %+v", ms)
			}
			broken = false
			x.clock.advance(time.Hour)
			x.settle(s)
		})
	}
	t.Run("the catalog says other rows", func(t *testing.T) {
		x := newTier(t)
		x.slot(write{stream: "s", rows: 100, size: 2000})
		x.slot(write{stream: "s", rows: 100, size: 2000})
		lie := func(refs []catalog.Ref) {
			for i := range refs {
				refs[i].RowSum++
			}
		}
		rep := x.once(x.settlerOn(x.store, &liar{x.db, lie}, now()))
		if len(rep.Failures) != 1 || rep.Outputs != 0 || !segment.IsStructural(rep.Failures[0].Err) {
			t.Fatalf("report %+v", rep)
		}
	})
	t.Run("an output with a hole", func(t *testing.T) {
		// The last line of defence: an output that lost a chunk on its way is not what
		// the sources hold, whoever lost it.
		x := newTier(t)
		for range 3 {
			x.slot(write{stream: "s", rows: 100, size: 2000})
		}
		rows := x.rows["s"]
		x.craft(segment.StreamKey("s", 1, 1, 0), segment.ObjStream, "s", rows[:100], rows[200:])
		rep := x.once(x.settler(now()))
		if len(rep.Failures) != 1 || rep.Outputs != 0 || !segment.IsStructural(rep.Failures[0].Err) {
			t.Fatalf("report %+v", rep)
		}
	})
}

// liar changes the refs of a window.
type liar struct {
	Catalog
	lie func([]catalog.Ref)
}

func (l *liar) Window(ctx context.Context, c segment.Chain, n int64) (catalog.Window, error) {
	w, err := l.Catalog.Window(ctx, c, n)
	l.lie(w.Refs)
	return w, err
}

// K13: ambiguous commit treated as failed, its files cleaned up. Here it is read
// back, never cleaned up on a guess.
func TestK13AmbiguousCommitIsReadBack(t *testing.T) {
	for _, c := range []struct {
		name  string
		lost  int // answers
		done  bool
		moved bool
	}{
		{"applied, answer lost", 1, true, true},
		{"no answer ever", 1000, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newTier(t)
			x.slot(write{stream: "s", rows: 100, size: 2000})
			w := &world{}
			w.pick = func(_ int, call string) form {
				if call == "CommitRewrite" && c.lost > 0 {
					c.lost--
					return answerLost
				}
				return fine
			}
			rep, err := x.faultySettler(w, now()).RunOnce(t.Context(), x.chain, "settler-1")
			if c.done && (err != nil || rep.Resolved != 1 || rep.Rows != 100) {
				t.Fatalf("report %+v, error %v", rep, err)
			}
			if !c.done && !errors.Is(err, catalog.ErrAmbiguous) {
				t.Fatalf("report %+v, error %v", rep, err)
			}
			if n := w.calls("delete") + w.calls("abort"); n != 0 {
				t.Errorf("%d clean-ups", n)
			}
			w.heal()
			x.settle(x.settler(now()))
			x.stands(t, segment.StreamKey("s", 1, 1, 0), false, true)
		})
	}
}

// K31: the store answered 412 to the retry of our own create.
func TestK31OwnCreateIsRecognised(t *testing.T) {
	x := newTier(t)
	x.slot(write{stream: "s", rows: 100, size: 2000})
	w := &world{}
	w.pick = func(_ int, call string) form {
		if call == "put" && w.hit == "" {
			return answerLost
		}
		return fine
	}
	rep := x.once(x.faultySettler(w, now()))
	if w.hit == "" || rep.Resolved != 1 || rep.Lost != 0 {
		t.Fatalf("report %+v", rep)
	}
}

// K32: 409 read as "exists". It is a new upload.
func TestK32ConflictOnCompleteIsANewUpload(t *testing.T) {
	x := smallParts(t)
	x.slot(write{stream: "s", rows: 100, size: 2000, noise: true})
	creates, completes := 0, 0
	d := faultstore.Wrap(x.mem, func(c faultstore.Call) faultstore.Fault {
		switch c.Op {
		case objstore.OpCreateUpload:
			creates++
		case objstore.OpComplete:
			if completes++; completes <= 2 {
				return faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrConflict}
			}
		}
		return faultstore.Fault{}
	})
	rep := x.once(x.settlerOn(x.multipart(d), x.db, serial()))
	if creates != 3 || rep.Resolved != 1 || rep.Lost != 0 || len(x.intents()) != 0 {
		t.Fatalf("%d uploads, report %+v, intents %+v", creates, rep, x.intents())
	}
}

// NoSuchUpload on the complete: the judge was here, and the job gives up.
func TestJudgeTookTheUpload(t *testing.T) {
	x := smallParts(t)
	x.slot(write{stream: "s", rows: 100, size: 2000, noise: true})
	w := &world{}
	taken := false
	w.hook = func(call string, after bool) {
		if call != "complete" || after || taken {
			return
		}
		taken = true
		ups, err := x.store.ListUploads(t.Context(), "")
		must(t, err)
		for _, u := range ups {
			must(t, x.mem.Abort(t.Context(), u.Key, u.ID))
		}
	}
	rep := x.once(x.settlerOn(x.multipart(w.driver(x.mem)), &faulty{x.db, w}, serial()))
	if !taken || len(rep.Failures) != 1 || !errors.Is(rep.Failures[0].Err, errJudged) || w.calls("create-upload") != 1 {
		t.Fatalf("taken %t, report %+v", taken, rep)
	}
	w.heal()
	x.clock.advance(time.Hour)
	x.converge()
}

// Trim against settle: whenever the trim comes, nothing dead comes back, nothing
// live is lost, and the pass converges.
func TestTrimAgainstSettle(t *testing.T) {
	for _, at := range []string{"Window", "Announce", "get", "put", "CommitRewrite", "ResolveSettled"} {
		for name, pos := range map[string]segment.Seq{"in the first ref": 50, "in the second ref": 150, "through the tip": 0} {
			t.Run(at+" "+name, func(t *testing.T) {
				x := newTier(t)
				for range 3 {
					x.slot(write{stream: "s", rows: 100, size: 2000}, write{stream: "other", rows: 5, size: 10})
				}
				w := &world{}
				trimmed := false
				w.hook = func(call string, after bool) {
					if call != at || after || trimmed {
						return
					}
					trimmed = true
					if pos == 0 {
						_, err := x.db.DeleteStream(t.Context(), "s")
						must(t, err)
					} else {
						_, err := x.db.TrimStream(t.Context(), "s", segment.Pos{Epoch: 1, Seq: pos})
						must(t, err)
					}
					x.walk("s")
				}
				s := x.faultySettler(w, serial())
				if _, err := s.RunOnce(t.Context(), x.chain, "settler-1"); err != nil {
					t.Fatal(err)
				}
				if !trimmed {
					t.Fatal("no trim")
				}
				x.settle(s)
				for _, r := range x.refs() {
					if r.Kind == catalog.RefSlot {
						t.Errorf("ref %s of %q stays in transit", r.FirstPos(), r.Stream)
					}
				}
			})
		}
	}
}
