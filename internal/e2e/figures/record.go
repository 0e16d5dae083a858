//go:build unix

package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/strandline/strandline/internal/e2e"
)

// span is a ranged GET.
type span struct {
	key      string // in the bucket
	from, to int64  // inclusive
}

func (s span) bytes() int64 { return s.to - s.from + 1 }

// recorder is a proxy before the bucket that writes down which ranges are read.
type recorder struct {
	server *http.Server
	at     string
	done   chan struct{}

	mu    sync.Mutex
	spans []span
	odd   []string // requests for data that are no plain range
}

func record(upstream string) (*recorder, error) {
	u, err := url.Parse(upstream)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	// The Host stays, which the client's signature is made for.
	p := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u); r.Out.Host = r.In.Host }}
	rec := &recorder{at: l.Addr().String(), done: make(chan struct{})}
	rec.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec.note(r)
		p.ServeHTTP(w, r)
	})}
	go func() {
		defer close(rec.done)
		_ = rec.server.Serve(l) // it ends by close, and with nothing else to say
	}()
	return rec, nil
}

func (r *recorder) note(req *http.Request) {
	key, ok := strings.CutPrefix(req.URL.Path, "/"+e2e.BucketName+"/")
	if !ok || key == "" || req.Method != http.MethodGet || req.URL.RawQuery != "" {
		return // a HEAD, or a question about the bucket
	}
	s := span{key: key}
	_, err := fmt.Sscanf(req.Header.Get("Range"), "bytes=%d-%d", &s.from, &s.to)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.odd = append(r.odd, key+" "+req.Header.Get("Range"))
		return
	}
	r.spans = append(r.spans, s)
}

func (r *recorder) close() error {
	err := r.server.Close()
	<-r.done
	return err
}
