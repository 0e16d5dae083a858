package sim

import (
	"fmt"
	"hash/fnv"
	"io"
	"time"
)

// tailMax is how much of the end of a trace a failure shows.
const tailMax = 400

// trace is what happened, in order. Sim.mu guards it.
type trace struct {
	all   io.Writer // nil: only the tail is kept
	lines []entry   // a ring
	n     int
	hash  uint64
	began time.Time
}

type entry struct {
	step int
	at   time.Duration
	who  string
	what string
	key  string
	fate Fault
}

func (e *entry) String() string {
	s := fmt.Sprintf("%6d %12v %-5s %s %s", e.step, e.at, e.who, e.what, e.key)
	if e.fate != FaultNone {
		s += " ** " + string(e.fate)
	}
	return s
}

// add takes in a step.
func (t *trace) add(c *call, f fate) {
	if c.inline {
		t.aside(c, f)
		return
	}
	t.line(entry{who: c.p.name, what: c.what, key: c.key, fate: f.kind}, false)
}

// aside takes in what happened at its own time: its place among the steps of one moment
// is not the seed's to say.
func (t *trace) aside(c *call, f fate) {
	t.line(entry{who: c.p.name, what: c.what, key: c.key, fate: f.kind}, true)
}

// note takes in an event.
func (t *trace) note(who, what, detail string) {
	t.line(entry{who: who, what: "-- " + what, key: detail}, false)
}

func (t *trace) line(e entry, aside bool) {
	e.at = time.Since(t.began)
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %s %s %s %s", e.at, e.who, e.what, e.key, e.fate)
	if aside {
		t.hash += h.Sum64()
	} else {
		t.hash = t.hash*1099511628211 + h.Sum64()
	}
	t.n++
	e.step = t.n
	if t.all != nil {
		_, _ = fmt.Fprintln(t.all, e.String())
	}
	if len(t.lines) < tailMax {
		t.lines = append(t.lines, e)
		return
	}
	t.lines[(t.n-1)%tailMax] = e
}

// tail is the last lines.
func (t *trace) tail(n int) []string {
	n = min(n, len(t.lines))
	out := make([]string, 0, n)
	for i := t.n - n; i < t.n; i++ {
		out = append(out, t.lines[i%tailMax].String())
	}
	return out
}
