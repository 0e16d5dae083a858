package auditor

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/orphan"
)

// DutySummary is what one duty did.
type DutySummary struct {
	Started     int              `json:"started"` // passes that had something to do
	Completed   int              `json:"completed"`
	Failed      int              `json:"failed"` // passes or markers that ended in an error
	Items       int              `json:"items"`
	Outcomes    map[string]int   `json:"outcomes"`
	Kept        map[string]int   `json:"kept"` // what stays, by reason
	Bytes       int64            `json:"bytes"`
	Through     int64            `json:"bytes_through"`     // moved through this process
	ServerSide  int64            `json:"bytes_server_side"` // moved within the store
	Seconds     float64          `json:"seconds"`
	Requests    map[string]int64 `json:"requests"` // of the stores during its passes; duties at work at once count each other's
	LastSuccess time.Time        `json:"last_success"`
	LastError   string           `json:"last_error,omitempty"`
	OldestDebt  time.Time        `json:"oldest_debt"`             // due time of its oldest marker; zero: none stands
	DebtAge     float64          `json:"oldest_debt_age_seconds"` // how long that has been due, by the database's clock
	Standing    int64            `json:"markers_standing"`        // of this duty, as last read
	Due         int64            `json:"markers_due"`             // of them
}

// Summary is what an auditor did so far.
type Summary struct {
	Duties map[string]DutySummary `json:"duties"`
	Rounds int                    `json:"rounds"`
	Held   string                 `json:"held,omitempty"` // why deletes are stopped
	// Holds are all reasons why deletes are held, of those that Holds lists.
	Holds    []string         `json:"holds,omitempty"`
	Auditors int              `json:"auditors"`      // whose lease lives, as last read
	Garbage  map[string]int64 `json:"garbage_bytes"` // that this auditor knows of, by what it waits for
	Lost     int              `json:"lost_objects"`  // that live refs name and no bucket has, as last looked at
	DryRun   []orphan.Line    `json:"dry_run,omitempty"`
	Budget   *BudgetSummary   `json:"budget,omitempty"`
}

// ledger gathers the summary. It is safe for concurrent use.
type ledger struct {
	mu     sync.Mutex // all below
	duties map[string]*DutySummary
	rounds int
	held   string

	watched watched
}

func newLedger() *ledger {
	return &ledger{duties: map[string]*DutySummary{}, watched: watched{holds: map[string]time.Time{}, garbage: map[string]find{}}}
}

func (l *ledger) auditors(live int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched.live = live
}

// of returns a duty's entry; l.mu is held.
func (l *ledger) of(duty string) *DutySummary {
	d := l.duties[duty]
	if d == nil {
		d = &DutySummary{Outcomes: map[string]int{}, Kept: map[string]int{}, Requests: map[string]int64{}}
		l.duties[duty] = d
	}
	return d
}

// note changes a duty's entry.
func (l *ledger) note(duty string, change func(*DutySummary)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l.of(duty))
}

// outcome counts one item. One that leaves its object in place is kept under
// that outcome as the reason.
func (l *ledger) outcome(duty, outcome string, kept bool) {
	l.note(duty, func(d *DutySummary) {
		d.Items++
		d.Outcomes[outcome]++
		if kept {
			d.Kept[outcome]++
		}
	})
}

// count adds n to an outcome that is not an item of its own.
func (l *ledger) count(duty, outcome string, n int) {
	if n > 0 {
		l.note(duty, func(d *DutySummary) { d.Outcomes[outcome] += n })
	}
}

func (l *ledger) keep(duty, reason string, n int) {
	if n > 0 {
		l.note(duty, func(d *DutySummary) { d.Kept[reason] += n })
	}
}

func (l *ledger) fail(duty string, err error) {
	l.note(duty, func(d *DutySummary) {
		d.Failed++
		d.LastError = err.Error()
	})
}

func (l *ledger) hold(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = why
}

func (l *ledger) round() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rounds++
}

// debts enters the oldest debt of each duty, and forgets those that are paid.
func (l *ledger) debts(owed *catalog.Debts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.duties {
		d.OldestDebt, d.DebtAge, d.Standing, d.Due = time.Time{}, 0, 0, 0
	}
	for duty, count := range owed.Markers {
		if count.Standing > 0 {
			d := l.of(string(duty))
			d.OldestDebt, d.DebtAge = count.Oldest, max(owed.Now.Sub(count.Oldest), 0).Seconds()
			d.Standing, d.Due = count.Standing, count.Due
		}
	}
}

func (l *ledger) snapshot(now time.Time, holdLife time.Duration) Summary {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Summary{Duties: make(map[string]DutySummary, len(l.duties)), Rounds: l.rounds, Held: l.held}
	for name, d := range l.duties {
		c := *d
		c.Outcomes, c.Kept, c.Requests = maps.Clone(d.Outcomes), maps.Clone(d.Kept), maps.Clone(d.Requests)
		s.Duties[name] = c
	}
	l.show(&s, now, holdLife)
	return s
}

// requests sums what the stores of all classes counted.
func requests(classes objstore.Classes) map[objstore.Op]int64 {
	sum := map[objstore.Op]int64{}
	seen := map[*objstore.Store]bool{}
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		for _, store := range classes[class] {
			if seen[store] {
				continue
			}
			seen[store] = true
			for op, n := range store.Counters().Requests {
				sum[op] += n
			}
		}
	}
	return sum
}
