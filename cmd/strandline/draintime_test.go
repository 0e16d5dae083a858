package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// hanging is a service whose bucket does not answer: its flush ends with its context only.
func hanging() *httpService {
	return &httpService{flush: func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}}
}

// TestDrainWithoutRequests: nobody waits for the flush, so that leases are given up at once.
func TestDrainWithoutRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := hanging().drain(ctx, &http.Server{ReadHeaderTimeout: time.Second}); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("no request is under way, and it took %v", took)
		}
	})
}

// TestDrainLeavesTime: a request that waits for the bucket takes half of the way out, not the
// time in which leases are given up.
func TestDrainLeavesTime(t *testing.T) {
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done() // the cut ends it
	}))
	defer server.Close()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // it was cut
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: here\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	<-arrived
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := hanging().drain(ctx, server.Config); err != nil {
		t.Error(err)
	}
	if ctx.Err() != nil {
		t.Error("draining took all of the time")
	}
}
