package crashpoints_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/segment"
)

// Crash points of 03 at which two duties meet.

// Judge against retry: a job died between its PUT and its commit, and its intent is old.
// The judge takes it, and the retry comes in at each of the judge's steps; or the other
// way round. Either the retry has the object, or the key is burned and the retry derives
// the next revision. Never is an object deleted that a ref names.
func TestJudgeAgainstRetry(t *testing.T) {
	for _, step := range []struct {
		call  string
		after bool
		by    string // whose step it is
		wins  bool   // the retry has the object
		stall bool   // there, for so long that its intent is old again
	}{
		{"CondemnIntent", false, "judge", true, false},
		{"CondemnIntent", true, "judge", false, false},
		{"store delete settled", false, "judge", false, false},
		{"store delete settled", true, "judge", false, false},
		{"BurnIntent", true, "judge", false, false},
		{"Announce", false, "retry", false, false},
		{"Announce", true, "retry", true, false},
		{"CommitRewrite", false, "retry", true, false},
		{"CommitRewrite", false, "retry", false, true},
		{"CommitRewrite", true, "retry", true, false},
	} {
		when := map[bool]string{false: "before ", true: "after "}[step.after]
		t.Run(fmt.Sprintf("%s%s stalled=%t", when, step.call, step.stall), func(t *testing.T) {
			w := newWorld(t)
			w.slot(small)
			w.cutAfter("store put settled", 1)
			w.Clock.Advance(audittest.OrphanGrace)

			duties := map[string]func(f *audittest.Faults){
				"judge": func(f *audittest.Faults) { w.judge(f) },
				"retry": func(f *audittest.Faults) { w.retry(f) },
			}
			met := false
			f := &audittest.Faults{}
			f.Hook = func(call string, after bool) {
				if isCall(step.call)(call) && after == step.after && !met {
					met = true
					if step.stall {
						w.Clock.Advance(2 * audittest.OrphanGrace)
					}
					for name, run := range duties {
						if name != step.by {
							run(&audittest.Faults{})
						}
					}
				}
			}
			f.Start()
			duties[step.by](f)
			f.Heal()
			if !met {
				t.Fatalf("never came by: %v", f.Calls())
			}
			w.converges()
			want := packKey
			if !step.wins {
				want = segment.PackKey(w.Chain, 1, 1, 1)
			}
			if got := w.Settled(); !slices.Equal(got, []string{want}) {
				t.Errorf("%v stand, want %s", got, want)
			}
		})
	}
}

// judge runs the orphan judge over what is due, through f.
func (w *world) judge(f *audittest.Faults) {
	w.T.Helper()
	for _, m := range w.Take(catalog.DutyOrphan) {
		_, _ = w.judgeOn(f).RunOnce(w.Ctx(), m) // who loses, loses
	}
}

// retry runs a settler, through f.
func (w *world) retry(f *audittest.Faults) {
	w.T.Helper()
	_, _ = w.Settler(f.Store(w.Tier), f.Catalog(w.Tier)).RunOnce(w.Ctx(), w.Chain, "retry") // who loses, loses
}

// A dead pack against a failed member's retry: a pack was committed without the member
// whose source would not be read. Its other rows die and the reap takes it, while the
// retry derives the very same key: wherever they meet, the retry's rows end under a later
// revision, and what is deleted is named by nobody.
func TestADeadPackAgainstAFailedMembersRetry(t *testing.T) {
	for _, at := range []string{"dead", "confirmed", "ripe, in the retry's hands", "condemned", "deleted", "burned"} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t)
			w.slot(small, other)
			mend := w.damage("other")
			_, err := w.Auditor("first", auditor.Config{}).Once(t.Context(), auditor.OnceOptions{})
			if !segment.IsStructural(err) {
				t.Fatalf("the member's source is damaged, and yet: %v", err)
			}
			if slots, settled := w.refsIn(); slots != 1 || settled != 1 || !slices.Equal(w.Settled(), []string{packKey}) {
				t.Fatalf("%d refs in transit, %d settled, objects %v", slots, settled, w.Settled())
			}
			mend()
			w.drop("small")
			w.reclaimAgainst(at, func() {
				// The member's back-off may still run: its marker is made due.
				w.Must(w.DB.Arm(w.Ctx(), catalog.DutySettle, w.Markers(catalog.DutySettle)[0].ID, segment.ClassStandard, 0))
				f, reaped := &audittest.Faults{}, false
				f.Hook = func(call string, after bool) {
					if call == "Announce" && after && strings.HasPrefix(at, "ripe") && !reaped {
						reaped = true
						w.reapOnce() // between the retry's announce and its PUT
					}
				}
				f.Start()
				w.retry(f)
				f.Heal()
				if slots, settled := w.refsIn(); slots != 0 || settled == 0 {
					t.Errorf("%d refs in transit, %d settled: the retry was held up", slots, settled)
				}
			})
			w.converges()
			if got := w.Settled(); !slices.Equal(got, []string{segment.PackKey(w.Chain, 1, 1, 1)}) {
				t.Errorf("%v stand, want the next revision", got)
			}
		})
	}
}

// damage flips a bit of a stream's chunk in its slot, and gives what mends it.
func (w *world) damage(stream string) (mend func()) {
	w.T.Helper()
	p, err := w.DB.Plan(w.Ctx(), catalog.PlanRequest{Stream: stream, Limit: 1})
	w.Must(err)
	ref := p.Refs[0]
	flip := func() {
		if !w.Mem.Tamper(ref.Key, func(b []byte) []byte { b[ref.Offset+ref.Stored/2] ^= 4; return b }) {
			w.T.Fatalf("no object at %s", ref.Key)
		}
	}
	flip()
	return flip
}

// reclaimAgainst walks the dropped stream and reaps its pack, and meets another at a step
// of it.
func (w *world) reclaimAgainst(at string, meet func()) {
	w.T.Helper()
	met := false
	now := func(step string) {
		if step == at && !met {
			met = true
			meet()
		}
	}
	for _, res := range w.walkOnce() {
		w.Must(res.Err)
	}
	now("dead")
	w.Clock.Advance(audittest.ReadGrace)
	w.reapOnce()
	now("confirmed")
	w.Clock.Advance(audittest.ReadGrace)
	now("ripe, in the retry's hands")
	f := &audittest.Faults{}
	f.Hook = func(call string, after bool) {
		switch {
		case isCall("store delete settled")(call) && !after:
			now("condemned")
		case isCall("store delete settled")(call):
			now("deleted")
		case call == "BurnKey" && after:
			now("burned")
		}
	}
	f.Start()
	w.reaper(f).RunOnce(w.Ctx(), w.Take(catalog.DutyReapCheck))
	f.Heal()
	if !met {
		w.T.Fatalf("never %s: %v", at, f.Calls())
	}
}

// Trim ahead of absorb: a slot stands that nobody has absorbed. A trim or a watermark that
// reaches into it is refused; a stream that is deleted meanwhile goes on above, with the
// rows that the slot brings.
func TestTrimAheadOfAbsorb(t *testing.T) {
	w := newWorld(t)
	w.slot(small, other)
	first := w.Next()
	w.PublishOnly(small, other) // its owner died right there

	_, err := w.DB.TrimStream(t.Context(), "other", segment.Pos{Epoch: 1, Seq: first + 1})
	if !errors.Is(err, catalog.ErrBeyondTip) {
		t.Errorf("a trim into the slot: %v", err)
	}
	mark := w.Boundary(1)
	mark.Segment, mark.Seq = 2, w.Next()-1
	if _, err := w.DB.RaiseWatermark(t.Context(), mark); !errors.Is(err, catalog.ErrConflict) {
		t.Errorf("a watermark at the slot's end: %v", err)
	}
	w.drop("small")
	w.Release()
	w.reruns() // it absorbs in the dead owner's place

	for _, wr := range []audittest.Write{small, other} {
		rows := w.read(wr.Stream)
		fresh := slices.DeleteFunc(slices.Clone(rows), func(r segment.Row) bool { return r.Seq < first })
		if len(fresh) != wr.Rows || wr.Stream == "small" && len(rows) != wr.Rows {
			t.Errorf("%q: %d rows, %d of them the slot's", wr.Stream, len(rows), len(fresh))
		}
		w.rows[wr.Stream] = rows
	}
	w.converges()
}

// Watermark committed, head not written: the row alone says that rows were given up. Readers
// skip them at once; the re-run writes the head before it retires or deletes anything.
func TestWatermarkCommittedHeadNotWritten(t *testing.T) {
	w := newWorld(t)
	w.Policy(catalog.Retention{Mode: catalog.RetentionInterest, Rows: 1})
	for range 4 {
		w.slot(large)
		w.RunDry() // each slot's rows become an object of their own
	}
	kept := w.rows["large"]
	w.Release() // the auditor runs the retention of a chain without an owner
	w.cutAfter("RaiseWatermark", 1)

	row, err := w.DB.Chain(t.Context(), w.Chain)
	w.Must(err)
	if row.WatermarkSeq == 0 || w.headSeq() >= row.WatermarkSeq {
		t.Fatalf("row %+v, head at %d", row, w.headSeq())
	}
	w.rows["large"] = slices.DeleteFunc(slices.Clone(kept), func(r segment.Row) bool { return r.Seq <= row.WatermarkSeq })
	w.same("large", w.read("large"), w.rows["large"])
	r, err := coldload.New(w.DB, w.Classes, coldload.Config{Clock: w.Clock.Now})
	w.Must(err)
	for _, err := range r.Rows(w.Ctx(), "large", segment.Pos{Epoch: 1, Seq: kept[0].Seq}, segment.Pos{}) {
		if !errors.Is(err, coldload.ErrTrimmed) {
			t.Errorf("a row below the watermark: %v", err)
		}
	}
	calls := w.reruns()
	put := slices.IndexFunc(calls, func(c string) bool { return strings.HasPrefix(c, "store put rw/") })
	for i, c := range calls {
		if (c == "RetireRefs" || strings.HasPrefix(c, "store delete")) && (put < 0 || i < put) {
			t.Errorf("%s before the head was written: %v", c, calls)
		}
	}
	if count(calls, "RetireRefs") == 0 {
		t.Errorf("nothing was retired: %v", calls)
	}
	if w.headSeq() != row.WatermarkSeq {
		t.Errorf("head at %d, row at %d", w.headSeq(), row.WatermarkSeq)
	}
	w.converges()
}

// headSeq is the watermark of the chain's head; 0 without one.
func (w *world) headSeq() segment.Seq {
	w.T.Helper()
	if len(w.Keys(segment.KeyHead)) == 0 {
		return 0
	}
	body, _, err := w.Store.ReadAll(w.Ctx(), segment.HeadKey(w.Chain), segment.MaxHeadBytes)
	w.Must(err)
	h, err := segment.DecodeHead(body)
	w.Must(err)
	return h.WatermarkSeq
}
