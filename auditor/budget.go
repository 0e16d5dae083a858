package auditor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/strandline/strandline/settle"
)

// Budget keeps the movers of all auditors of a deployment together within its bounds;
// it is the settle.Budget of one of them.
//
//	share = total / auditors whose lease lives
//
// A share is believed for a third of a lease, then the catalog is asked again: whoever
// cannot ask stops spending. Whoever joins waits that long before it spends, so that
// what the others held before they could have noticed is over by then. So the shares
// never sum up to more than the total, whoever joins, leaves, dies or stalls. A second's
// worth of a share may be saved up, and is spent at once.
//
// Safety does not rest on it. It is safe for concurrent use.
type Budget struct {
	deps   BudgetDeps
	limits Limits

	bytes, requests *rate.Limiter // nil: not bounded

	mu     sync.Mutex // all below
	live   int
	asked  time.Time // when the share was last asked for, from before the question
	from   time.Time // no spending before
	waited time.Duration
}

var _ settle.Budget = (*Budget)(nil)

// Limits of a deployment; 0: no bound.
type Limits struct {
	Bytes    int64 // a second, through the auditors' processes
	Requests int64 // a second
}

// Validate refuses what cannot be meant.
func (l Limits) Validate() error {
	if l.Bytes < 0 || l.Requests < 0 {
		return fmt.Errorf("auditor: budgets of %d bytes and %d requests a second: give positive ones, or 0 for no bound", l.Bytes, l.Requests)
	}
	return nil
}

// Registrar counts the auditors; catalog.Catalog is one.
type Registrar interface {
	RegisterAuditor(ctx context.Context, id string, lease time.Duration) (live int, err error)
}

// BudgetDeps are what a Budget works with.
type BudgetDeps struct {
	ID      string // the auditor's
	Catalog Registrar
	Clock   func() time.Time
	Wait    func(ctx context.Context, d time.Duration) error // as Deps.Wait; default: a timer
	Lease   time.Duration                                    // as Config.Lease, of all auditors; default DefaultLease
	// Movers that may be at work at once in this process (see Movers); default 1.
	Movers int
}

// Movers is how many batches an auditor may have under way at once: one of settle, and
// Config.Concurrency of each of the three other policies.
func (c Config) Movers() int { return 1 + 3*c.withDefaults().Concurrency }

// NewBudget makes the budget of one auditor.
func NewBudget(d BudgetDeps, l Limits) (*Budget, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	if d.ID == "" || d.Catalog == nil || d.Clock == nil {
		return nil, errors.New("auditor: BudgetDeps has an empty field: give ID, Catalog and Clock")
	}
	if d.Wait == nil {
		d.Wait = wait
	}
	d.Lease = cmp.Or(d.Lease, DefaultLease)
	d.Movers = cmp.Or(d.Movers, 1)
	b := &Budget{deps: d, limits: l}
	if l.Bytes > 0 {
		b.bytes = rate.NewLimiter(0, 0)
	}
	if l.Requests > 0 {
		b.requests = rate.NewLimiter(0, 0)
	}
	return b, nil
}

// Register renews the auditor's lease and takes its share anew.
func (b *Budget) Register(ctx context.Context) (live int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.register(ctx)
}

// register asks the catalog. b.mu is held.
func (b *Budget) register(ctx context.Context) (int, error) {
	before := b.deps.Clock()
	live, err := b.deps.Catalog.RegisterAuditor(ctx, b.deps.ID, b.deps.Lease)
	if err != nil {
		return 0, err
	}
	after := b.deps.Clock()
	// Our lease may have ended before this call: then others have shared what was ours.
	joins := b.asked.IsZero() || after.Sub(b.asked) >= b.deps.Lease
	live = max(live, 1)
	if joins && live > 1 {
		b.from = after.Add(b.fresh())
	}
	if joins || live != b.live {
		b.divide(after, live, joins)
	}
	b.live, b.asked = live, before
	return live, nil
}

// fresh is how long a share is believed.
func (b *Budget) fresh() time.Duration { return b.deps.Lease / 3 }

// divide sets the limiters to a share. Whoever joins has saved up nothing.
func (b *Budget) divide(now time.Time, live int, joins bool) {
	set := func(l *rate.Limiter, total int64) {
		if l == nil {
			return
		}
		share := rate.Limit(float64(total) / float64(live))
		saved := max(1, int(share))
		l.SetLimitAt(now, share)
		l.SetBurstAt(now, saved)
		if joins {
			l.ReserveN(now, max(0, int(l.TokensAt(now))))
		}
	}
	set(b.bytes, b.limits.Bytes)
	set(b.requests, b.limits.Requests)
}

// Spend implements settle.Budget. A catalog that is away is waited for: nothing could be
// committed meanwhile.
func (b *Budget) Spend(ctx context.Context, bytes int64, requests int) error {
	if b.bytes == nil {
		bytes = 0
	}
	if b.requests == nil {
		requests = 0
	}
	for bytes > 0 || requests > 0 {
		d := b.reserve(ctx, &bytes, &requests)
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if d <= 0 {
			continue
		}
		if err := b.deps.Wait(ctx, d); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// retryShare paces the questions of whoever has no share.
const retryShare = time.Second

// reserve takes what a second's share allows off bytes and requests, and says how long
// to wait for that. It takes nothing while there is no share to take it from.
func (b *Budget) reserve(ctx context.Context, bytes *int64, requests *int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.deps.Clock()
	if b.asked.IsZero() || now.Sub(b.asked) >= b.fresh() {
		if _, err := b.register(ctx); err != nil {
			return b.wait(min(retryShare, b.fresh()))
		}
		now = b.deps.Clock()
	}
	if d := b.from.Sub(now); d > 0 {
		return b.wait(min(d, b.fresh()/2)) // asks again meanwhile: the lease is to be kept
	}
	var d time.Duration
	if n := piece(b.bytes, *bytes); n > 0 {
		d = b.bytes.ReserveN(now, n).DelayFrom(now)
		*bytes -= int64(n)
	}
	if n := piece(b.requests, int64(*requests)); n > 0 {
		d = max(d, b.requests.ReserveN(now, n).DelayFrom(now))
		*requests -= n
	}
	return b.wait(d)
}

// piece is what one reservation takes of n: never more than may be saved up.
func piece(l *rate.Limiter, n int64) int {
	if l == nil || n <= 0 {
		return 0
	}
	return int(min(n, int64(l.Burst())))
}

// wait counts a wait. b.mu is held.
func (b *Budget) wait(d time.Duration) time.Duration {
	b.waited += d
	return d
}

// margin of a batch within a deadline: its bytes pass twice, in and out, and another
// auditor may join meanwhile.
const margin = 4

// BytesWithin is the size of a batch that this share moves within d beside all the other
// movers of this process: a small budget makes small batches, not jobs that give up. 0: no
// bound.
func (b *Budget) BytesWithin(d time.Duration) int64 {
	if b.limits.Bytes == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	share := float64(b.limits.Bytes) / float64(max(b.live, 1))
	return max(1, int64(share*d.Seconds())/int64(margin*b.deps.Movers))
}

// BudgetSummary is an auditor's share, for those who look at it.
type BudgetSummary struct {
	Auditors       int     `json:"auditors"`
	BytesPerSecond float64 `json:"bytes_per_second"`    // of this auditor; 0: no bound
	Requests       float64 `json:"requests_per_second"` // likewise
	WaitedSeconds  float64 `json:"waited_seconds"`      // summed over all movers
}

func (b *Budget) summary() *BudgetSummary {
	if b == nil || b.bytes == nil && b.requests == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := float64(max(b.live, 1))
	return &BudgetSummary{b.live, float64(b.limits.Bytes) / n, float64(b.limits.Requests) / n, b.waited.Seconds()}
}
