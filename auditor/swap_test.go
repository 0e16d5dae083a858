package auditor_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// scene is a tier that owes one rewrite, and the duty that pays it.
type scene struct {
	duty  catalog.Duty
	build func(x *audittest.Tier)
}

func scenes() []scene {
	slot := func(x *audittest.Tier, fat int) {
		writes := []audittest.Write{{Stream: "big", Rows: 20, Size: 400}, {Stream: "tiny", Rows: 5, Size: 40}}
		if fat > 0 {
			writes = append(writes, audittest.Write{Stream: "fat", Rows: fat, Size: 400})
		}
		x.Slot(writes...)
	}
	two := func(x *audittest.Tier) {
		for range 2 {
			slot(x, 0)
			x.SettleAll()
		}
	}
	return []scene{
		{catalog.DutySettle, func(x *audittest.Tier) { slot(x, 0); slot(x, 0) }},
		{catalog.DutyPackMerge, two},
		{catalog.DutyTailFill, two},
		{catalog.DutyGC, func(x *audittest.Tier) {
			slot(x, 7)
			x.SettleAll()
			drop(x, "fat")
			tear := x.Auditor("tear", auditor.Config{Duties: []string{"teardown", "reap-check"}})
			once(x, tear)
			x.Clock.Advance(audittest.ReadGrace)
			once(x, tear) // gc-worthy
		}},
	}
}

// built is the scene's tier, which owes exactly its duty.
func (s scene) built(t *testing.T) *audittest.Tier {
	x := audittest.New(t, memstore.Options{})
	x.Policies()
	s.build(x)
	if s.duty != catalog.DutySettle && len(x.Markers(s.duty)) != 1 {
		t.Fatalf("%d %s markers", len(x.Markers(s.duty)), s.duty)
	}
	return x
}

// TestK10ReaderInFlightAtTheSwapFinishes: a reader is in the middle of a stream when its
// rows move. What it planned stands for as long as a plan lives, whatever the auditors do
// meanwhile: it gets every row, from one plan.
func TestK10ReaderInFlightAtTheSwapFinishes(t *testing.T) {
	for _, s := range scenes() {
		for _, stream := range []string{"big", "tiny"} {
			t.Run(fmt.Sprintf("%s/%s", s.duty, stream), func(t *testing.T) {
				x := s.built(t)
				f := &audittest.Faults{}
				f.Start()
				r, err := coldload.New(f.Catalog(x), x.Classes, coldload.Config{Clock: x.Clock.Now, Window: 1})
				x.Must(err)
				before, rows := x.Keys(), 0
				for row, err := range r.Rows(t.Context(), stream, segment.Pos{}, segment.Pos{}) {
					if err != nil {
						t.Fatalf("after %d rows: %v", rows, err)
					}
					if rows++; rows > 1 || row.Seq == 0 {
						continue
					}
					a := x.Auditor("a", auditor.Config{})
					for range 4 { // within half of the grace, as long as a plan lives
						once(x, a)
						x.Clock.Advance(audittest.ReadGrace / 8)
					}
					if sum := a.Summary().Duties[string(s.duty)]; sum.Outcomes["outputs"] == 0 {
						t.Fatalf("nothing was swapped: %+v", sum)
					}
				}
				if want := map[string]int{"big": 20, "tiny": 5}[stream] * len(slotRows(x)); rows != want {
					t.Errorf("%d rows, want %d", rows, want)
				}
				if n := count(f.Calls(), "Plan"); n != 1 {
					t.Errorf("%d plans", n)
				}
				for _, key := range before {
					if !slices.Contains(x.Keys(), key) {
						t.Errorf("%s went within the grace", key)
					}
				}
				x.RunDry()
				x.MustBeClean()
			})
		}
	}
}

// slotRows are the positions of the slots that were absorbed.
func slotRows(x *audittest.Tier) []segment.ID {
	x.T.Helper()
	rows, err := x.DB.Slots(x.Ctx(), x.Chain, 1, 100)
	x.Must(err)
	out := make([]segment.ID, 0, len(rows))
	for i := range rows {
		out = append(out, rows[i].ID)
	}
	return out
}

func count(calls []string, name string) (n int) {
	for _, c := range calls {
		if c == name {
			n++
		}
	}
	return n
}

// TestK7TeardownDuringEachStepOfEachRewrite: every stream is deleted, and torn down by
// another auditor, during each call of the auditor that rewrites. No byte is left.
func TestK7TeardownDuringEachStepOfEachRewrite(t *testing.T) {
	for _, s := range scenes() {
		t.Run(string(s.duty), func(t *testing.T) {
			for at := 1; ; at++ {
				x := s.built(t)
				var mu sync.Mutex // calls, struck
				calls, struck := 0, ""
				f := &audittest.Faults{}
				f.Hook = func(call string, after bool) {
					mu.Lock()
					strikes := !after && struck == ""
					if strikes {
						calls++
						if strikes = calls == at; strikes {
							struck = call
						}
					}
					mu.Unlock()
					if strikes {
						drop(x, "big", "tiny")
						once(x, x.Auditor("other", auditor.Config{Duties: []string{"teardown"}}))
					}
				}
				f.Start()
				_, err := x.AuditorOn("a", auditor.Config{Duties: []string{string(s.duty)}}, f.Store(x), f.Catalog(x)).Once(x.Ctx(), auditor.OnceOptions{})
				f.Heal()
				if struck == "" {
					x.Must(err)
					if at < 15 {
						t.Fatalf("only %d calls", at-1)
					}
					return
				}
				x.Clock.Advance(time.Minute)
				x.RunDry()
				x.MustBeClean()
				if left := append(x.Settled(), x.Slots()...); len(left) > 0 {
					t.Fatalf("torn down at call %d (%s): %v stand", at, struck, left)
				}
			}
		})
	}
}

// blind creates on an If-Match of a key that does not stand (K33), and counts who asked.
type blind struct {
	objstore.Driver
	asked atomic.Int64
}

func (b *blind) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	if opts.IfMatch != "" {
		if _, err := b.Driver.Head(ctx, key); err != nil {
			b.asked.Add(1)
			opts.IfMatch = ""
		}
	}
	return b.Driver.Put(ctx, key, body, size, opts)
}

// TestK33NothingReliesOnIfMatchOfAMissingKey: a whole life on such a store, and nobody
// ever asked for it.
func TestK33NothingReliesOnIfMatchOfAMissingKey(t *testing.T) {
	x := newTier(t)
	x.Policies()
	d := &blind{Driver: x.Mem}
	store := x.Open(d)
	for range 3 {
		x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400}, audittest.Write{Stream: "t", Rows: 2, Size: 8})
		for range 3 {
			once(x, x.AuditorOn("a", auditor.Config{}, store, x.DB))
			x.Clock.Advance(audittest.ReadGrace)
		}
	}
	drop(x, "s")
	for range 4 {
		once(x, x.AuditorOn("a", auditor.Config{}, store, x.DB))
		x.Clock.Advance(audittest.ReadGrace)
	}
	if len(x.Slots()) != 0 || len(x.Keys(segment.KeyHead)) != 1 || d.asked.Load() != 0 {
		t.Fatalf("slots %v, heads %v, %d replacements of what does not stand", x.Slots(), x.Keys(segment.KeyHead), d.asked.Load())
	}
	// The store does lie, and our Store passes it on: who asked would be seen.
	_, err := store.PutIfMatch(t.Context(), segment.HeadKey(segment.Chain{Epoch: 9}), []byte("x"), "etag")
	if err != nil || d.asked.Load() != 1 {
		t.Fatalf("%v, asked %d times", err, d.asked.Load())
	}
	x.Damaged = true // by the line above
}
