package deploycheck

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
)

// boardModel is as much of Grafana's dashboard JSON as can be wrong.
type boardModel struct {
	Title, UID    string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	Datasource               struct{ Type, UID string }
	Targets                  []target
	FieldConfig              struct {
		Defaults struct{ Unit string }
	}
}

type target struct{ RefID, Expr, LegendFormat string }

func board(t *testing.T) boardModel {
	t.Helper()
	var m boardModel
	d := json.NewDecoder(strings.NewReader(read(t, dashboard)))
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	if len(m.Panels) < 30 {
		t.Fatalf("only %d panels", len(m.Panels))
	}
	return m
}

// filled is an expression as Grafana sends it.
func filled(expr string) string {
	return strings.NewReplacer("$__rate_interval", "2m", "$instance", ".*").Replace(expr)
}

// TestDashboardModel: ids, places that do not overlap, units, legends that name labels.
func TestDashboardModel(t *testing.T) {
	m := board(t)
	if m.Title == "" || m.UID == "" || m.SchemaVersion < 36 {
		t.Errorf("title %q, uid %q, schema %d", m.Title, m.UID, m.SchemaVersion)
	}
	known := metrics(t)
	ids, taken := map[int]string{}, map[[2]int]string{}
	for _, p := range m.Panels {
		if other, twice := ids[p.ID]; twice || p.ID == 0 {
			t.Errorf("%q and %q have the id %d", p.Title, other, p.ID)
		}
		ids[p.ID] = p.Title
		if p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X < 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%q stands at %+v", p.Title, p.GridPos)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, over := taken[[2]int{x, y}]; over {
					t.Fatalf("%q lies over %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" || p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("%q: %d targets, datasource %q, unit %q", p.Title, len(p.Targets), p.Datasource.UID, p.FieldConfig.Defaults.Unit)
		}
		for _, x := range p.Targets {
			checkNames(t, known, p.Title, filled(x.Expr))
		}
	}
	for _, v := range m.Templating.List {
		if v.Type == "query" && !strings.Contains(v.Definition, "strandline_build_info") {
			t.Errorf("variable %s asks %q", v.Name, v.Definition)
		}
	}
}

// nothingYet are panels of which a deployment that is well has nothing to show.
var nothingYet = map[string]string{
	"Cache hits":            "nobody reads through the instance here",
	"Answers other than ok": "every verb may have been fine",
}

// TestDashboardOverARealScrape evaluates every query over what real processes serve: up,
// with rows on their way through every duty, and an instance of the object cache.
func TestDashboardOverARealScrape(t *testing.T) {
	x := deploy(t)
	var lines []string
	for name, values := range x.series {
		lines = append(lines, name+" "+strings.Join(values, " "))
	}
	storage := promqltest.LoadedStorage(t, load(lines...))
	e := engine(t)
	at := moment(step * time.Duration(x.scrapes-1))
	var text strings.Builder
	for _, p := range board(t).Panels {
		for _, q := range p.Targets {
			_, hits, last := window(t, e, storage, filled(q.Expr), at, at)
			if _, excused := nothingYet[p.Title]; hits == 0 && !excused {
				t.Errorf("%q %s has nothing: %s", p.Title, q.RefID, q.Expr)
			}
			for _, s := range last {
				for _, label := range legendLabels(q.LegendFormat) {
					if s.Metric.Get(label) == "" {
						t.Errorf("%q %s: the legend names %s, which %v lacks", p.Title, q.RefID, label, s.Metric)
					}
				}
				fmt.Fprintf(&text, "%-28s %v = %v\n", p.Title, s.Metric, s.F)
			}
		}
	}
	excused := map[string]bool{"StrandlineDutyFailing": true, "StrandlineDown": true, "StrandlineDiskNearlyFull": nearlyFull(t)}
	for _, a := range alerts(t) {
		if _, hits, last := window(t, e, storage, a.expr, at, at); hits > 0 && !excused[a.name] {
			t.Errorf("%s is pending on a deployment that is well: %v", a.name, last)
		}
	}
	t.Log("\n" + text.String())
}

// nearlyFull says that the disk which the processes had really is: then the alert is right.
func nearlyFull(t *testing.T) bool {
	t.Helper()
	var disk syscall.Statfs_t
	if err := syscall.Statfs(t.TempDir(), &disk); err != nil {
		t.Fatal(err)
	}
	return float64(disk.Bavail)/float64(disk.Blocks) < 0.11 // others write meanwhile
}

func legendLabels(format string) (out []string) {
	for _, part := range strings.Split(format, "{{")[1:] {
		name, _, _ := strings.Cut(part, "}}")
		out = append(out, strings.TrimSpace(name))
	}
	return out
}
