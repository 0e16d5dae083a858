package httpapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/strandline/strandline/internal/otlp"
)

// TestLogsInForm: a sender of OTLP reads google.rpc.Status, whoever refuses it; the other
// routes' refusals are problems.
func TestLogsInForm(t *testing.T) {
	h := Handler(Deps{
		Reader: &bucket{}, Catalog: &bucket{}, Epoch: 1, Shards: 1, LogsForm: otlp.InForm,
		Logs: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was let in") }),
		Guard: func(scope string, _ http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				writeProblem(w, problem{Status: 401, Code: "unauthenticated", Title: scope})
			})
		},
	})
	for _, c := range []struct {
		method, path, header string
		code                 int
	}{
		{"POST", "/v1/logs", "", 401},
		{"POST", "/v1/logs", "http://evil.example", 403},
		{"GET", "/v1/logs", "", 405},
		{"POST", "/v1/flush", "", 401},
	} {
		req := httptest.NewRequest(c.method, c.path, strings.NewReader("{}"))
		req.Header.Set("Content-Type", jsonType)
		req.Header.Set("Origin", c.header)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		var st struct {
			Code    json.RawMessage
			Message string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil || w.Code != c.code {
			t.Errorf("%+v: %d %s %v", c, w.Code, w.Body, err)
		}
		number := len(st.Code) > 0 && st.Code[0] != '"'
		if logs := c.path == logsPattern; number != logs || logs != (w.Header().Get("Content-Type") == jsonType) || w.Header().Get(requestHeader) == "" {
			t.Errorf("%+v: %v %s", c, w.Header(), w.Body)
		}
	}
}
