package localtier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// unpublished opens a writer that acknowledges rows and publishes none, and kills it.
func (w *world) unpublished(dir string, payloads ...string) {
	w.t.Helper()
	cut, _ := cutOnce(StepBuilt, 1)
	a := w.open(dir, steal, func(o *Options) { o.Cut = cut })
	for _, p := range payloads {
		w.mustAppend(a, "s", AckLocal, p)
		mustSeal(w.t, a.shards[0])
	}
	abandon(w.t, a)
}

// TestTakeBack: a taker that died before its first slot was absorbed has changed
// nothing. The directory that it took the chain from has every row at its seq; one step
// later it has lost the chain, and its rows are in quarantine.
func TestTakeBack(t *testing.T) {
	for _, c := range []struct {
		step  Step
		keeps bool
	}{{StepAcquired, true}, {StepSent, true}, {StepFencePlaced, true}, {StepFenced, false}} {
		t.Run(string(c.step), func(t *testing.T) {
			w := newWorld(t, 1)
			a := w.open("a")
			w.mustAppend(a, "s", AckShared, "zero")
			w.mustClose(a)
			w.unpublished("a", "one", "two")
			cut, at := cutOnce(c.step, 1)
			if _, err := w.tryOpen("b", steal, func(o *Options) { o.Cut = cut }); !errors.Is(err, errPower) {
				t.Fatalf("%v", err)
			}
			<-at
			if _, err := w.tryOpen("a"); !errors.Is(err, ErrHeld) {
				t.Fatalf("the taker's lease lives, and yet: %v", err)
			}
			a = w.open("a", steal)
			left := w.quarantined("a")
			if !c.keeps {
				if len(left) != 1 || left[0].Rows != 2 {
					t.Fatalf("in quarantine: %+v", left)
				}
				w.acked["s"] = []string{"zero"}
				if n := w.salvage(left[0], a); n != 2 {
					t.Errorf("%d rows salvaged", n)
				}
			}
			if c.keeps {
				if len(left) != 0 {
					t.Fatalf("in quarantine: %+v", left)
				}
				if st := a.Status()[0]; st.NextSeq != 4 || st.Term != 4 {
					t.Errorf("%+v", st)
				}
			}
			w.mustAppend(a, "s", AckShared, "three")
			w.mustClose(a)
			w.checkStored()
			w.mustClose(w.open("b")) // without a row, and never the owner of one
			w.mustClose(w.open("a"))
			w.checkStored()
		})
	}
}

// TestCutTakeBack cuts the taking back after each of its steps, with and without the
// fence of the taker before.
func TestCutTakeBack(t *testing.T) {
	for _, taker := range []Step{StepAcquired, StepFencePlaced} {
		for _, step := range []Step{StepAcquired, StepTakenBack} {
			t.Run(fmt.Sprintf("%s/%s", taker, step), func(t *testing.T) {
				w := newWorld(t, 1)
				w.unpublished("a", "one", "two")
				cut, _ := cutOnce(taker, 1)
				if _, err := w.tryOpen("b", steal, func(o *Options) { o.Cut = cut }); !errors.Is(err, errPower) {
					t.Fatalf("%v", err)
				}
				cut, _ = cutOnce(step, 1)
				if _, err := w.tryOpen("a", steal, func(o *Options) { o.Cut = cut }); !errors.Is(err, errPower) {
					t.Fatalf("%v", err)
				}
				a := w.open("a") // the lease is its own again
				w.mustAppend(a, "s", AckShared, "three")
				w.mustClose(a)
				w.checkStored()
				if left := w.quarantined("a"); len(left) != 0 {
					t.Errorf("in quarantine: %+v", left)
				}
			})
		}
	}
}

// TestLateFenceOfATakerIsVoided: the taker is not dead, only slow. Its fence lands where
// the owner that took the chain back was to publish: it holds no row and began no term.
func TestLateFenceOfATakerIsVoided(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppend(a, "s", AckShared, "zero")
	w.mustClose(a)
	w.unpublished("a", "one")
	reached, goOn := make(chan struct{}), make(chan struct{})
	taker := make(chan error, 1)
	go func() {
		_, err := w.tryOpen("b", steal, func(o *Options) {
			o.Cut = func(s Step) error {
				if s == StepSent {
					close(reached)
					<-goOn
				}
				return nil
			}
		})
		taker <- err
	}()
	<-reached
	a = w.open("a", steal, func(o *Options) {
		first := true
		o.Cut = func(s Step) error {
			if s == StepBuilt && first {
				first = false
				close(goOn) // the fence lands now, before the owner's first slot of the term
				if err := <-taker; !errors.Is(err, ErrHeld) {
					t.Errorf("the taker: %v", err)
				}
			}
			return nil
		}
	})
	w.mustAppend(a, "s", AckLocal, "two")
	w.mustAppend(a, "s", AckShared, "three")
	w.mustClose(a)
	w.checkStored()
	if row := w.chain(0); row.AbsorbedEnd < 4 {
		t.Errorf("%+v", row)
	}
	slots, err := w.cat.Slots(t.Context(), w.chain(0).Chain, 1, 100)
	voids := 0
	for _, s := range slots {
		if s.Void {
			voids++
		}
	}
	if err != nil || voids != 1 {
		t.Errorf("%d void slots, %v", voids, err)
	}
}

// TestZombieAtEachStep: an owner stalls at a step of publishing, another takes the chain,
// and the first wakes up. It enters nothing behind the fence, is told, keeps its segments,
// and when it starts again sets them aside.
func TestZombieAtEachStep(t *testing.T) {
	for _, step := range []Step{StepBuilt, StepSent, StepPlaced, StepAbsorbed, StepCheckpointed} {
		t.Run(string(step), func(t *testing.T) {
			w := newWorld(t, 1)
			w.recreatable[segment.SlotKey(segment.Chain{Epoch: 1}, 2)] = true
			reached, goOn := make(chan struct{}), make(chan struct{})
			seen := 0
			a := w.open("a", func(o *Options) {
				o.Cut = func(s Step) error {
					if s == step {
						if seen++; seen == 2 {
							close(reached)
							<-goOn
						}
					}
					return nil
				}
			})
			w.mustAppend(a, "s", AckShared, "one")
			got := make(chan error, 1)
			go func() {
				_, err := a.Append(context.Background(), "s", []segment.Row{{Payload: []byte("stalled")}}, AckShared)
				got <- err
			}()
			<-reached
			b := w.open("b", steal)
			w.mustAppend(b, "s", AckShared, "two")
			close(goOn)
			if err := <-got; err == nil {
				// It was absorbed before the fence, and so it is in the history, before "two".
				if step != StepAbsorbed && step != StepCheckpointed {
					t.Error("acknowledged behind the fence")
				}
			} else if !errors.Is(err, ErrFenced) {
				t.Errorf("%v", err)
			}
			if _, err := a.Append(t.Context(), "s", []segment.Row{{Payload: []byte("zombie")}}, AckShared); !errors.Is(err, ErrFenced) {
				t.Errorf("after the fence: %v", err)
			}
			if err := a.Close(t.Context()); !errors.Is(err, ErrFenced) && !errors.Is(err, ErrUnpublished) {
				t.Errorf("close: %v", err)
			}
			w.mustAppend(b, "s", AckShared, "three")
			w.mustClose(b)
			w.checkStored("stalled", "zombie")
			if rows := w.stored("s"); count(rows, "zombie") != 0 {
				t.Errorf("history %q", rows)
			}
			again := w.open("a")
			left := w.quarantined("a")
			if len(left) > 1 || (len(left) == 0 && (step == StepBuilt || step == StepSent)) {
				t.Fatalf("in quarantine: %+v", left)
			}
			for _, q := range left {
				if n, err := Salvage(t.Context(), q, 1, w.salvager(again)); err != nil || n != q.Rows || !q.Judged {
					t.Errorf("%d rows of %+v, %v", n, q, err)
				}
			}
			w.mustClose(again)
			if rows := w.stored("s"); count(rows, "zombie") > 1 {
				t.Errorf("history %q", rows)
			}
			for _, row := range []string{"one", "two", "three", "stalled"} {
				if rows := w.stored("s"); count(rows, row) != 1 {
					t.Errorf("%q is stored %d times: %q", row, count(rows, row), rows)
				}
			}
			w.fsck()
		})
	}
}

// TestRaceAtEachStep: while one takes the chain, another takes it from under it, at each
// step, with each kind of directory. One of them serves, and every row is where it was.
func TestRaceAtEachStep(t *testing.T) {
	for _, dir := range []string{"empty", "resumes", "taken from", "left over"} {
		for _, step := range []Step{StepAcquired, StepTakenBack, StepLetGo, StepSetAside, StepSent, StepFencePlaced, StepFenced, StepJudged} {
			t.Run(fmt.Sprintf("%s/%s", dir, step), func(t *testing.T) {
				w := newWorld(t, 1)
				a := w.open("a")
				w.mustAppend(a, "s", AckShared, "one")
				w.mustClose(a)
				salvaged := w.prepareRacer(dir)
				met := false
				var b *Writer
				racer, err := w.tryOpen("a", steal, func(o *Options) {
					o.Cut = func(s Step) error {
						if s == step && !met {
							met = true
							b = w.open("b", steal)
							w.mustAppend(b, "s", AckShared, "of b")
						}
						return nil
					}
				})
				if err == nil {
					// It took the chain from the other in its turn, as it was told to, or it will be fenced.
					if aerr := w.append(racer, "s", AckShared, "of a"); aerr != nil && !errors.Is(aerr, ErrFenced) {
						t.Errorf("%v", aerr)
					}
					if cerr := racer.Close(t.Context()); cerr != nil && !errors.Is(cerr, ErrFenced) && !errors.Is(cerr, ErrUnpublished) {
						t.Errorf("close: %v", cerr)
					}
				} else if !errors.Is(err, ErrHeld) {
					t.Errorf("%v", err)
				}
				if !met {
					return // this directory does not come by this step
				}
				if aerr := w.append(b, "s", AckShared, "more of b"); aerr != nil && !errors.Is(aerr, ErrFenced) {
					t.Errorf("%v", aerr)
				}
				_ = b.Close(t.Context()) // it may have lost the chain
				last := w.open("c", steal)
				w.mustClose(last)
				a = w.open("a", steal)
				for _, q := range w.quarantined("a") {
					if _, err := Salvage(t.Context(), q, 1, w.salvager(a)); err != nil {
						t.Error(err)
					}
				}
				w.mustClose(a)
				got := w.stored("s")
				for _, row := range append(salvaged, "one", "of b") {
					if count(got, row) != 1 {
						t.Errorf("%q is stored %d times: %q", row, count(got, row), got)
					}
				}
				w.fsck()
			})
		}
	}
}

// prepareRacer makes "a" a directory of a kind, and names the rows that only it has.
func (w *world) prepareRacer(kind string) []string {
	w.t.Helper()
	switch kind {
	case "empty":
		if err := os.RemoveAll(filepath.Join(w.root, "a")); err != nil {
			w.t.Fatal(err)
		}
		return nil
	case "resumes":
		w.unpublished("a", "local")
	case "taken from":
		w.unpublished("a", "local")
		cut, _ := cutOnce(StepFencePlaced, 1)
		if _, err := w.tryOpen("x", steal, func(o *Options) { o.Cut = cut }); !errors.Is(err, errPower) {
			w.t.Fatal(err)
		}
	case "left over":
		w.unpublished("a", "local")
		w.mustClose(w.open("x", steal))
	}
	w.acked["s"] = nil
	return []string{"local"}
}

// TestTakeoverModel: random owners, crashes, takeovers cut at random steps, lost disks.
// In the end every `shared` acknowledgement is in the history once, and every `local` one
// too whose disk was not lost, some by way of quarantine; never one twice.
func TestTakeoverModel(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := &takeoverModel{w: newWorld(t, 1), rng: rand.New(rand.NewPCG(seed, 7)), rows: map[string]*modelRow{}, cuts: map[string]<-chan struct{}{}}
			for range 30 {
				m.step()
			}
			m.check()
		})
	}
}

type modelRow struct {
	ack  Ack // "" if it was not acknowledged
	dir  string
	life int // of the directory
}

type takeoverModel struct {
	w     *world
	rng   *rand.Rand
	owner *Writer // nil: none is up
	dir   string
	alive string // of a zombie
	n     int
	rows  map[string]*modelRow
	lives [3]int // how often each directory was lost
	cuts  map[string]<-chan struct{}
}

func (m *takeoverModel) name(i int) string { return fmt.Sprintf("dir%d", i) }

func (m *takeoverModel) step() {
	switch r := m.rng.IntN(10); {
	case m.owner == nil:
		m.open()
	case r < 5:
		m.append()
	case r < 6:
		mustSeal(m.w.t, m.owner.shards[0])
	case r < 8:
		abandon(m.w.t, m.owner)
		m.owner = nil
	case r < 9:
		m.close(m.owner)
		m.owner = nil
	default:
		// The owner goes on as a zombie for one append, and is killed.
		old, dir := m.owner, m.dir
		m.owner, m.alive = nil, dir
		m.open()
		m.alive = ""
		if m.owner != nil && m.dir != dir {
			m.appendTo(old, dir)
		}
		abandon(m.w.t, old)
		if m.dir == dir {
			m.owner = nil
		}
	}
}

// close closes a writer, and kills it if it was cut on the way.
func (m *takeoverModel) close(wr *Writer) {
	ctx, cancel := context.WithCancel(m.w.t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- wr.Close(ctx) }()
	_ = waitOrCut(m.cuts[m.dir], done, cancel) // it may have lost the chain, or the process its life
}

func (m *takeoverModel) open() {
	i := m.rng.IntN(len(m.lives))
	dir := m.name(i)
	if m.rng.IntN(12) == 0 && dir != m.alive {
		if err := os.RemoveAll(filepath.Join(m.w.root, dir)); err != nil {
			m.w.t.Fatal(err)
		}
		m.lives[i]++
	}
	steps := []Step{
		StepAcquired, StepTakenBack, StepLetGo, StepSetAside, StepJudged, StepSent, StepFencePlaced, StepFenced,
		StepBuilt, StepPlaced, StepAbsorbed, "", "", "", "",
	}
	cut, at := cutOnce(steps[m.rng.IntN(len(steps))], 1+m.rng.IntN(2))
	m.cuts[dir] = at
	wr, err := m.w.tryOpen(dir, steal, func(o *Options) { o.Cut = cut })
	if err != nil {
		if !errors.Is(err, errPower) && !errors.Is(err, os.ErrExist) && !isLocked(err) {
			m.w.t.Fatalf("open %s: %v", dir, err)
		}
		return
	}
	m.owner, m.dir = wr, dir
}

func (m *takeoverModel) append() { m.appendTo(m.owner, m.dir) }

func (m *takeoverModel) appendTo(wr *Writer, dir string) {
	m.n++
	payload := fmt.Sprintf("row-%d", m.n)
	row := &modelRow{dir: dir, life: m.lives[dir[3]-'0']}
	m.rows[payload] = row
	ack := AckLocal
	if m.rng.IntN(3) == 0 {
		ack = AckShared
	}
	ctx, cancel := context.WithCancel(m.w.t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := wr.Append(ctx, "s", []segment.Row{{Payload: []byte(payload)}}, ack)
		done <- err
	}()
	// A shared append on a writer that was cut waits for ever.
	err := waitOrCut(m.cuts[dir], done, cancel)
	if err == nil {
		row.ack = ack
	}
}

func (m *takeoverModel) check() {
	t := m.w.t
	if m.owner != nil {
		abandon(t, m.owner)
	}
	last := m.w.open("last", steal)
	for i := range m.lives {
		// Whatever lies in a directory goes to quarantine, and comes back from there.
		m.w.mustClose(last)
		mid := m.w.open(m.name(i), steal)
		m.w.mustClose(mid)
		last = m.w.open("last", steal)
		for _, q := range m.w.quarantined(m.name(i)) {
			m.salvage(q, last)
		}
	}
	m.w.mustClose(last)
	got := m.w.stored("s")
	for payload, row := range m.rows {
		n := count(got, payload)
		lost := row.ack != AckShared && m.lives[row.dir[3]-'0'] != row.life
		if n > 1 || (n == 0 && row.ack != AckDefault && !lost) {
			t.Errorf("%s, acknowledged %q in %s: stored %d times", payload, row.ack, row.dir, n)
		}
	}
	if len(got) > len(m.rows) {
		t.Errorf("%d rows stored of %d appended", len(got), len(m.rows))
	}
	m.w.fsck()
}

// salvage runs a salvage that is killed after each few frames, until it is through, and
// once more.
func (m *takeoverModel) salvage(q Quarantine, to *Writer) {
	t := m.w.t
	for round := 0; ; round++ {
		left := 1 + m.rng.IntN(3)
		_, err := Salvage(t.Context(), q, 1, func(ctx context.Context, p Producer, stream string, rows []segment.Row) error {
			if left--; left < 0 {
				return errPower
			}
			_, err := to.AppendAs(ctx, p, stream, rows, AckShared)
			if left == 0 && err == nil && m.rng.IntN(2) == 0 {
				return errPower // the answer is lost
			}
			return err
		})
		if err == nil {
			break
		}
		if !errors.Is(err, errPower) || round > 200 {
			t.Fatalf("salvage %s: %v", q.Dir, err)
		}
	}
	if n, err := Salvage(t.Context(), q, 1, m.w.salvager(to)); n != 0 || err != nil {
		t.Errorf("salvaged again: %d rows, %v", n, err)
	}
}

func isLocked(err error) bool { return errors.Is(err, wal.ErrLocked) }

// waitOrCut waits for an append; once its writer was cut, no longer than it may take to
// answer.
func waitOrCut(cut <-chan struct{}, done chan error, cancel context.CancelFunc) error {
	select {
	case err := <-done:
		return err
	case <-cut:
	}
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Millisecond):
		cancel()
		return <-done
	}
}

// TestK24 a failover at each step, of a chain whose log was trimmed: every row at or
// above live_from is there, under each owner, and none below comes back.
func TestK24(t *testing.T) {
	for _, step := range []Step{StepAcquired, StepSent, StepFencePlaced, StepFenced, StepFetched, StepHydrated, StepBuilt, StepPlaced, StepAbsorbed, StepPlanned, StepWatermark, StepReclaimed} {
		t.Run(string(step), func(t *testing.T) {
			w := newWorld(t, 1)
			w.keepRows(3)
			a := w.open("a")
			w.slots(a, 6)
			if out := mustRetain(t, a); out.WatermarkSeq != 3 {
				t.Fatalf("%+v", out)
			}
			abandon(t, a)
			b, err := w.tryOpen("b", steal, func(o *Options) { o.Cut, o.Config.HydrateAll = cutLocked(step, 1), true })
			last := segment.Seq(6)
			if err == nil {
				b.shards[0].hydrating.Wait()
				if w.append(b, "s", AckLocal, "6") == nil {
					last++
				}
				_, _ = b.shards[0].wal.Seal(t.Context()) // it may be cut
				_, _ = b.Retain(t.Context())
				abandon(t, b)
			}
			for _, dir := range []string{"b", "c"} {
				wr := w.open(dir, steal, func(o *Options) { o.Config.HydrateAll = true })
				wr.shards[0].hydrating.Wait()
				mark := w.chain(0).WatermarkSeq
				got, err := readLocal(t, wr, "s", mark+1, 0)
				if err != nil || len(got) != int(last-mark) {
					t.Errorf("%s: %d rows above %d, %v", dir, len(got), mark, err)
				}
				if _, err := readLocal(t, wr, "s", mark, 0); !errors.Is(err, ErrNotLocal) {
					t.Errorf("%s: rows below the watermark: %v", dir, err)
				}
				if left := w.quarantined(dir); len(left) != 0 {
					t.Errorf("in quarantine: %+v", left)
				}
				w.mustClose(wr)
			}
			w.fsck()
		})
	}
}
