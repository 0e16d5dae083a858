package settle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore/memstore"
)

// spentBudget is a budget that lets all through, and notes it; or nothing.
type spentBudget struct {
	mu       sync.Mutex
	bytes    int64
	requests int64
	shut     bool
}

func (b *spentBudget) Spend(ctx context.Context, bytes int64, requests int) error {
	b.mu.Lock()
	shut := b.shut
	b.bytes, b.requests = b.bytes+bytes, b.requests+int64(requests)
	b.mu.Unlock()
	if shut {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return nil
}

// What a mover asks its budget for is what it sends and reads: each request and each
// byte of it, and no more than a footer's suffix a source besides.
func TestBudgetIsAskedForAllThatMoves(t *testing.T) {
	for _, multi := range []bool{false, true} {
		for _, sc := range scenes() {
			t.Run(fmt.Sprintf("%s multipart=%t", sc.name, multi), func(t *testing.T) {
				x := smallParts(t)
				sc.build(x)
				m := x.taken(sc.duty)
				store := x.store
				if multi {
					store = x.multipart(x.mem)
				}
				b := &spentBudget{}
				d := x.deps(store, x.db)
				d.Budget = b
				s, err := New(d, few())
				must(t, err)
				before := store.Counters()
				_, err = s.RunMarker(t.Context(), m, "settler-1")
				must(t, err)
				n := store.Counters().Sub(before)
				if got, want := b.bytes, n.BytesIn+n.BytesOut; got != want {
					t.Errorf("%d bytes asked for, %d moved", got, want)
				}
				if got, want := b.requests, n.Total(); got != want {
					t.Errorf("%d requests asked for, %d sent: %v", got, want, n.Requests)
				}
			})
		}
	}
}

// With copies, footers and heads it is an estimate, and never less than the requests.
func TestBudgetOfCopies(t *testing.T) {
	x := newTierOn(t, memstore.Options{MinPart: 5 << 20, MinCopy: 5 << 20})
	x.bigStream()
	x.slot(write{stream: "big", rows: 10, size: 1000}, write{stream: "big", rows: 10, size: 1000})
	b := &spentBudget{}
	d := x.deps(x.store, x.db)
	d.Budget = b
	s, err := New(d, Config{SettleAge: -1})
	must(t, err)
	before := x.store.Counters()
	rep := x.once(s)
	n := x.store.Counters().Sub(before)
	if rep.ServerSide == 0 || b.requests < n.Total() || b.requests > n.Total()+2 {
		t.Errorf("%d requests asked for, %d sent: %v", b.requests, n.Total(), n.Requests)
	}
}

// A budget that lets nothing through ends with the job's deadline, or with ctx; nothing
// was sent.
func TestShutBudgetSendsNothing(t *testing.T) {
	for _, sc := range scenes() {
		x := smallParts(t)
		sc.build(x)
		m := x.taken(sc.duty)
		w := &world{}
		ctx, cancel := context.WithCancel(t.Context())
		w.hook = func(call string, after bool) {
			if call == "Announce" && after {
				cancel()
			}
		}
		d := x.deps(x.multipart(w.driver(x.mem)), &faulty{x.db, w})
		d.Budget = &spentBudget{shut: true}
		s, err := New(d, few())
		must(t, err)
		_, err = s.RunMarker(ctx, m, "settler-1")
		cancel()
		if !errors.Is(err, context.Canceled) || w.calls("get")+w.calls("put")+w.calls("create-upload") != 0 {
			t.Errorf("%s: error %v, calls %v", sc.name, err, w.log)
		}
		w.heal()
		x.convergeDebts()
	}
}

// paced is a budget of so many bytes within any time.
type paced struct {
	Budget
	bytes int64
}

func (p paced) BytesWithin(time.Duration) int64 { return p.bytes }

func TestBoundOfABatch(t *testing.T) {
	x := newTier(t)
	for _, c := range []struct {
		budget   Budget
		deadline time.Duration
		want     int64
	}{
		{nil, time.Hour, 1 << 30},
		{nil, time.Second, batchRate},
		{nil, 0, 1},
		{paced{nil, 0}, time.Hour, 1 << 30},
		{paced{nil, 77}, time.Hour, 77},
		{paced{nil, 1 << 40}, time.Second, batchRate},
	} {
		d := x.deps(x.store, x.db)
		d.Budget = c.budget
		s, err := New(d, Config{})
		must(t, err)
		if got := s.bound(c.deadline); got != c.want {
			t.Errorf("%+v within %v: %d, want %d", c.budget, c.deadline, got, c.want)
		}
	}
}
