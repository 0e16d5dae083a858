package deploycheck

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// deployment is what its processes served, scrape after scrape, as promqltest wants it.
type deployment struct {
	series  map[string][]string
	scrapes int
}

// deploy builds the product, runs it, gives it rows, and scrapes it until every duty that
// comes by itself has worked.
func deploy(t *testing.T) *deployment {
	t.Helper()
	dir, bin := t.TempDir(), product(t)
	data := filepath.Join(dir, "data")
	up := process(t, bin, "up", "--dir", data, "--shards", "2", "--http", "127.0.0.1:0", "--segment-age", "1s", "--settle-age", "0s",
		"--auditor-read-grace", "1s", "--auditor-orphan-grace", "5s")
	cache := process(t, bin, "cache", "--listen", "127.0.0.1:0", "--cache-dir", filepath.Join(dir, "cache"), "--cache-bytes", "64MiB",
		"--store", "standard=file://"+filepath.Join(data, "bucket"))
	d := &deployment{series: map[string][]string{}}
	deadline := time.Now().Add(180 * time.Second)
	for settled := false; d.scrapes < 8 || !settled; {
		if time.Now().After(deadline) {
			t.Fatal("nothing was settled in 180 s")
		}
		for s := range 4 {
			post(t, fmt.Sprintf("%s/v1/streams/s-%d/rows", up, s), "a row\nanother\n")
		}
		post(t, up+"/v1/streams/s-0/rows?ack=shared", "a shared row\n")
		get(t, up+"/v1/streams/s-0/rows")
		d.take(scrape(t, up), "up")
		d.take(scrape(t, cache), "cache")
		d.scrapes++
		settled = d.last(`strandline_duty_items_total{duty="settle",instance="up"}`) > 0 && d.last(`strandline_duty_items_total{duty="trim-check",instance="up"}`) > 0
	}
	return d
}

// product builds it.
func product(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "strandline")
	build := exec.Command("go", "build", "-o", bin, "./cmd/strandline")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}

// process runs until the test ends, and returns the address that it says.
func process(t *testing.T, bin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(bin, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			b, _ := os.ReadFile(log.Name())
			t.Errorf("%s: %v\n%s", args[0], err, b)
		}
		_ = log.Close()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return url
		}
	}
	b, _ := os.ReadFile(log.Name())
	t.Fatalf("%s says no address: %s", args[0], b)
	return ""
}

func post(t *testing.T, url, body string) {
	t.Helper()
	r, err := http.Post(url, "text/plain", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if r.StatusCode/100 != 2 {
		t.Fatalf("%s: %d %s", url, r.StatusCode, b)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v %s", url, r.StatusCode, err, b)
	}
	return string(b)
}

func scrape(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(get(t, url+"/metrics")))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// take adds one sample of each series; one that is new was not there before.
func (d *deployment) take(families map[string]*dto.MetricFamily, instance string) {
	for name, f := range families {
		for _, m := range f.Metric {
			switch {
			case m.Counter != nil:
				d.add(name, m, instance, m.Counter.GetValue())
			case m.Gauge != nil:
				d.add(name, m, instance, m.Gauge.GetValue())
			case m.Histogram != nil:
				d.add(name+"_count", m, instance, float64(m.Histogram.GetSampleCount()))
				d.add(name+"_sum", m, instance, m.Histogram.GetSampleSum())
				for _, b := range m.Histogram.Bucket {
					d.add(name+"_bucket", m, instance, float64(b.GetCumulativeCount()), "le", fmt.Sprint(b.GetUpperBound()))
				}
			}
		}
	}
}

func (d *deployment) add(name string, m *dto.Metric, instance string, v float64, more ...string) {
	var labels []string
	for _, l := range m.Label {
		labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	labels = append(labels, fmt.Sprintf("instance=%q", instance))
	for i := 0; i+1 < len(more); i += 2 {
		labels = append(labels, fmt.Sprintf("%s=%q", more[i], more[i+1]))
	}
	key := name + "{" + strings.Join(labels, ",") + "}"
	have := d.series[key]
	for len(have) < d.scrapes {
		have = append(have, "_")
	}
	d.series[key] = append(have, fmt.Sprint(v))
}

func (d *deployment) last(key string) (v float64) {
	if s := d.series[key]; len(s) > 0 {
		_, _ = fmt.Sscan(s[len(s)-1], &v)
	}
	return v
}
