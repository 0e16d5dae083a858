package auditor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// stress is three auditors, a writer and an operator on one tier.
type stress struct {
	x    *audittest.Tier
	stop atomic.Bool
	hits atomic.Int64
	// passes that ended.
	passes atomic.Int64

	mu    sync.Mutex // all below
	done  map[catalog.Duty]int
	rows  map[string][]segment.Seq // acknowledged
	trims map[string]segment.Seq   // live from
}

// faulty is a fate for every call: one in forty goes wrong, one in four hundred is the
// end of the process.
func (s *stress) faulty(rng *rand.Rand) *audittest.Faults {
	forms := audittest.AllForms()
	return &audittest.Faults{Pick: func(int, string) audittest.Form {
		if rng.IntN(40) != 0 {
			return audittest.Fine
		}
		s.hits.Add(1)
		if rng.IntN(10) == 0 {
			return forms[2+rng.IntN(2)]
		}
		return forms[rng.IntN(2)]
	}}
}

// audit runs an auditor again and again, each a process of its own.
func (s *stress) audit(id int) {
	rng := rand.New(rand.NewPCG(uint64(id), 11))
	for run := 0; !s.stop.Load(); run++ {
		f := s.faulty(rng)
		f.Start()
		a := s.x.AuditorOn(fmt.Sprintf("%d.%d", id, run), auditor.Config{Concurrency: 3, Sweep: run%5 == 0}, f.Store(s.x), f.Catalog(s.x))
		sum, _ := a.Once(s.x.Ctx(), auditor.OnceOptions{}) // its errors are the faults'; what they did is held at the end
		f.Heal()
		s.passes.Add(1)
		s.mu.Lock()
		for name, d := range sum.Duties {
			s.done[catalog.Duty(name)] += d.Items + d.Outcomes["outputs"] + d.Outcomes["uploads aborted"]
		}
		s.mu.Unlock()
	}
}

// idle are the duties that had nothing to do yet.
func (s *stress) idle() (out []catalog.Duty) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range []catalog.Duty{
		catalog.DutySettle, catalog.DutyPackMerge, catalog.DutyTailFill, catalog.DutyGC, catalog.DutyTeardown, catalog.DutyTrimCheck, catalog.DutyReapCheck, catalog.DutyOrphan, catalog.DutySweep,
	} {
		if s.done[d] == 0 {
			out = append(out, d)
		}
	}
	return out
}

// write publishes slot after slot, and lets a minute pass with each: least of them, and
// on until every duty had something to do under the faults.
func (s *stress) write(least, most int) {
	rng := rand.New(rand.NewPCG(0, 12))
	for n := 0; n < least || n < most && len(s.idle()) > 0; n++ {
		writes := []audittest.Write{{Stream: "big", Rows: 10 + rng.IntN(20), Size: 400}}
		for i := range 4 {
			if rng.IntN(3) > 0 {
				writes = append(writes, audittest.Write{Stream: fmt.Sprintf("tiny-%d", (n/7+i)%6), Rows: 1 + rng.IntN(6), Size: 60})
			}
		}
		if n%3 == 0 {
			writes = append(writes, audittest.Write{Stream: fmt.Sprintf("mid-%d", n%2), Rows: 15, Size: 300})
		}
		if n%5 == 0 { // most of a pack, and deleted later: a gc's work
			writes = append(writes, audittest.Write{Stream: fmt.Sprintf("fat-%d", n), Rows: 7, Size: 400})
		}
		s.slot(writes)
		if n%4 == 3 {
			s.trim(rng)
		}
		if n%5 == 4 {
			s.delete(fmt.Sprintf("fat-%d", n-4))
		}
		s.keepsUp()
		s.x.Clock.Advance(time.Minute)
	}
}

// keepsUp lets a pass end, whatever became of it: a writer far ahead of the auditors, on a
// machine that does much else, would trim and delete all before it was ever settled.
func (s *stress) keepsUp() {
	before := s.passes.Load()
	for bound := time.Now().Add(2 * time.Minute); s.passes.Load() == before; time.Sleep(time.Millisecond) {
		if time.Now().After(bound) {
			s.x.T.Fatal("no pass ended in two minutes")
		}
	}
}

// slot publishes, and notes what was acknowledged.
func (s *stress) slot(writes []audittest.Write) {
	first := s.x.Next()
	s.x.Slot(writes...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range writes {
		for range w.Rows {
			s.rows[w.Stream] = append(s.rows[w.Stream], first)
			first++
		}
	}
}

func (s *stress) delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.x.DB.DeleteStream(s.x.Ctx(), name)
	s.x.Must(err)
	s.trims[name] = s.x.Next()
}

// trim trims or deletes a stream somewhere.
func (s *stress) trim(rng *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.rows))
	for name := range s.rows {
		names = append(names, name)
	}
	slices.Sort(names)
	name := names[rng.IntN(len(names))]
	rows := s.rows[name]
	at := rows[rng.IntN(len(rows))]
	if rng.IntN(3) == 0 {
		at = rows[len(rows)-1] + 1
		_, err := s.x.DB.DeleteStream(s.x.Ctx(), name)
		s.x.Must(err)
	} else {
		_, err := s.x.DB.TrimStream(s.x.Ctx(), name, segment.Pos{Epoch: 1, Seq: at})
		s.x.Must(err)
	}
	s.trims[name] = max(s.trims[name], at)
}

// read holds what a reader gets against what was written and not trimmed (I1).
func (s *stress) read(ctx context.Context, t *testing.T, name string) {
	r, err := coldload.New(s.x.DB, s.x.Classes, coldload.Config{Clock: s.x.Clock.Now})
	s.x.Must(err)
	s.mu.Lock()
	rows, from := slices.Clone(s.rows[name]), s.trims[name]
	s.mu.Unlock()
	want := rows[:0]
	for _, seq := range rows {
		if seq >= from {
			want = append(want, seq)
		}
	}
	var got []segment.Seq
	for row, err := range r.Rows(ctx, name, segment.Pos{}, segment.Pos{}) {
		if err != nil {
			if !errors.Is(err, coldload.ErrDeleted) || len(want) > 0 {
				t.Errorf("read %s: %v", name, err)
			}
			return
		}
		got = append(got, row.Seq)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d rows are read, %d were written and not trimmed", name, len(got), len(want))
	}
}

// TestK19ThreeAuditorsUnderFaults: three auditors with all duties, each killed and begun
// anew again and again, a writer that goes on publishing, streams trimmed and deleted, one
// call in forty failing. Then the faults stop: every row is there, nothing is
// damaged, nothing leaks, nothing stands.
func TestK19ThreeAuditorsUnderFaults(t *testing.T) {
	x := audittest.NewOnSQLite(t, memstore.Options{Shuffle: 7, PageSize: 50})
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	x.Policies()
	// So many that a pack which lost its fat stream stands for longer than the read grace,
	// after which its dead part is looked at, before it is merged.
	x.Settling.PackFan = 20
	s := &stress{x: x, done: map[catalog.Duty]int{}, rows: map[string][]segment.Seq{}, trims: map[string]segment.Seq{}}
	var wg sync.WaitGroup
	for id := range 3 {
		wg.Go(func() { s.audit(id + 1) })
	}
	s.write(80, 600)
	s.stop.Store(true)
	wg.Wait()
	if s.hits.Load() < 50 {
		t.Fatalf("only %d faults", s.hits.Load())
	}
	x.RunDryIn(200)
	x.MustBeClean()
	for name := range s.rows {
		s.read(t.Context(), t, name)
	}
	t.Logf("%d faults; done under them: %v", s.hits.Load(), s.done)
	if idle := s.idle(); len(idle) > 0 {
		t.Errorf("%v had nothing to do", idle)
	}
}
