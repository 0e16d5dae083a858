package deploycheck

import (
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
)

const (
	rulesFile  = "../../deploy/prometheus/rules.yaml"
	runbook    = "../../docs/operations.md"
	runbookURL = "https://github.com/strandline/strandline/blob/main/docs/operations.md#"
	metricsDoc = "../../docs/telemetry.md"
	dashboard  = "../../deploy/grafana/strandline.json"
)

// alert is a rule as the tests look at it.
type alert struct {
	name, expr  string
	wait        time.Duration
	severity    string
	annotations map[string]string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	groups, errs := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, newParser(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil {
		t.FailNow()
	}
	var out []alert
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			out = append(out, alert{r.Alert, r.Expr, time.Duration(r.For), r.Labels["severity"], r.Annotations})
		}
	}
	return out
}

var heading = regexp.MustCompile(`(?m)^### (Strandline\w+)$`)

// TestRunbook: each alert has its section with all of its parts, and each section its alert.
func TestRunbook(t *testing.T) {
	page := read(t, runbook)
	sections := map[string]string{}
	all := heading.FindAllStringSubmatchIndex(page, -1)
	for i, m := range all {
		end := len(page)
		if i+1 < len(all) {
			end = all[i+1][0]
		}
		sections[page[m[2]:m[3]]] = page[m[1]:end]
	}
	list := alerts(t)
	if len(list) < 20 {
		t.Fatalf("only %d alerts", len(list))
	}
	for _, a := range list {
		body, ok := sections[a.name]
		if !ok {
			t.Errorf("%s has no section", a.name)
		}
		for _, part := range []string{"**Means.**", "**Look at.**", "**Do.**", "**Do not.**"} {
			if !strings.Contains(body, part) {
				t.Errorf("%s: no %s", a.name, part)
			}
		}
		if want := runbookURL + strings.ToLower(a.name); a.annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url %q, want %q", a.name, a.annotations["runbook_url"], want)
		}
		if a.annotations["summary"] == "" || a.severity != "critical" && a.severity != "warning" {
			t.Errorf("%s: summary %q, severity %q", a.name, a.annotations["summary"], a.severity)
		}
		delete(sections, a.name)
	}
	for name := range sections {
		t.Errorf("%s has a section and is no alert", name)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
