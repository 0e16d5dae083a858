package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/segment"
)

const (
	benchRows = 500
	benchSize = 200
)

// benchBody is 500 rows of 200 bytes.
func benchBody(ndjson bool) []byte {
	payload := bytes.Repeat([]byte("0123456789"), benchSize/10)
	var b bytes.Buffer
	for i := range benchRows {
		copy(payload, fmt.Sprintf("%06d", i))
		if ndjson {
			fmt.Fprintf(&b, `{"payload":%q}`+"\n", payload)
		} else {
			fmt.Fprintf(&b, "%s\n", payload)
		}
	}
	return b.Bytes()
}

// BenchmarkAppend is POSTs of 500 rows of 200 bytes to a real writer on disk, through a real
// server on loopback, client and server in one process.
func BenchmarkAppend(b *testing.B) {
	for _, kind := range []string{"raw", "ndjson", "ndjson-zstd", "ndjson-key"} {
		for _, conns := range []int{1, 4, 16} {
			b.Run(fmt.Sprintf("%s/conns=%d", kind, conns), func(b *testing.B) { benchAppend(b, kind, conns) })
		}
	}
}

func benchAppend(b *testing.B, kind string, conns int) {
	s := newSite(b, 4)
	body := benchBody(kind != "raw")
	if kind == "ndjson-zstd" {
		body = zstded(b, body)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var n atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	began := time.Now()
	done := make(chan error, conns)
	for c := range conns {
		go func() {
			for {
				i := n.Add(1)
				if i > int64(b.N) {
					done <- nil
					return
				}
				if err := benchPost(client, fmt.Sprintf("%s/v1/streams/s%d/rows", s.owner.URL, c), kind, fmt.Sprint("key ", i), body); err != nil {
					done <- err
					return
				}
			}
		}()
	}
	for range conns {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N*benchRows)/time.Since(began).Seconds(), "rows/s")
}

func benchPost(client *http.Client, url, kind, key string, body []byte) error {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	switch kind {
	case "ndjson":
		req.Header.Set("Content-Type", ndjsonType)
	case "ndjson-key":
		req.Header.Set("Content-Type", ndjsonType)
		req.Header.Set(idempotencyHeader, key)
	case "ndjson-zstd":
		req.Header.Set("Content-Type", ndjsonType)
		req.Header.Set("Content-Encoding", "zstd")
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("%d %s: %w", res.StatusCode, text, err)
	}
	return nil
}

// BenchmarkHandler is the handler alone: no writer, no connection.
func BenchmarkHandler(b *testing.B) {
	for _, kind := range []string{"raw", ndjsonType} {
		b.Run(kind, func(b *testing.B) {
			var got taken
			h := handler(taking(&got), nil)
			body := benchBody(kind == ndjsonType)
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest("POST", "/v1/streams/s/rows", bytes.NewReader(body))
				r.Header.Set("Content-Type", kind)
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != 200 {
					b.Fatal(w.Body)
				}
			}
			b.ReportMetric(float64(b.N*benchRows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkLineIn is a row as it comes: read by plainLine, and by encoding/json as all others.
func BenchmarkLineIn(b *testing.B) {
	line, _, _ := bytes.Cut(benchBody(true), []byte{'\n'})
	for name, read := range map[string]func([]byte, *segment.Row) bool{
		"plain": plainLine,
		"json":  func(line []byte, row *segment.Row) bool { return decodeLine(line, row) == nil },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var row segment.Row
				if !read(line, &row) {
					b.Fatal("refused")
				}
			}
		})
	}
}

// BenchmarkLineOutJSON is what BenchmarkLineOut takes by encoding/json.
func BenchmarkLineOutJSON(b *testing.B) {
	row := coldload.Row{Epoch: 1, Row: segment.Row{Seq: 7, Time: 1, Payload: bytes.Repeat([]byte("0123456789"), benchSize/10)}}
	enc := json.NewEncoder(io.Discard)
	b.ReportAllocs()
	for b.Loop() {
		if err := enc.Encode(LineOf("s", &row)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLineOut is a row as it is sent.
func BenchmarkLineOut(b *testing.B) {
	row := coldload.ShardRow{Stream: "s", Epoch: 1, Row: segment.Row{Seq: 7, Time: 1, Payload: bytes.Repeat([]byte("0123456789"), benchSize/10)}}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = appendLine(buf[:0], &row, "e1.t3.7")
	}
}
