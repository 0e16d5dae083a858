package auditor

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// leases is a catalog's count of auditors, by the clock of the test.
type leases struct {
	mu   sync.Mutex // all
	ends map[string]time.Time
	away map[string]bool // auditors that cannot reach it
}

func (l *leases) RegisterAuditor(_ context.Context, id string, lease time.Duration) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away[id] {
		return 0, errors.New("the catalog is away")
	}
	now := time.Now()
	l.ends[id] = now.Add(lease)
	live := 0
	for _, end := range l.ends {
		if end.After(now) {
			live++
		}
	}
	return live, nil
}

func (l *leases) cut(id string, away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away[id] = away
}

// meter is what all auditors spent, by the second.
type meter struct {
	mu              sync.Mutex // all
	began           time.Time
	bytes, requests [800]int64
	by              map[string]int64 // bytes, since the last look
}

func (m *meter) spent(id string, bytes int64, requests int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := int(time.Since(m.began).Seconds())
	m.bytes[at] += bytes
	m.requests[at] += int64(requests)
	m.by[id] += bytes
}

// look is what each spent since the last look.
func (m *meter) look() map[string]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	by := m.by
	m.by = map[string]int64{}
	return by
}

const (
	totalBytes    = 1 << 20
	totalRequests = 50
)

// movers spends as four movers do, in small bits, until ctx ends.
func movers(ctx context.Context, t *testing.T, id string, cat Registrar, m *meter) {
	b, err := NewBudget(BudgetDeps{ID: id, Catalog: cat, Clock: time.Now}, Limits{totalBytes, totalRequests})
	if err != nil {
		t.Error(err)
		return
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for b.Spend(ctx, totalBytes/100, 0) == nil {
				m.spent(id, totalBytes/100, 0)
			}
		})
		wg.Go(func() {
			for b.Spend(ctx, 0, 1) == nil {
				m.spent(id, 0, 1)
			}
		})
	}
	wg.Wait()
}

// TestBudgetIsShared: auditors join, die, lose the catalog and come back. Whatever
// window one looks at, all of them together stay within the deployment's budget; and
// those that live use it.
func TestBudgetIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cat := &leases{ends: map[string]time.Time{}, away: map[string]bool{}}
		m := &meter{began: time.Now(), by: map[string]int64{}}
		var wg sync.WaitGroup
		start := func(id string) context.CancelFunc {
			ctx, cancel := context.WithCancel(t.Context())
			wg.Go(func() { movers(ctx, t, id, cat, m) })
			return cancel
		}
		phase := func(what string, d time.Duration, want map[string]float64) {
			m.look()
			time.Sleep(d)
			got := m.look()
			for id, share := range want {
				if have := float64(got[id]) / d.Seconds() / totalBytes; have < share-0.03 || have > share+0.03 {
					t.Errorf("%s: %s spends %.2f of the budget, want %.2f", what, id, have, share)
				}
			}
		}
		const settled = DefaultLease + DefaultLease/2 // a lease ends, and the others have noticed
		stopA := start("a")
		phase("a alone", 30*time.Second, map[string]float64{"a": 1})
		stopB := start("b")
		time.Sleep(settled)
		phase("b has joined", 30*time.Second, map[string]float64{"a": 0.5, "b": 0.5})
		stopC := start("c")
		time.Sleep(settled)
		phase("c has joined", 30*time.Second, map[string]float64{"a": 1. / 3, "b": 1. / 3, "c": 1. / 3})
		stopB()
		time.Sleep(settled)
		phase("b has died", 30*time.Second, map[string]float64{"a": 0.5, "b": 0, "c": 0.5})
		cat.cut("c", true)
		time.Sleep(settled)
		phase("c has lost the catalog", 30*time.Second, map[string]float64{"a": 1, "c": 0})
		cat.cut("c", false)
		time.Sleep(settled)
		phase("c is back", 30*time.Second, map[string]float64{"a": 0.5, "c": 0.5})
		stopA()
		stopC()
		wg.Wait()
		within(t, "bytes", m.bytes[:], totalBytes)
		within(t, "requests", m.requests[:], totalRequests)
	})
}

// within holds every window against the budget, with the second that may be saved up.
func within(t *testing.T, what string, spent []int64, budget int64) {
	t.Helper()
	for _, window := range []int{1, 5, 10, 30, 120} {
		var sum int64
		for i := range spent {
			sum += spent[i]
			if i >= window {
				sum -= spent[i-window]
			}
			if most := budget * int64(window+2); sum > most { // and one for the seconds' edges
				t.Fatalf("%s: %d in the %d s before second %d, at most %d are allowed", what, sum, window, i, most)
			}
		}
	}
}

// TestBudgetOfALargePiece: more than a second's share is waited for, and ends with ctx.
func TestBudgetOfALargePiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cat := &leases{ends: map[string]time.Time{}, away: map[string]bool{}}
		b, err := NewBudget(BudgetDeps{ID: "a", Catalog: cat, Clock: time.Now}, Limits{Bytes: 1000})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := b.Spend(t.Context(), 100_000, 1_000_000); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 99*time.Second || took > 101*time.Second {
			t.Fatalf("100 seconds' worth took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := b.Spend(ctx, 100_000, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v, want the end of ctx", err)
		}
		if s := b.summary(); s.Auditors != 1 || s.BytesPerSecond != 1000 || s.WaitedSeconds < 99 {
			t.Fatalf("%+v", s)
		}
	})
}

// TestBudgetBoundsBatches: a share moves a batch within its deadline, in and out, beside
// its other movers and with another auditor joining meanwhile.
func TestBudgetBoundsBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cat := &leases{ends: map[string]time.Time{}, away: map[string]bool{}}
		deps := BudgetDeps{ID: "a", Catalog: cat, Clock: time.Now, Movers: Config{Concurrency: 1}.Movers()}
		b, err := NewBudget(deps, Limits{Bytes: 16_000})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.BytesWithin(100 * time.Second); got != 100_000 {
			t.Fatalf("%d bytes, want a 16th of 100 s' worth", got)
		}
		if _, err := cat.RegisterAuditor(t.Context(), "b", time.Hour); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Register(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := b.BytesWithin(100 * time.Second); got != 50_000 {
			t.Fatalf("%d bytes, want half of it for one of two auditors", got)
		}
		free, err := NewBudget(deps, Limits{Requests: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := free.BytesWithin(time.Second); got != 0 {
			t.Fatalf("%d bytes of a budget without a bound on them", got)
		}
	})
}
