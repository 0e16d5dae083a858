package settle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// smallParts is a store on which an output of some 100 KiB is a multipart upload.
func smallParts(t *testing.T) *tier { return newTierOn(t, memstore.Options{}) }

// multipart is a settler's store with parts of 32 KiB.
func (x *tier) multipart(d objstore.Driver) *objstore.Store {
	s, err := objstore.New(d, objstore.Config{PartSize: 32 << 10, Sleep: func(context.Context, time.Duration) error { return nil }})
	must(x.t, err)
	return s
}

// scene is two slots: a stream object of several parts, and a pack.
func (x *tier) scene() {
	for range 2 {
		x.slot(write{stream: "large", rows: 40, size: 2000, noise: true}, write{stream: "a", rows: 3, size: 100}, write{stream: "b", rows: 2, size: 100}, write{stream: "z", rows: 1, size: 100})
	}
}

// crashed runs a settler through w and swallows what a crash makes of it.
func (x *tier) crashed(w *world) error {
	s := x.settlerOn(x.multipart(w.driver(x.mem)), &faulty{x.db, w}, serial())
	_, err := s.RunOnce(x.t.Context(), x.chain, "settler-1")
	return err
}

// serial has one output at a time, so that calls come in one order.
func serial() Config {
	cfg := now()
	cfg.Outputs, cfg.Fetches, cfg.Workers = 1, 1, 1
	return cfg
}

// converge is another settler, after the first one's lease is over.
func (x *tier) converge() {
	x.t.Helper()
	x.clock.advance(2 * DefaultLease)
	s := x.settlerOn(x.multipart(x.mem), x.db, serial())
	for range 20 {
		rep, err := s.RunOnce(x.t.Context(), x.chain, "settler-2")
		must(x.t, err)
		if rep.Idle == IdleEmpty && x.markers() == 0 {
			break
		}
		if rep.Idle == IdleLease {
			x.clock.advance(2 * DefaultLease)
		}
		if rep.Idle == IdleEmpty {
			x.clock.advance(time.Hour)
		}
	}
	if n := x.markers(); n != 0 {
		x.t.Fatalf("%d settle markers stand", n)
	}
	if k := x.kinds(); k[catalog.RefSlot] != 0 {
		x.t.Fatalf("refs %v", k)
	}
}

// TestSweepStoreAndCatalog fails every call once, in every form; a crash form also
// cuts the protocol there. Each time another settler converges, and the cleanup
// finds nothing lost and nothing unwatched.
func TestSweepStoreAndCatalog(t *testing.T) {
	sweep(t, []form{notApplied, answerLost, crash, crashAfter}, func(t *testing.T, w *world) {
		x := smallParts(t)
		x.scene()
		err := x.crashed(w)
		if err != nil && w.hit == "" {
			t.Fatalf("nothing failed, yet: %v", err)
		}
		w.heal()
		x.strays(w)
		x.converge()
	})
}

// strays clears what the uploads' sweep would: an upload whose creation was not
// answered, or whose id could not be recorded, is known to the store alone.
func (x *tier) strays(w *world) {
	if w.hit != string(objstore.OpCreateUpload) && w.hit != "AddUpload" && w.hit != string(objstore.OpAbort) {
		return
	}
	ups, err := x.store.ListUploads(x.t.Context(), "")
	must(x.t, err)
	for _, u := range ups {
		must(x.t, x.mem.Abort(x.t.Context(), u.Key, u.ID))
	}
}

// crashAt crashes right after the n-th call of that name took effect.
func crashAt(name string, n int) *world {
	w := &world{}
	seen := 0
	w.pick = func(_ int, call string) form {
		if call == name {
			seen++
		}
		if call == name && seen == n {
			return crashAfter
		}
		return fine
	}
	return w
}

// The rows of seed 002's table that concern the rewrite. Each reads: crash after …,
// the re-run sees …, why it converges.
func TestCrashTable(t *testing.T) {
	pack := segment.PackKey(segment.Chain{Epoch: 1}, 1, 2, 0)
	large := segment.StreamKey("large", 1, 1, 0)
	for _, row := range []struct {
		after string
		w     *world
		sees  func(t *testing.T, x *tier)
		then  func(t *testing.T, x *tier)
	}{
		{
			after: "the intent, before the PUT", w: crashAt("Announce", 1),
			sees: func(t *testing.T, x *tier) { x.stands(t, pack, true, false) },
			then: func(t *testing.T, x *tier) { x.stands(t, pack, false, true) },
		},
		{
			after: "the PUT, before the commit", w: crashAt("put", 1),
			sees: func(t *testing.T, x *tier) { x.stands(t, pack, true, true) },
			then: func(t *testing.T, x *tier) { x.stands(t, pack, false, true) }, // described, not made again
		},
		{
			after: "the multipart upload's complete, before the commit", w: crashAt("complete", 1),
			sees: func(t *testing.T, x *tier) { x.stands(t, large, true, true) },
			then: func(t *testing.T, x *tier) {
				// The crashed job's upload id is still on the intent: it stays for the judge,
				// which finds a ref that names the key and relieves it.
				x.stands(t, large, true, true)
				x.clock.advance(2 * time.Hour)
				ms, err := x.db.MarkersOf(t.Context(), catalog.DutyOrphan, "", 10)
				must(t, err)
				for _, m := range ms {
					v, _, err := x.db.CondemnIntent(t.Context(), m.MarkerRef)
					must(t, err)
					if v != catalog.Named {
						t.Fatalf("the judge says %q of %s", v, m.ID)
					}
				}
				x.stands(t, large, false, true)
			},
		},
		{
			after: "the commit, before the marker resolves", w: crashAt("CommitRewrite", 2),
			sees: func(t *testing.T, x *tier) {
				if x.kinds()[catalog.RefSlot] != 0 || x.markers() != 2 {
					t.Fatalf("refs %v, %d markers", x.kinds(), x.markers())
				}
			},
			then: trimCheckArmed,
		},
		{
			after: "arming the trim-check with the resolve, before the lease ends", w: crashAt("ResolveSettled", 1),
			sees: func(t *testing.T, x *tier) {
				if x.markers() != 0 {
					t.Fatalf("%d markers", x.markers())
				}
			},
			then: trimCheckArmed,
		},
		{
			after: "one member's commit, before the others'", w: crashAt("CommitRewrite", 1),
			sees: func(t *testing.T, x *tier) {
				if k := x.kinds(); k[catalog.RefPack] != 3 || k[catalog.RefSlot] != 2 {
					t.Fatalf("refs %v", k)
				}
			},
			then: func(t *testing.T, x *tier) {
				if k := x.kinds(); k[catalog.RefPack] != 3 || k[catalog.RefStream] != 1 {
					t.Fatalf("refs %v", k)
				}
			},
		},
	} {
		t.Run(row.after, func(t *testing.T) {
			x := smallParts(t)
			x.scene()
			err := x.crashed(row.w)
			if err == nil || row.w.hit == "" {
				t.Fatalf("hit %q, error %v", row.w.hit, err)
			}
			row.w.heal()
			row.sees(t, x)
			x.converge()
			if row.then != nil {
				row.then(t, x)
			}
		})
	}
}

// trimCheckArmed: the sources' watcher stands.
func trimCheckArmed(t *testing.T, x *tier) {
	ms, err := x.db.MarkersOf(t.Context(), catalog.DutyTrimCheck, "", 10)
	must(t, err)
	if len(ms) != 1 {
		t.Fatalf("trim-check markers: %+v", ms)
	}
}

// stands holds whether an intent and an object stand at a key.
func (x *tier) stands(t *testing.T, key string, intent, object bool) {
	t.Helper()
	var gotIntent bool
	for _, in := range x.intents() {
		gotIntent = gotIntent || in.Key == key
	}
	var gotObject bool
	for _, k := range x.objects("") {
		gotObject = gotObject || k == key
	}
	if gotIntent != intent || gotObject != object {
		t.Fatalf("%s: intent %t, object %t; want %t, %t", key, gotIntent, gotObject, intent, object)
	}
}

// "a lost create-once race": the standing object covers less than the walk.
func TestLostRaceWithShorterWinnerCommitsThePrefix(t *testing.T) {
	x := newTier(t)
	ws := []write{{stream: "s", rows: 100, size: 2000}}
	x.slot(ws...)
	// Another job saw the first slot only, published, and died.
	w := crashAt("put", 1)
	_, err := x.faultySettler(w, serial()).RunOnce(t.Context(), x.chain, "settler-1")
	if err == nil {
		t.Fatal("no crash")
	}
	w.heal()
	x.slot(ws...)
	x.clock.advance(2 * DefaultLease)
	s := x.settler(now())
	rep := x.once(s)
	if rep.Lost != 1 || rep.Rows != 100 || rep.Resolved != 1 || len(rep.Failures) != 0 {
		t.Fatalf("report %+v", rep)
	}
	rep = x.once(s)
	if rep.Rows != 100 || rep.Resolved != 1 || rep.Lost != 0 {
		t.Fatalf("the remainder: %+v", rep)
	}
	if k := x.kinds(); k[catalog.RefStream] != 2 || k[catalog.RefSlot] != 0 {
		t.Fatalf("refs %v", k)
	}
}

// As above, and the winner ends inside a ref, at a whole row.
func TestWinnerThatEndsInsideARefLeavesARemainder(t *testing.T) {
	x := newTier(t)
	x.slot(write{stream: "other", rows: 3, size: 10}, write{stream: "s", rows: 100, size: 2000})
	rows := x.rows["s"]
	x.craft(segment.StreamKey("s", 1, rows[0].Seq, 0), segment.ObjStream, "s", rows[:30], rows[30:41])
	s := x.settler(now())
	rep := x.once(s)
	if rep.Lost != 1 || rep.Rows != 41+3 || rep.Resolved != 0 || len(rep.Failures) != 0 {
		t.Fatalf("report %+v", rep)
	}
	rep = x.once(s)
	if rep.Rows != 59 || rep.Resolved != 1 {
		t.Fatalf("the remainder: %+v", rep)
	}
}

// As above, and rows of another stream stand right behind the winner's last: the
// remainder begins where no row of its own stands, and is moved all the same, and again.
func TestRemainderThatBeginsBetweenItsRows(t *testing.T) {
	for _, end := range []uint64{41, 60, 75} { // inside a run of rows, at its end, in the next
		x := newTier(t)
		x.slot(write{stream: "s", rows: 60, size: 2000}, write{stream: "other", rows: 3, size: 10}, write{stream: "s", rows: 40, size: 2000})
		rows := x.rows["s"]
		winner := [][]segment.Row{rows[:min(end, 60)]}
		if end > 60 {
			winner = append(winner, rows[60:end])
		}
		x.craft(segment.StreamKey("s", 1, rows[0].Seq, 0), segment.ObjStream, "s", winner...)
		s := x.settler(now())
		if rep := x.once(s); rep.Lost != 1 || rep.Rows != end+3 || rep.Resolved != 0 || len(rep.Failures) != 0 {
			t.Fatalf("%d: report %+v", end, rep)
		}
		if rep := x.once(s); rep.Rows != 100-end || rep.Resolved != 1 || len(rep.Failures) != 0 {
			t.Fatalf("%d: the remainder: %+v", end, rep)
		}
		refs := x.refsOf("s")
		if got := refs[len(refs)-1]; got.First != rows[end].Seq || got.Last != rows[99].Seq {
			t.Fatalf("%d: the remainder's ref: %+v", end, got)
		}
		x.check()
	}
}

// As above, and the job's first ref is cut by live_from: the catalog swaps whole refs
// of such a run, so the one that the winner ends in is left for the next pass.
func TestWinnerThatEndsInsideARefOfACutRun(t *testing.T) {
	x := newTier(t)
	for range 2 {
		x.slot(write{stream: "s", rows: 100, size: 2000})
	}
	_, err := x.db.TrimStream(t.Context(), "s", segment.Pos{Epoch: 1, Seq: 50})
	must(t, err)
	rows := x.rows["s"]
	x.craft(segment.StreamKey("s", 1, 1, 0), segment.ObjStream, "s", rows[49:130])
	s := x.settler(now())
	if rep := x.once(s); rep.Lost != 1 || rep.Rows != 51 || rep.Resolved != 1 || len(rep.Failures) != 0 {
		t.Fatalf("report %+v", rep)
	}
	if rep := x.once(s); rep.Rows != 100 || rep.Resolved != 1 || rep.Lost != 0 {
		t.Fatalf("the rest: %+v", rep)
	}
}

// A winner may also cover more than this job's window: only the window's rows are
// taken, also if they end inside one of its chunks.
func TestWinnerThatCoversMoreIsDescribedToTheWindowsEnd(t *testing.T) {
	x := newTier(t)
	x.slot(write{stream: "s", rows: 60, size: 2000})
	x.slot(write{stream: "s", rows: 60, size: 2000})
	rows := x.rows["s"]
	x.craft(segment.StreamKey("s", 1, 1, 0), segment.ObjStream, "s", rows[:90], rows[90:])
	cfg := now()
	cfg.BatchMax = 1
	s := x.settler(cfg)
	if rep := x.once(s); rep.Lost != 1 || rep.Rows != 60 || rep.Resolved != 1 {
		t.Fatalf("report %+v", rep)
	}
	if rep := x.once(s); rep.Rows != 60 || rep.Resolved != 1 {
		t.Fatalf("second slot: %+v", rep)
	}
}

// A winner of no use to any member is passed over: the next revision is derived.
func TestWinnerWithoutTheseRowsIsPassedOver(t *testing.T) {
	x := newTier(t)
	x.slot(write{stream: "s", rows: 5, size: 10}, write{stream: "t", rows: 5, size: 10})
	key := segment.PackKey(x.chain, 1, 1, 0)
	x.craft(key, segment.ObjPack, "u", []segment.Row{{Seq: 1, Time: 1, Payload: []byte("x")}})
	rep := x.once(x.settler(now()))
	if rep.Resolved != 1 || len(rep.Failures) != 0 {
		t.Fatalf("report %+v", rep)
	}
	for _, r := range x.refs() {
		if r.Key != segment.PackKey(x.chain, 1, 1, 1) || r.Revision != 1 {
			t.Errorf("ref names %s", r.Key)
		}
	}
	x.stands(t, key, true, true) // for the judge
}

func TestWinnerWithOtherRowsIsRefusedLoudly(t *testing.T) {
	for name, spoil := range map[string]func(rows []segment.Row) []segment.Row{
		"another payload": func(rows []segment.Row) []segment.Row { rows[7].Payload = []byte("forged"); return rows },
		"another time":    func(rows []segment.Row) []segment.Row { rows[7].Time++; return rows },
		"begins too late": func(rows []segment.Row) []segment.Row { return rows[1:] },
		"a row too many": func(rows []segment.Row) []segment.Row {
			return append(rows, segment.Row{Seq: rows[len(rows)-1].Seq + 1, Time: 1, Payload: []byte("y")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTier(t)
			x.slot(write{stream: "s", rows: 100, size: 2000}, write{stream: "t", rows: 1, size: 10})
			x.slot(write{stream: "s", rows: 10, size: 2000})
			rows := append([]segment.Row(nil), x.rows["s"][:100]...)
			key := segment.StreamKey("s", 1, 1, 0)
			x.craft(key, segment.ObjStream, "s", spoil(rows))
			rep := x.once(x.settler(now()))
			if len(rep.Failures) != 1 || !segment.IsStructural(rep.Failures[0].Err) || rep.Resolved != 0 {
				t.Fatalf("report %+v", rep)
			}
			if k := x.kinds(); k[catalog.RefStream] != 0 || k[catalog.RefSlot] != 2 {
				t.Errorf("refs %v", k)
			}
			ms, err := x.db.MarkersOf(t.Context(), catalog.DutySettle, "", 10)
			must(t, err)
			if len(ms) != 2 || ms[0].Attempts != 1 || ms[0].LastError == "" {
				t.Errorf("markers %+v", ms)
			}
			audits, err := x.db.AuditRows(t.Context(), 0, 100)
			must(t, err)
			if len(audits) == 0 || audits[len(audits)-1].Subject != key {
				t.Errorf("audit rows %+v", audits)
			}
		})
	}
}

// A key that is burned carries no second set of bytes: the job derives the next.
func TestBurnedKeyIsNeverUsedAgain(t *testing.T) {
	x := smallParts(t)
	x.scene()
	w := crashAt("put", 1)
	if x.crashed(w) == nil {
		t.Fatal("no crash")
	}
	w.heal()
	// The judge finds the pack unnamed, after the grace: condemns, deletes, burns.
	x.clock.advance(2 * time.Hour)
	ms, err := x.db.MarkersOf(t.Context(), catalog.DutyOrphan, "", 10)
	must(t, err)
	for _, m := range ms {
		v, in, err := x.db.CondemnIntent(t.Context(), m.MarkerRef)
		must(t, err)
		if v != catalog.Condemned {
			t.Fatalf("%s: %s", m.ID, v)
		}
		res, err := x.store.Delete(t.Context(), []string{in.Key})
		must(t, err)
		must(t, res[0].Err)
		must(t, x.db.BurnIntent(t.Context(), in.Key))
	}
	x.converge()
	for _, r := range x.refs() {
		if r.Kind == catalog.RefPack && r.Revision != 1 {
			t.Errorf("ref %s of %q names %s", r.FirstPos(), r.Stream, r.Key)
		}
	}
}

// Two settlers race on one chain: the first stalls in every step in turn, until its
// lease is over and the second one is done; then it goes on.
func TestTwoSettlersRaceOnOneChain(t *testing.T) {
	for _, at := range []string{"Window", "Announce", "get", "create-upload", "AddUpload", "upload-part", "complete", "put", "CommitRewrite", "ResolveSettled", "ReleaseDuty"} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s after=%t", at, after), func(t *testing.T) {
				x := smallParts(t)
				x.scene()
				w := &world{}
				stalled := false
				var once sync.Once
				w.hook = func(call string, a bool) {
					if call == at && a == after {
						once.Do(func() { stalled = true; x.converge() })
					}
				}
				s := x.settlerOn(x.multipart(w.driver(x.mem)), &faulty{x.db, w}, serial())
				_, err := s.RunOnce(t.Context(), x.chain, "settler-1")
				if !stalled {
					t.Fatalf("it never came by %s; error %v", at, err)
				}
				x.converge()
			})
		}
	}
}

func TestLeaseKeepsASecondSettlerAway(t *testing.T) {
	x := newTier(t)
	x.fill(1)
	h := catalog.Holder{Duty: catalog.DutySettle, ID: catalog.ChainID(x.chain), Owner: "settler-2"}
	must(t, x.db.LeaseDuty(t.Context(), h, time.Minute))
	if rep := x.once(x.settler(now())); rep.Idle != IdleLease {
		t.Fatalf("report %+v", rep)
	}
	x.clock.advance(time.Minute)
	if rep := x.once(x.settler(now())); rep.Resolved != 1 {
		t.Fatalf("report %+v", rep)
	}
}

// A batch that lost its lease stops by itself.
func TestHeartbeatEndsTheBatchOfALostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lost := context.WithCancelCause(t.Context())
		cat := &takenOver{after: 3}
		l := &lease{cat: cat, length: time.Minute, clock: time.Now}
		start := time.Now()
		l.hold(ctx, lost)
		if !errors.Is(context.Cause(ctx), errLeaseLost) || time.Since(start) != time.Minute {
			t.Fatalf("cause %v after %v and %d renewals", context.Cause(ctx), time.Since(start), cat.n)
		}
	})
}

type takenOver struct{ n, after int }

func (c *takenOver) LeaseDuty(context.Context, catalog.Holder, time.Duration) error {
	if c.n++; c.n >= c.after {
		return catalog.Conflict("LeaseDuty", "lease", "free", "another's")
	}
	return nil
}

func (c *takenOver) ReleaseDuty(context.Context, catalog.Holder) error { return nil }

// A cancelled ctx starts no mutation, whenever it comes; the next pass converges.
func TestCancelledPassStartsNoMutation(t *testing.T) {
	for _, at := range []string{"Window", "Announce", "get", "upload-part", "complete", "CommitRewrite"} {
		t.Run(at, func(t *testing.T) {
			x := smallParts(t)
			x.scene()
			ctx, cancel := context.WithCancel(t.Context())
			w := &world{}
			var once sync.Once
			var mu sync.Mutex // parts are sent side by side
			var begun []string
			announced := make(chan struct{}) // sources are fetched beside the announce
			var first sync.Once
			w.hook = func(call string, after bool) {
				if call == "Announce" && after {
					first.Do(func() { close(announced) })
				}
				if call == at && after {
					once.Do(func() {
						if at == "get" {
							<-announced
						}
						cancel()
					})
				} else if ctx.Err() != nil && !after {
					mu.Lock()
					defer mu.Unlock()
					begun = append(begun, call)
				}
			}
			_, err := x.settlerOn(x.multipart(w.driver(x.mem)), &faulty{x.db, w}, serial()).RunOnce(ctx, x.chain, "settler-1")
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v", err)
			}
			for _, call := range begun {
				// Parts were on their way already; aborts publish nothing.
				if call != "upload-part" && call != "abort" && call != "get" && call != "head" && call != "Now" && call != "Settings" && call != "Window" {
					t.Errorf("%s begun after the end of ctx (%v)", call, begun)
				}
			}
			w.heal()
			x.converge()
		})
	}
}
