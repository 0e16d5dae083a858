package deploycheck

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// metric is a row of the documents' table, which a test of the product holds against what
// processes serve.
type metric struct {
	histogram bool
	labels    []string
}

var tableRow = regexp.MustCompile("(?m)^\\| `(strandline_[a-z_]+)` \\| (\\w+) \\| [^|]* \\| ([^|]*) \\|")

func metrics(t *testing.T) map[string]metric {
	t.Helper()
	out := map[string]metric{}
	for _, m := range tableRow.FindAllStringSubmatch(read(t, metricsDoc), -1) {
		x := metric{histogram: m[2] == "histogram"}
		if labels := strings.TrimSpace(m[3]); labels != "–" {
			x.labels = strings.Split(labels, ", ")
		}
		if x.histogram {
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				y := x
				if suffix == "_bucket" {
					y.labels = append(slices.Clone(x.labels), "le")
				}
				out[m[1]+suffix] = y
			}
			continue
		}
		out[m[1]] = x
	}
	if len(out) < 50 {
		t.Fatalf("only %d metrics in %s", len(out), metricsDoc)
	}
	return out
}

// foreign metrics are Prometheus's own, and client_golang's.
func foreign(name string) bool {
	return name == "up" || slices.Contains([]string{"process_resident_memory_bytes", "process_cpu_seconds_total", "go_goroutines"}, name)
}

// checkNames holds the selectors of an expression against the table: names, and labels.
func checkNames(t *testing.T, known map[string]metric, where, expr string) {
	t.Helper()
	parsed, err := newParser().ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		m, ok := known[v.Name]
		if !ok && !foreign(v.Name) {
			t.Errorf("%s: no process serves %s", where, v.Name)
			return nil
		}
		for _, l := range v.LabelMatchers {
			own := l.Name == "__name__" || l.Name == "instance" || l.Name == "job"
			if !own && !slices.Contains(m.labels, l.Name) {
				t.Errorf("%s: %s has no label %s", where, v.Name, l.Name)
			}
		}
		return nil
	})
}

func TestRuleNames(t *testing.T) {
	known := metrics(t)
	for _, a := range alerts(t) {
		checkNames(t, known, a.name, a.expr)
	}
}

// TestNamesAreLookedAt: the check itself notices what is not there.
func TestNamesAreLookedAt(t *testing.T) {
	known := metrics(t)
	for _, wrong := range []string{`strandline_no_such > 0`, `strandline_ready{shard="1"}`, `sum(`} {
		if !fails(func(t *testing.T) { checkNames(t, known, "here", wrong) }) {
			t.Errorf("%s was taken", wrong)
		}
	}
}

// fails runs a check on a test of its own.
func fails(check func(*testing.T)) bool {
	inner := &testing.T{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(inner)
	}()
	<-done
	return inner.Failed()
}
