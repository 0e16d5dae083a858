package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/strandline/strandline/internal/telemetry"
)

// scraped parses what a process serves, as Prometheus does.
func scraped(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// seriesOf sums a metric's values over the series with all of these labels.
func seriesOf(families map[string]*dto.MetricFamily, name string, labels ...string) (sum float64, n int) {
	for _, m := range families[name].GetMetric() {
		var have []string
		for _, l := range m.Label {
			have = append(have, l.GetName()+"="+l.GetValue())
		}
		if slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(have, l) }) {
			continue
		}
		n++
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum, n
}

// TestMetricsOfRealProcesses holds the table against what each command serves, both ways:
// nothing else, and all that it says of that command.
func TestMetricsOfRealProcesses(t *testing.T) {
	dir := t.TempDir()
	bucket := "standard=file://" + filepath.Join(dir, "bucket")
	tier := []string{"--catalog", "sqlite://" + filepath.Join(dir, "catalog.db"), "--store", bucket}
	writer := start(t, append([]string{"writer", "--dir", filepath.Join(dir, "w")}, tier...)...)
	for i := range 4 {
		cli(t, "row\n", "append", fmt.Sprintf("s-%d", i), "--server", writer.url, "--ack", "shared").want(t, exitOK)
	}
	auditor := start(t, append([]string{"auditor", "--settle-age", "0s"}, tier...)...)
	reader := start(t, append([]string{"reader"}, tier...)...)
	cli(t, "", "cat", "s-1", "--server", reader.url).want(t, exitOK)
	cache := serve(t, "cache", "--listen", "127.0.0.1:0", "--cache-dir", filepath.Join(dir, "cache"), "--cache-bytes", "64MiB", "--store", bucket)
	up := startUp(t, filepath.Join(dir, "up"), "--settle-age", "0s", "--object-cache-instances", strings.TrimPrefix(cache.url, "http://"))
	cli(t, "row\n", "append", "s", "--server", up.url, "--ack", "shared").want(t, exitOK)
	processes := map[string]*running{telemetry.Writer: writer, telemetry.Auditor: auditor, telemetry.Reader: reader, telemetry.Cache: cache, telemetry.Up: up}
	for command, p := range processes {
		t.Run(command, func(t *testing.T) {
			var families map[string]*dto.MetricFamily
			for end := time.Now().Add(30 * time.Second); ; {
				families = scraped(t, p.url)
				missing := missingOf(command, families)
				if len(missing) == 0 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%s does not serve %v", command, missing)
				}
			}
			for name, f := range families {
				m, known := telemetry.Lookup(name)
				if strings.HasPrefix(name, "strandline_") && (!known || m.Help != f.GetHelp() || !strings.EqualFold(string(m.Kind), f.GetType().String())) {
					t.Errorf("%s serves %s (%s) as the table does not have it", command, name, f.GetType())
				}
			}
			if v, n := seriesOf(families, "strandline_ready"); v != 1 || n != 1 {
				t.Errorf("ready: %v of %d", v, n)
			}
		})
	}
	if rows, _ := seriesOf(scraped(t, writer.url), "strandline_wal_rows_total"); rows != 4 {
		t.Errorf("the writer took %v rows", rows)
	}
	for _, p := range processes {
		p.end(t)
	}
}

// missingOf are the metrics that the table promises of a command and that are not there.
// Those of work are there once there was some.
func missingOf(command string, families map[string]*dto.MetricFamily) (missing []string) {
	for _, g := range telemetry.Table() {
		if !slices.Contains(g.From, command) {
			continue
		}
		for i := range g.Metrics {
			m := &g.Metrics[i]
			clientOfCache := strings.HasPrefix(m.Name, "strandline_object_cache_client_") && command == telemetry.Up
			if families[m.Name] == nil && (!m.Optional() || clientOfCache) {
				missing = append(missing, m.Name)
			}
		}
	}
	return missing
}

// TestTelemetryPushOfAProcess: a process whose collector is away serves, says so once, and
// ends in time; one whose collector is there pushes.
func TestTelemetryPushOfAProcess(t *testing.T) {
	got := make(chan string, 1024)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case got <- r.URL.Path:
		default:
		}
	}))
	defer collector.Close()
	there := startUp(t, t.TempDir(), "--telemetry-otlp", collector.URL, "--telemetry-interval", "1s")
	cli(t, "row\n", "append", "s", "--server", there.url, "--ack", "shared").want(t, exitOK)
	there.end(t)
	paths := map[string]int{}
	for len(got) > 0 {
		paths[<-got]++
	}
	if paths["/v1/metrics"] == 0 || paths["/v1/traces"] == 0 || len(paths) != 2 {
		t.Errorf("pushed to %v", paths)
	}
	away := startUp(t, t.TempDir(), "--telemetry-otlp", "http://127.0.0.1:1", "--telemetry-interval", "1s")
	cli(t, "row\n", "append", "s", "--server", away.url, "--ack", "shared").want(t, exitOK)
	for end := time.Now().Add(time.Minute); ; {
		if n, _ := seriesOf(scraped(t, away.url), "strandline_telemetry_exports_total", "outcome=failed", "signal=metrics"); n >= 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no push failed")
		}
	}
	began := time.Now()
	away.end(t)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the end took %v", took)
	}
	if n := strings.Count(away.errs.String(), "telemetry is not pushed"); n == 0 || n > 2 {
		t.Errorf("said %d times: %s", n, away.errs)
	}
}

// TestTelemetryFlags: what cannot be meant is refused before anything is made.
func TestTelemetryFlags(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{{"--telemetry-otlp", "collector:4318"}, {"--telemetry-interval", "0s"}, {"--telemetry-otlp", "http://u:secret@c"}} {
		r := cli(t, "", append([]string{"up", "--dir", dir}, args...)...)
		r.want(t, exitUsage, args[0])
		if strings.Contains(r.err, "secret") {
			t.Errorf("the secret is said: %s", r.err)
		}
	}
}
