package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// owned is a catalog whose chains have an owner.
type owned struct {
	*bucket
	row catalog.ChainRow
	err error
}

func (o *owned) Chain(context.Context, segment.Chain) (catalog.ChainRow, error) { return o.row, o.err }

// TestAppendWhereNoneIsTaken: a process without a writer says whose the rows are.
func TestAppendWhereNoneIsTaken(t *testing.T) {
	later, ago := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		row    catalog.ChainRow
		err    error
		stream string
		status int
		code   string
	}{
		"an owner":       {row: catalog.ChainRow{Address: "http://writer-1", LeaseEnd: later}, status: http.StatusMisdirectedRequest, code: "not-owner"},
		"a dead one":     {row: catalog.ChainRow{Address: "http://writer-1", LeaseEnd: ago}, status: http.StatusNotImplemented, code: "read-only"},
		"nobody":         {err: catalog.ErrNotFound, status: http.StatusNotImplemented, code: "read-only"},
		"closed":         {row: catalog.ChainRow{Address: "http://writer-1", LeaseEnd: later, Closed: true}, status: http.StatusNotImplemented, code: "read-only"},
		"away":           {err: catalog.ErrUnavailable, status: http.StatusServiceUnavailable, code: "catalog-unavailable"},
		"a name of none": {stream: strings.Repeat("n", 201), status: http.StatusBadRequest, code: "invalid-name"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bucket{}
			h := Handler(Deps{Reader: b, Catalog: &owned{b, c.row, c.err}, Epoch: 1, Shards: 1})
			stream := c.stream
			if stream == "" {
				stream = "s"
			}
			w, p := do(t, h, "POST", "/v1/streams/"+stream+"/rows", "", strings.NewReader("a"))
			if w.Code != c.status || p.Code != c.code || (p.Owner == "http://writer-1") != (c.code == "not-owner") {
				t.Errorf("%d %+v", w.Code, p)
			}
		})
	}
}

// TestTrimWhereNothingIsGivenUp: the same of a trim and a delete.
func TestTrimWhereNothingIsGivenUp(t *testing.T) {
	row := catalog.ChainRow{Address: "http://writer-1", LeaseEnd: time.Now().Add(time.Hour)}
	for _, asked := range []struct{ method, path, body string }{
		{"DELETE", "", ""}, {"POST", "/trim", `{"below":"3"}`},
	} {
		for name, c := range map[string]struct {
			err    error
			stream string
			status int
			code   string
		}{
			"an owner":       {stream: "s", status: http.StatusMisdirectedRequest, code: "not-owner"},
			"nobody":         {stream: "s", err: catalog.ErrNotFound, status: http.StatusNotImplemented, code: "read-only"},
			"away":           {stream: "s", err: catalog.ErrUnavailable, status: http.StatusServiceUnavailable, code: "catalog-unavailable"},
			"a name of none": {stream: strings.Repeat("n", 201), status: http.StatusBadRequest, code: "invalid-name"},
		} {
			b := &bucket{}
			h := Handler(Deps{Reader: b, Catalog: &owned{b, row, c.err}, Epoch: 1, Shards: 1})
			w, p := do(t, h, asked.method, "/v1/streams/"+c.stream+asked.path, "application/json", strings.NewReader(asked.body))
			if w.Code != c.status || p.Code != c.code || (p.Owner == "http://writer-1") != (c.code == "not-owner") {
				t.Errorf("%s, %s%s: %d %+v", name, asked.method, asked.path, w.Code, p)
			}
		}
	}
}

// TestWithoutAReader: an auditor has no rows to serve, and says so of their paths.
func TestWithoutAReader(t *testing.T) {
	h := Handler(Deps{
		Catalog: &bucket{}, Epoch: 1, Shards: 1, Status: func(context.Context) (any, error) { return 1, nil },
		Explain: func(context.Context, Question) (any, error) { return 1, nil }, Metrics: http.NotFoundHandler(),
	})
	served := map[string]bool{"/v1/status": true, "/v1/explain": true, "/healthz": true, "/readyz": true, "/metrics": true, "/v1/openapi.json": true, "/v1/openapi.yaml": true}
	tried := 0
	for _, r := range Routes() {
		path := strings.NewReplacer("{stream}", "s", "{shard}", "0", "{name}", "n").Replace(r.Pattern)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(r.Method, path, nil))
		missing := w.Code == http.StatusNotFound && strings.Contains(w.Body.String(), "no-such-route")
		if missing == served[r.Pattern] && r.Pattern != "/v1/logs" {
			t.Errorf("%v: %d %s", r, w.Code, w.Body)
		}
		tried++
	}
	if tried < 20 {
		t.Errorf("only %d routes", tried)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/v1/streams/%2F/rows", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("the stream called /: %d", w.Code)
	}
}
