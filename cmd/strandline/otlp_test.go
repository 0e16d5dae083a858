package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/template"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	callers "github.com/strandline/strandline/client"
	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/segment"
)

// collectorConfig is a Collector with two ways to a writer, by HTTP and by gRPC, each with a
// queue on disk and retries that do not end.
var collectorConfig = template.Must(template.New("").Parse(`
receivers:
  otlp/http: {protocols: {grpc: {endpoint: "{{.HTTPIn}}"}}}
  otlp/grpc: {protocols: {grpc: {endpoint: "{{.GRPCIn}}"}}}
exporters:
  otlp_http:
    endpoint: "http://{{.HTTP}}"
    retry_on_failure: &retry {initial_interval: 100ms, max_interval: 500ms, max_elapsed_time: 0s}
    sending_queue: &queue {storage: file_storage, queue_size: 10000, num_consumers: 10}
  otlp_grpc:
    endpoint: "{{.GRPC}}"
    tls: {insecure: true}
    retry_on_failure: *retry
    sending_queue: *queue
extensions:
  file_storage: {directory: "{{.Dir}}", create_directory: true}
service:
  extensions: [file_storage]
  telemetry: {metrics: {level: none}}
  pipelines:
    logs/http: {receivers: [otlp/http], exporters: [otlp_http]}
    logs/grpc: {receivers: [otlp/grpc], exporters: [otlp_grpc]}
`))

// relay is a Collector between telemetrygen and a writer.
type relay struct {
	HTTPIn, GRPCIn, HTTP, GRPC, Dir string

	config  string
	process *exec.Cmd
	log     *lockedBuffer
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	dir := t.TempDir()
	r := &relay{
		HTTPIn: freeAddress(t), GRPCIn: freeAddress(t), HTTP: freeAddress(t), GRPC: freeAddress(t),
		Dir: filepath.Join(dir, "queue"), config: filepath.Join(dir, "config.yaml"), log: &lockedBuffer{},
	}
	var text bytes.Buffer
	if err := collectorConfig.Execute(&text, r); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.config, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *relay) start(t *testing.T) {
	t.Helper()
	binary := builtTool(t, "collector")
	r.process = exec.Command(binary, "--config", "file:"+r.config)
	r.process.Stdout, r.process.Stderr = r.log, r.log
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	p := r.process
	t.Cleanup(func() {
		if p.ProcessState == nil {
			_ = p.Process.Kill() // waited for below
			_ = p.Wait()
		}
	})
	for _, address := range []string{r.HTTPIn, r.GRPCIn} {
		r.await(t, address)
	}
}

// await returns once somebody listens.
func (r *relay) await(t *testing.T, address string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close() // it said nothing
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the Collector does not listen: %v\n%s", err, r.log)
		}
	}
}

func (r *relay) end(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := r.process.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	if err := r.process.Wait(); err != nil && sig != syscall.SIGKILL {
		t.Fatalf("the Collector: %v\n%s", err, r.log)
	}
}

func builtTool(t *testing.T, name string) string {
	t.Helper()
	binary, err := realstore.Build(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// generate sends n records by telemetrygen, so many a second; 0: at once.
func generate(t *testing.T, endpoint, service string, n, rate int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, builtTool(t, "telemetrygen"), "logs", "--otlp-insecure", "--otlp-endpoint", endpoint, "--service", service,
		"--logs", fmt.Sprint(n), "--rate", fmt.Sprint(rate), "--batch-size", "20").CombinedOutput()
	if err != nil {
		t.Errorf("telemetrygen: %v\n%s", err, out[max(0, len(out)-4000):])
	}
}

// records are a stream's rows, and how many of them are different, by time and all.
func records(t *testing.T, base, stream string) (rows, different int, err error) {
	t.Helper()
	c, err := callers.New(callers.Config{URL: base, Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for row, err := range c.Rows(t.Context(), stream, callers.ReadOptions{}) {
		if err != nil {
			return 0, 0, err
		}
		in := plogotlp.NewExportRequest()
		if err := in.UnmarshalProto(row.Payload); err != nil || in.Logs().LogRecordCount() != 1 {
			t.Fatalf("%s %d is no log record: %v", stream, row.Seq, err)
		}
		rows++
		seen[string(row.Payload)] = true
	}
	return rows, len(seen), nil
}

// awaitRecords waits until the streams have n different records in all.
func awaitRecords(t *testing.T, base string, n int, streams ...string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		all := 0
		for _, s := range streams {
			if _, different, err := records(t, base, s); err == nil { // no such stream yet
				all += different
			}
		}
		if all >= n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d records after a minute", all, n)
		}
	}
}

// TestCollector: telemetrygen sends through an OpenTelemetry Collector, by HTTP and by gRPC,
// and the writer is killed again and again under it, with requests that are durable and not
// answered yet; then the Collector is killed with a queue that it could not send. Every
// record is there, and once.
func TestCollector(t *testing.T) {
	t.Parallel()
	const kills, first, rest = 4, 2000, 300
	binary, dir := buildBinary(t), t.TempDir()
	r := newRelay(t)
	writer := func() *child {
		return startProcess(t, binary, "up", "--dir", dir, "--http", r.HTTP, "--otlp-grpc", r.GRPC, "--log-level", "error",
			// An answer waits for the bucket, so a kill finds rows that are durable without one.
			"--otlp-ack", "shared", "--shared-window", "200ms")
	}
	w := writer()
	r.start(t)
	streams := []string{"by-http", "by-grpc"}
	var senders sync.WaitGroup
	send := func(n, rate int) {
		senders.Go(func() { generate(t, r.HTTPIn, streams[0], n, rate) })
		senders.Go(func() { generate(t, r.GRPCIn, streams[1], n, rate) })
	}
	send(first, 400)
	for kill := range kills {
		awaitRecords(t, w.url, (kill+1)*2*first/(kills+1), streams...)
		_ = w.kill() // "signal: killed" is what was asked for
		w = writer()
	}
	senders.Wait()
	if n := strings.Count(r.log.String(), "Exporting failed. Will retry the request after interval."); n < kills {
		t.Errorf("the Collector saw %d failures of %d kills\n%s", n, kills, r.log)
	}

	_ = w.kill()
	send(rest, 0)
	senders.Wait() // the Collector has said that it has them
	r.end(t, syscall.SIGKILL)
	r.start(t)
	w = writer()
	awaitRecords(t, w.url, 2*(first+rest), streams...)
	r.end(t, syscall.SIGTERM) // what it still has on its way comes before its end
	if err := w.end(syscall.SIGTERM); err != nil {
		t.Errorf("it did not stop cleanly: %v\n%s", err, w.log)
	}

	w = writer() // from the bucket
	for _, s := range streams {
		rows, different, err := records(t, w.url, s)
		if err != nil || rows != first+rest || different != first+rest {
			t.Errorf("%s: %d rows, %d of them different, of %d records: %v", s, rows, different, first+rest, err)
		}
	}
}

// TestOTLPForwards: a request of many streams comes to one of two writers, and again to the
// other: each stream's rows are at its owner, once. While an owner is away, the sender is
// told to come again, though other streams' rows are durable.
func TestOTLPForwards(t *testing.T) {
	tier := shared(t)
	a := startWriter(t, tier, filepath.Join(t.TempDir(), "a"), "--shards", "0-1")
	b := startWriter(t, tier, filepath.Join(t.TempDir(), "b"), "--shards", "2-3")
	logs := plog.NewLogs()
	for s := range segment.Shard(4) {
		rl := logs.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("service.name", streamOf(4, s))
		out := rl.ScopeLogs().AppendEmpty().LogRecords()
		for i := range 5 {
			out.AppendEmpty().SetTimestamp(pcommon.Timestamp(1000 + i))
		}
	}
	for _, base := range []string{a.url, b.url, a.url} {
		if resp := postLogs(t, base, logs); resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", base, resp.Status)
		}
	}
	check := func(base string, shards ...segment.Shard) {
		for _, s := range shards {
			if rows, different, err := records(t, base, streamOf(4, s)); err != nil || rows != 5 || different != 5 {
				t.Errorf("shard %d: %d rows, %d different, %v", s, rows, different, err)
			}
		}
	}
	check(a.url, 0, 1)
	check(b.url, 2, 3)

	b.end(t)
	for _, rl := range logs.ResourceLogs().All() {
		rl.ScopeLogs().At(0).LogRecords().At(0).SetTimestamp(math.MaxInt64)
	}
	for range 2 {
		resp := postLogs(t, a.url, logs)
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Errorf("with an owner away: %s %v", resp.Status, resp.Header)
		}
	}
	if rows, different, err := records(t, a.url, streamOf(4, 0)); err != nil || rows != 10 || different != 6 {
		t.Errorf("shard 0: %d rows, %d different, %v; its own rows were to be taken, once", rows, different, err)
	}
}

func postLogs(t *testing.T, base string, logs plog.Logs) *http.Response {
	t.Helper()
	body, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(base+"/v1/logs", "application/x-protobuf", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // the status is the answer
	return resp
}

func TestOTLPUsage(t *testing.T) {
	dir := t.TempDir()
	for text, args := range map[string][]string{
		"--otlp-grpc":             {"--otlp-grpc", "localhost"},
		"not loopback":            {"--otlp-grpc", "0.0.0.0:4317"},
		"--otlp-stream-attribute": {"--otlp-stream-attribute", ""},
		"--otlp-default-stream":   {"--otlp-default-stream", "~x"},
		"local or shared":         {"--otlp-ack", "soon"},
	} {
		cli(t, "", append([]string{"up", "--dir", dir}, args...)...).want(t, exitUsage, text)
	}
	taken := freeAddress(t)
	up := startUp(t, dir, "--otlp-grpc", taken)
	defer up.end(t)
	cli(t, "", "up", "--dir", t.TempDir(), "--http", "127.0.0.1:0", "--otlp-grpc", taken).want(t, exitFailed, "give another --otlp-grpc")
}
