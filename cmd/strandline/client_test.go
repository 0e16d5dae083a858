package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/internal/otlp"
)

// TestAskedWithoutTLS: a server that is asked in the wrong way says so, and what to do.
func TestAskedWithoutTLS(t *testing.T) {
	over, plain := httptest.NewTLSServer(http.NotFoundHandler()), httptest.NewServer(http.NotFoundHandler())
	defer over.Close()
	defer plain.Close()
	cli(t, "x\n", "append", "s", "--server", over.URL).want(t, exitUnavailable, "--ca")
	r := cli(t, "x\n", "append", "s", "--server", "https"+strings.TrimPrefix(plain.URL, "http"))
	r.want(t, exitUnavailable, "with http://")
	if strings.Contains(r.err, "outcome unknown") {
		t.Error(r.err)
	}
}

// TestForwardedWithoutToken: who runs a writer whose logs another refuses is told how to mend it.
func TestForwardedWithoutToken(t *testing.T) {
	err := forwarded(&client.Problem{Status: http.StatusUnauthorized, Code: "unauthenticated"})
	var later *otlp.LaterError
	if !errors.As(err, &later) || !strings.Contains(err.Error(), "--token-from") {
		t.Error(err)
	}
}

// TestForwardedFullDisk: logs that the owner has no room for are answered as those that this
// writer has none for: OTLP's senders come again after 429, and know no 507.
func TestForwardedFullDisk(t *testing.T) {
	for code, slow := range map[string]bool{"disk-full": true, "backpressure": true, "busy": true, "fenced": false} {
		var later *otlp.LaterError
		err := forwarded(fmt.Errorf("append: %w", &client.Problem{Status: 507, Code: code, RetryAfter: 7 * time.Second}))
		if !errors.As(err, &later) || later.Slow != slow || later.After != 7*time.Second {
			t.Errorf("%s: %+v", code, later)
		}
	}
}
