package telemetry

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/strandline/strandline/internal/verbs"
)

// TestTableIsServed holds the table and what a scrape has against each other, both ways:
// name, type, labels, help.
func TestTableIsServed(t *testing.T) {
	now := time.Now()
	p := start(t, Config{OTLP: "http://127.0.0.1:1", Interval: time.Hour, Version: "v", Now: func() time.Time { return now }})
	p.Watch(everything(t, now))
	passed(t, p)
	cat := verb(t, p, nil)
	if cat != nil {
		t.Fatal(cat)
	}
	served := scrape(t, p)
	for _, g := range Table() {
		for i := range g.Metrics {
			m := &g.Metrics[i]
			f := served[m.Name]
			if f == nil {
				t.Errorf("%s is in the table and not served", m.Name)
				continue
			}
			if got := strings.ToLower(f.GetType().String()); got != string(m.Kind) {
				t.Errorf("%s is a %s, the table says %s", m.Name, got, m.Kind)
			}
			if f.GetHelp() != m.Help {
				t.Errorf("%s: help %q, the table says %q", m.Name, f.GetHelp(), m.Help)
			}
			if got, want := labelNames(f), sorted(m.Labels); !slices.Equal(got, want) {
				t.Errorf("%s has labels %v, the table says %v", m.Name, got, want)
			}
		}
	}
	for name := range served {
		if _, ok := Lookup(name); isOurs(name) && !ok {
			t.Errorf("%s is served and not in the table", name)
		}
	}
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes"} {
		if served[name] == nil {
			t.Errorf("%s is not served", name)
		}
	}
}

func verb(t *testing.T, p *Provider, err error) error {
	t.Helper()
	return p.Verb(t.Context(), verbs.Verb{Name: "Plan"}, func(contextT) error { return err })
}

func labelNames(f *dto.MetricFamily) []string {
	names := []string{}
	for _, l := range f.Metric[0].Label {
		names = append(names, l.GetName())
	}
	return sorted(names)
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// lintExcused are findings that stand for a reason.
var lintExcused = map[string]string{
	"strandline_wal_segment_count": `non-histogram and non-summary metrics should not have "_count" suffix`, // seed 001's name
}

func TestPromlint(t *testing.T) {
	now := time.Now()
	p := start(t, Config{Now: func() time.Time { return now }})
	p.Watch(everything(t, now))
	passed(t, p)
	var ours []*dto.MetricFamily
	for name, f := range scrape(t, p) {
		if isOurs(name) {
			ours = append(ours, f)
		}
	}
	problems, err := promlint.NewWithMetricFamilies(ours).Lint()
	if err != nil {
		t.Fatal(err)
	}
	met := map[string]bool{}
	for _, x := range problems {
		if lintExcused[x.Metric] == x.Text {
			met[x.Metric] = true
			continue
		}
		t.Errorf("%s: %s", x.Metric, x.Text)
	}
	for name := range lintExcused {
		if !met[name] {
			t.Errorf("%s is excused for nothing", name)
		}
	}
}

// document is the page of the metrics.
const document = "../../docs/telemetry.md"

var tableRow = regexp.MustCompile("(?m)^\\| `(strandline_[a-z_]+)` \\|.*$")

// TestDocument holds the page against the table, both ways. -update is not needed: what is
// missing is printed as it has to stand.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, m := range tableRow.FindAllStringSubmatch(string(page), -1) {
		rows[m[1]] = m[0]
	}
	for _, g := range Table() {
		if !strings.Contains(string(page), "### "+g.Title) {
			t.Errorf("no heading %q", g.Title)
		}
		for i := range g.Metrics {
			m := &g.Metrics[i]
			if want := DocRow(&g, m); rows[m.Name] != want {
				t.Errorf("the page has\n%s\nfor %s; it is\n%s", rows[m.Name], m.Name, want)
			}
			delete(rows, m.Name)
		}
	}
	for name := range rows {
		t.Errorf("%s is on the page and not in the table", name)
	}
	if t.Failed() && os.Getenv("STRANDLINE_PRINT_TABLE") != "" {
		fmt.Println(DocTable())
	}
}
