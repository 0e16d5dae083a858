//go:build unix

package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// realWriter is a writer on this disk, of a bucket and a catalog in memory.
func realWriter(t testing.TB) *localtier.Writer {
	t.Helper()
	cat := memory.New(memory.Options{})
	if _, err := cat.Init(t.Context(), uuid.New()); err != nil {
		t.Fatal(err)
	}
	top, err := cat.EnsureTopology(t.Context(), catalog.Topology{
		Epoch: 1, Shards: 4, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: true, State: catalog.TopologyOpen,
	})
	if err != nil {
		t.Fatal(err)
	}
	store, err := objstore.New(memstore.New(memstore.Options{}), objstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := localtier.Open(t.Context(), localtier.Options{
		Dir: filepath.Join(t.TempDir(), "w"), Catalog: cat, Classes: objstore.Classes{"standard": {store}}, Topology: top,
		Config: localtier.Config{MinFreeDisk: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// onWriter is an Append on a writer, as cmd/strandline wires it.
func onWriter(w *localtier.Writer) func(context.Context, Batch) error {
	return func(ctx context.Context, b Batch) error {
		p := localtier.Producer{}
		if b.Identity != "" {
			p = localtier.Producer{ID: b.Identity, Sequence: 1}
		}
		_, err := w.AppendAs(ctx, p, b.Stream, b.Rows, localtier.AckLocal)
		return err
	}
}

// sentAtOnce are the records of one of telemetrygen's requests.
const sentAtOnce = 50

// telemetrygen sends the records of one worker to an endpoint.
func telemetrygen(t *testing.T, endpoint, service string, more ...string) {
	t.Helper()
	binary, err := realstore.Build(t.Context(), "telemetrygen")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, append([]string{
		"logs", "--otlp-insecure", "--otlp-endpoint", endpoint, "--service", service, "--rate", "0", "--batch-size", strconv.Itoa(sentAtOnce),
	}, more...)...).CombinedOutput()
	if err != nil {
		t.Errorf("telemetrygen: %v\n%s", err, out)
	}
}

// stored counts a stream's rows, and how many of them are different: each record has a time
// of its own.
func stored(t *testing.T, w *localtier.Writer, stream string) (rows, different int) {
	t.Helper()
	seen := map[string]bool{}
	for row, err := range w.Read(t.Context(), stream, 1, math.MaxUint64) {
		if err != nil {
			t.Fatal(err)
		}
		readRow(t, row)
		rows++
		seen[string(row.Payload)] = true
	}
	return rows, len(seen)
}

// loseAnswer serves r over HTTP; the first request is taken, and its sender told that a
// proxy got no answer.
func loseAnswer(t *testing.T, r *Receiver) (endpoint string) {
	var lost atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if lost.Swap(true) {
			r.ServeHTTP(w, req)
			return
		}
		nobody := httptest.NewRecorder()
		if r.ServeHTTP(nobody, req); nobody.Code != http.StatusOK {
			t.Errorf("%d %s", nobody.Code, nobody.Body)
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

// loseCall is loseAnswer over gRPC.
func loseCall(t *testing.T, r *Receiver) (endpoint string) {
	var lost atomic.Bool
	conn, _ := server(t, r, Guarding{Interceptor: func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		err := next(srv, stream)
		if lost.Swap(true) || err != nil {
			return err
		}
		return status.Error(codes.Unavailable, "the answer is lost")
	}}, time.Second)
	return conn.Target()
}

// TestLostAnswer: a real sender's first request becomes durable, and its answer is lost. The
// sender tries again, and each record is there once. With KeepRepeats it is there twice,
// which shows that the request did come again.
func TestLostAnswer(t *testing.T) {
	w := realWriter(t)
	for _, x := range []struct {
		service string
		http    bool
		keep    bool
	}{{"http", true, false}, {"http-kept", true, true}, {"grpc", false, false}, {"grpc-kept", false, true}} {
		t.Run(x.service, func(t *testing.T) {
			t.Parallel() // each waits for its sender's back-off
			r := receiver(t, newLog(), func(d *Deps) { d.Append, d.KeepRepeats = onWriter(w), x.keep })
			args := []string{"--logs", "200"}
			var endpoint string
			if x.http {
				endpoint, args = loseAnswer(t, r), append(args, "--otlp-http")
			} else {
				endpoint = loseCall(t, r)
			}
			telemetrygen(t, endpoint, x.service, args...)
			want := 200
			if x.keep {
				want += sentAtOnce
			}
			if rows, different := stored(t, w, x.service); rows != want || different != 200 {
				t.Errorf("%d rows, want %d; %d of them different, want 200", rows, want, different)
			}
		})
	}
}

// TestWindow: a shard knows a batch again as long as not 10,000 others came since, and no
// longer: then a retry is there twice, which is what is promised.
func TestWindow(t *testing.T) {
	w := realWriter(t)
	do := onWriter(w)
	one := func(n int) Batch {
		id := fmt.Sprint("otlp:", n)
		return Batch{Stream: "s", Identity: id, Rows: []segment.Row{{Time: 1, Payload: []byte(id)}}}
	}
	others := func(from, n int) {
		var g errgroup.Group
		g.SetLimit(64) // they share their fsyncs
		for i := range n {
			g.Go(func() error { return do(t.Context(), one(from+i)) })
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (n int) {
		for row, err := range w.Read(t.Context(), "s", 1, math.MaxUint64) {
			if err != nil {
				t.Fatal(err)
			}
			if string(row.Payload) == "otlp:0" {
				n++
			}
		}
		return n
	}
	others(0, 1)
	others(1, segment.MaxProducers-1)
	others(0, 1)
	if n := count(); n != 1 {
		t.Errorf("within the window: %d rows of one record", n)
	}
	others(segment.MaxProducers, segment.MaxProducers)
	others(0, 1)
	if n := count(); n != 2 {
		t.Errorf("beyond the window: %d rows; the decision record says 2", n)
	}
}

// BenchmarkReceive is requests of 500 records of one service, some 200 bytes a row, over
// HTTP on loopback: decoded and sorted only, and made durable by a real writer.
func BenchmarkReceive(b *testing.B) {
	nothing := func(context.Context, Batch) error { return nil }
	b.Run("decode", func(b *testing.B) { benchmarkHandler(b, nothing) })
	b.Run("http", func(b *testing.B) { benchmarkHTTP(b, nothing) })
	b.Run("durable", func(b *testing.B) { benchmarkHTTP(b, patient(realWriter(b))) })
}

// patient waits where the disk is faster than the publisher.
func patient(w *localtier.Writer) func(context.Context, Batch) error {
	do := onWriter(w)
	return func(ctx context.Context, b Batch) error {
		err := do(ctx, b)
		if errors.Is(err, localtier.ErrBackpressure) {
			if err = w.Flush(ctx); err == nil {
				err = do(ctx, b)
			}
		}
		return err
	}
}

const benchRecords = 500

// distinct makes bodies that differ, as real requests do.
func distinct(b *testing.B) func(n int64) []byte {
	logs := batch(benchRecords, "bench")
	records := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	for _, r := range records.All() {
		r.Body().SetStr("GET /api/v1/items/42 took 12 ms, 200, 1834 bytes")
		r.Attributes().PutStr("http.route", "/api/v1/items/{id}")
	}
	records.At(0).Attributes().PutStr("nonce", strings.Repeat("n", 8))
	body := protobuf(b, logs)
	at := bytes.Index(body, []byte("nnnnnnnn"))
	return func(n int64) []byte {
		out := bytes.Clone(body)
		for i := range 8 {
			out[at+i] = 'a' + byte(n>>(4*i)&15)
		}
		return out
	}
}

func benchmarkHandler(b *testing.B, do func(context.Context, Batch) error) {
	r := receiver(b, newLog(), func(d *Deps) { d.Append = do })
	body := distinct(b)
	b.ReportAllocs()
	b.ResetTimer()
	for n := range int64(b.N) {
		if w := post(r, asProtobuf, body(n)); w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
	}
	perRecord(b)
}

func benchmarkHTTP(b *testing.B, do func(context.Context, Batch) error) {
	r := receiver(b, newLog(), func(d *Deps) { d.Append = do })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }()
	body := distinct(b)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var next atomic.Int64
	b.SetParallelism(8)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := client.Post("http://"+l.Addr().String()+"/v1/logs", asProtobuf, bytes.NewReader(body(next.Add(1))))
			if err != nil {
				b.Error(err)
				return
			}
			if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
				b.Errorf("status %d", resp.StatusCode)
			}
		}
	})
	b.StopTimer()
	perRecord(b)
	client.CloseIdleConnections()
	if err := srv.Close(); err != nil {
		b.Error(err)
	}
}

func perRecord(b *testing.B) {
	b.ReportMetric(float64(b.N)*benchRecords/b.Elapsed().Seconds(), "records/s")
}
