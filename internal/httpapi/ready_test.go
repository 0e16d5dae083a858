package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestReadySaysHolds: what is held back is named, and does not make a process unready.
func TestReadySaysHolds(t *testing.T) {
	for name, c := range map[string]struct {
		holds []string
		away  error
		code  int
		body  string
	}{
		"nothing held": {nil, nil, http.StatusOK, `{"status":"ready"}`},
		"held":         {[]string{"rolled-back"}, nil, http.StatusOK, `{"status":"ready","holds":["rolled-back"]}`},
		"away":         {[]string{"rolled-back"}, errors.New("away"), http.StatusServiceUnavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{Deps: Deps{Holds: func() []string { return c.holds }, ReadyCheck: func(context.Context) error { return c.away }}}
			w := httptest.NewRecorder()
			s.ready(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody))
			if w.Code != c.code || c.body != "" && w.Body.String() != c.body+"\n" && w.Body.String() != c.body {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, c.code, c.body)
			}
		})
	}
}
