package s3wire

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// TestEndOnFailure: the context that a library works with ends with a failure on the
// wire and not with a success, whose body is still to be read.
func TestEndOnFailure(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		ends   bool
	}{
		"success":    {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("body")) }, false},
		"refusal":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, true},
		"login page": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") }, true},
		"silence":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.answer)
			defer server.Close()
			transport, err := NewTransport(Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer transport.Close()
			callCtx, stop := context.WithCancel(t.Context())
			defer stop()
			ctx, ex := NewExchange(callCtx, objstore.OpGet)
			ex.EndOnFailure(stop)
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := transport.RoundTrip(req); err == nil {
				defer resp.Body.Close()
			}
			if (ctx.Err() != nil) != c.ends {
				t.Errorf("the call's context: %v", ctx.Err())
			}
		})
	}
}
