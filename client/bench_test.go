package client

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/strandline/strandline/segment"
)

// benchRows are rows of about 200 B that compress as logs do.
func benchRows(n int) []segment.Row {
	rows := make([]segment.Row, n)
	for i := range rows {
		rows[i].Payload = fmt.Appendf(nil, `{"at":%d,"level":"info","msg":"request served","path":"/v1/things/%d","took_ms":%d,"agent":"%s"}`,
			1_700_000_000_000+i, i*7919%100_000, i%97, strings.Repeat("x", 90))
	}
	return rows
}

// BenchmarkAppend is the client's own cost: over loopback, to a server that reads and answers.
func BenchmarkAppend(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a client that went away ends the benchmark
		_, _ = io.WriteString(w, took)     // likewise
	}))
	defer srv.Close()
	for _, e := range []Encoding{Zstd, Gzip, Identity} {
		for _, n := range []int{1, 500} {
			b.Run(fmt.Sprintf("%s/%d", e, n), func(b *testing.B) {
				c, err := New(Config{URL: srv.URL, Encoding: e})
				if err != nil {
					b.Fatal(err)
				}
				rows := benchRows(n)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.Append(b.Context(), "s", rows, AppendOptions{}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "rows/s")
				c.http.CloseIdleConnections()
			})
		}
	}
}

// BenchmarkRows is a read over loopback.
func BenchmarkRows(b *testing.B) {
	const n = 20_000
	var body strings.Builder
	for i := range n {
		fmt.Fprintf(&body, `{"stream":"s","epoch":1,"seq":%d,"ts":"2026-01-02T03:04:05.000000006Z","payload":"%s"}`+"\n", i+1, strings.Repeat("x", 200))
	}
	text := body.String()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, text) // a client that went away ends the benchmark
	}))
	defer srv.Close()
	c, err := New(Config{URL: srv.URL})
	if err != nil {
		b.Fatal(err)
	}
	defer c.http.CloseIdleConnections()
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		rows := 0
		for _, err := range c.Rows(b.Context(), "s", ReadOptions{}) {
			if err != nil {
				b.Fatal(err)
			}
			rows++
		}
		if rows != n {
			b.Fatal(rows)
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "rows/s")
}
