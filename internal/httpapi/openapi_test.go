package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// described is the document with a router over it. A test's server has any address.
type described struct {
	doc    *openapi3.T
	router routers.Router
}

var describe = sync.OnceValues(func() (*described, error) {
	doc, err := openapi3.NewLoader().LoadFromData(openAPIJSON())
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	doc.Servers = nil
	router, err := gorillamux.NewRouter(doc)
	return &described{doc, router}, err
})

// TestOpenAPIRoutes: the document has the routes of the table and their parameters, and no others.
func TestOpenAPIRoutes(t *testing.T) {
	d, err := describe()
	if err != nil {
		t.Fatal(err)
	}
	inDoc := map[string]*openapi3.Operation{}
	params := map[string][]string{}
	for path, item := range d.doc.Paths.Map() {
		for method, op := range item.Operations() {
			name := method + " " + path
			inDoc[name] = op
			for _, p := range append(slices.Clone(item.Parameters), op.Parameters...) {
				if p.Value.In == "query" {
					params[name] = append(params[name], p.Value.Name)
				}
			}
		}
	}
	table := (&server{}).table()
	for _, r := range table {
		op := inDoc[r.String()]
		if op == nil {
			t.Errorf("%s is not in the document", r)
			continue
		}
		delete(inDoc, r.String())
		want, got := slices.Sorted(slices.Values(r.query)), slices.Sorted(slices.Values(params[r.String()]))
		if !slices.Equal(want, got) {
			t.Errorf("%s: the route knows %v, the document %v", r, want, got)
		}
		if open := op.Security != nil && len(*op.Security) == 0; open != (r.Scope == ScopeOpen) {
			t.Errorf("%s: scope %q, the document has it open: %v", r, r.Scope, open)
		}
	}
	for name := range inDoc {
		t.Errorf("%s is in the document and no route", name)
	}
	if len(table) != len(Routes()) {
		t.Errorf("%d routes of %d", len(Routes()), len(table))
	}
}

// TestOpenAPICodes: the document names every code that problems have.
func TestOpenAPICodes(t *testing.T) {
	d, err := describe()
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, c := range d.doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum {
		known = append(known, c.(string))
	}
	for _, k := range kinds {
		if !slices.Contains(known, k.code) {
			t.Errorf("code %s is not in the document", k.code)
		}
	}
	if !slices.IsSorted(known) {
		t.Error("the codes are not in order")
	}
}

// held holds an exchange against the document. What a request is refused for need not be in
// it; what is answered with success has to be.
func held(t testing.TB, r *http.Request, body []byte, status int, header http.Header, answer []byte) {
	t.Helper()
	d, err := describe()
	if err != nil {
		t.Fatal(err)
	}
	route, params, err := d.router.FindRoute(r)
	if err != nil {
		if status < 400 {
			t.Errorf("%s %s: %d, and the document has no such route: %v", r.Method, r.URL, status, err)
		}
		return
	}
	r = r.Clone(context.Background())
	r.Body = io.NopCloser(bytes.NewReader(body))
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
		// Rows are not of a schema; documents are.
		ExcludeRequestBody: strings.HasSuffix(r.URL.Path, "/rows") || strings.HasSuffix(r.URL.Path, "/logs"),
	}}
	if status < 400 && r.Header.Get("Content-Type") != formType && (r.Header.Get("Content-Type") != "" || len(body) == 0) {
		if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
			t.Errorf("%s %s was answered with %d, but is not as the document says: %v", r.Method, r.URL, status, err)
		}
	}
	if r.Method == http.MethodHead {
		return
	}
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	rows := kind == ndjsonType || kind == eventsType || kind == yamlType
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: status, Header: header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: rows},
	}
	out.SetBodyBytes(answer)
	if err := openapi3filter.ValidateResponse(r.Context(), out); err != nil {
		t.Errorf("%s %s: the answer %d %q is not as the document says: %v", r.Method, r.URL, status, answer, err)
	}
	if kind == ndjsonType {
		heldLines(t, d, r, answer)
	}
}

// heldLines holds each line against its schema.
func heldLines(t testing.TB, d *described, r *http.Request, answer []byte) {
	t.Helper()
	name := "Line"
	if r.URL.Path == "/v1/streams" {
		name = "StreamOut"
	}
	for line := range bytes.Lines(answer) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var v map[string]any
		if err := json.Unmarshal(line, &v); err != nil {
			t.Errorf("line %q: %v", line, err)
			return
		}
		schema, of := name, any(v)
		if p, failed := v["error"]; failed {
			schema, of = "Problem", p
		}
		if err := d.doc.Components.Schemas[schema].Value.VisitJSON(of, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("line %q is no %s: %v", line, schema, err)
		}
	}
}

// TestOpenAPIServed: the document is served as it is kept, in both forms.
func TestOpenAPIServed(t *testing.T) {
	h := handler(nil, &bucket{})
	rec, _ := do(t, h, "GET", "/v1/openapi.yaml", "", nil)
	if !bytes.Equal(rec.Body.Bytes(), openAPISource) || rec.Header().Get("Content-Type") != yamlType {
		t.Errorf("%s", rec.Header())
	}
	rec, _ = do(t, h, "GET", "/v1/openapi.json", "", nil)
	var doc struct {
		Paths map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil || len(doc.Paths) < 10 {
		t.Errorf("%v, %d paths", err, len(doc.Paths))
	}
}

// TestHeldSeesFaults: what does not fit the document is noticed.
func TestHeldSeesFaults(t *testing.T) {
	id := http.Header{"Content-Type": {jsonType}, requestHeader: {"x"}}
	for name, answer := range map[string]string{"a member too many": `{"status":"ok","x":1}`, "one missing": `{}`, "another type": `{"status":1}`} {
		fake := &noting{TB: t}
		held(fake, httptest.NewRequest("GET", "/healthz", nil), nil, 200, id, []byte(answer))
		if !fake.failed {
			t.Errorf("%s was not noticed", name)
		}
	}
	fake := &noting{TB: t}
	held(fake, httptest.NewRequest("GET", "/v1/streams/s/rows", nil), nil, 200, http.Header{"Content-Type": {ndjsonType}, requestHeader: {"x"}}, []byte(`{"stream":"s","seq":"1"}`+"\n"))
	if !fake.failed {
		t.Error("a line that is none was not noticed")
	}
}

// noting is a test that only notes that it failed.
type noting struct {
	testing.TB
	failed bool
}

func (n *noting) Errorf(string, ...any) { n.failed = true }
