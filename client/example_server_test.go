package client_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
)

// exampleServer stands for a writer: one stream's rows in memory, and one consumer.
func exampleServer() *httptest.Server {
	var rows []string
	cursor := 0
	line := func(w http.ResponseWriter, i int) {
		fmt.Fprintf(w, `{"stream":"orders","epoch":1,"seq":%d,"ts":"2026-01-02T03:04:05Z","payload":%q,"token":"e1.t1.%d"}`+"\n", i+1, rows[i], i+1)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/streams/orders/rows", func(w http.ResponseWriter, r *http.Request) {
		first := len(rows) + 1
		for in := bufio.NewScanner(r.Body); in.Scan(); {
			rows = append(rows, in.Text())
		}
		fmt.Fprintf(w, `{"stream":"orders","epoch":1,"term":1,"first":%d,"last":%d,"rows":%d,"first_token":"e1.t1.%d","last_token":"e1.t1.%d"}`,
			first, len(rows), len(rows)-first+1, first, len(rows))
	})
	mux.HandleFunc("GET /v1/streams/orders/rows", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("from") == "1" {
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, `{"status":410,"code":"trimmed","title":"trimmed","first":2}`)
			return
		}
		after, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Query().Get("after"), "e1.t1.")) // none: 0
		for i := after; i < len(rows); i++ {
			line(w, i)
		}
	})
	mux.HandleFunc("POST /v1/shards/0/consumers/billing/pull", func(w http.ResponseWriter, _ *http.Request) {
		for i := cursor; i < len(rows); i++ {
			line(w, i)
		}
	})
	mux.HandleFunc("POST /v1/shards/0/consumers/billing/ack", func(w http.ResponseWriter, _ *http.Request) {
		cursor = len(rows)
		fmt.Fprintf(w, `{"shard":0,"name":"billing","cursor":%d,"lag":0}`, cursor)
	})
	return httptest.NewServer(mux)
}
