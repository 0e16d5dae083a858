//go:build unix

package soak

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/strandline/strandline/objstore"
)

// Report is what a run did and found.
type Report struct {
	Seed     uint64
	Soaked   time.Duration // that the faults went on
	Took     time.Duration
	Rows     int64 // acknowledged
	Read     int64 // rows read and compared while it ran
	Judged   int64 // rows read and compared at the end
	Excused  int64 // acknowledged as local, and out of the history with a disk or a taker
	Salvaged int64 // of those, brought back from a disk that still was there
	Counts   map[string]int
	Stopped  time.Duration // that processes stood still
	Settled  int           // settled objects that refs named at some time
	Reaped   int           // of those, gone at the end
	Slots    int64         // absorbed
	Requests map[objstore.Op]int
	Left     map[string]int // objects at the end, by kind
	Findings []string
	Events   []string
	Dir      string

	mu sync.Mutex
}

func newReport(o Options) *Report {
	return &Report{Seed: o.Seed, Dir: o.Dir, Counts: map[string]int{}, Left: map[string]int{}}
}

func (r *Report) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Counts[what]++
}

func (r *Report) stalled(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Stopped += d
	r.Counts["stall"]++
}

func (r *Report) read(rows int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Read += rows
}

// soaked is called when the last fault is over.
func (r *Report) soaked(x *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Soaked = time.Since(x.begun)
}

// gather takes over what the run kept.
func (r *Report) gather(x *run) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Took, r.Findings, r.Events = time.Since(x.begun), x.findings, x.events
	x.ledger.mu.Lock()
	defer x.ledger.mu.Unlock()
	r.Rows = x.ledger.rows
	if x.site != nil && x.site.proxy != nil {
		r.Requests = x.site.proxy.Counts()
	}
	if x.watch != nil {
		r.Settled = len(x.watch.settled)
	}
}

// Kills is how many processes were killed, the server included.
func (r *Report) Kills() (n int) {
	for what, k := range r.Counts {
		if strings.HasPrefix(what, "kill") || strings.HasPrefix(what, "lose") || strings.HasPrefix(what, "take") {
			n += k
		}
	}
	return n
}

func (r *Report) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("seed %d: %v of faults, %v in all", r.Seed, r.Soaked.Round(time.Second), r.Took.Round(time.Second))
	line("rows: %d acknowledged (%.0f/s), %d compared meanwhile, %d at the end", r.Rows, float64(r.Rows)/max(r.Soaked.Seconds(), 1), r.Read, r.Judged)
	line("rows that a lost disk or a taker cost (all acknowledged as local): %d, %d of them salvaged", r.Excused, r.Salvaged)
	line("kills %d, stalls %d (%v in all), takeovers %d", r.Kills(), r.Counts["stall"], r.Stopped.Round(time.Second), r.Counts["takeover"])
	line("slots absorbed %d, settled objects %d, reaped %d", r.Slots, r.Settled, r.Reaped)
	for _, what := range slices.Sorted(maps.Keys(r.Counts)) {
		line("  %-22s %d", what, r.Counts[what])
	}
	line("requests:%s", listed(r.Requests))
	line("left:%s", listed(r.Left))
	return b.String()
}

func listed[K ~string](m map[K]int) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		name := string(k)
		if name == "" {
			name = "other"
		}
		fmt.Fprintf(&b, " %s %d", name, m[k])
	}
	return b.String()
}

// failure tells of the findings, and what was done before them.
func (r *Report) failure() error {
	return errors.New("findings:\n" + strings.Join(r.Findings, "\n") +
		"\nthe last things done:\n" + strings.Join(r.Events, "\n") +
		fmt.Sprintf("\nseed %d; logs of every process are in %s/logs", r.Seed, r.Dir))
}
