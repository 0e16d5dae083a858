package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// The scopes of routes, as access tokens carry them. Open routes have none.
const (
	ScopeAppend = "append"
	ScopeRead   = "read"
	ScopeAdmin  = "admin"
	ScopeOpen   = ""
)

// Route is one method of a path, and who may use it.
type Route struct {
	// Method; GET answers HEAD, too.
	Method string
	// Pattern of http.ServeMux, without the method.
	Pattern string
	// Scope that a caller needs; empty: nobody is asked.
	Scope string
}

// String is the route as http.ServeMux and Deps.Wrap have it: "GET /healthz".
func (r Route) String() string { return r.Method + " " + r.Pattern }

// Routes are all routes that a Handler may have: the mux is built from this table, and
// the OpenAPI document is held against it. Those of explain, metrics and logs are there
// if their dependency is.
func Routes() []Route {
	table := (&server{}).table()
	out := make([]Route, len(table))
	for i := range table {
		out[i] = table[i].Route
	}
	return out
}

// route is a Route with what answers it.
type route struct {
	Route
	// query are the parameters that it knows: any other, or one twice, is refused. nil: its
	// handler is another package's, and judges them itself.
	query []string
	// gives is the type of its answer; empty: it judges Accept itself.
	gives string
	serve http.Handler
	// off says that this process does not have it: its path is a stranger's.
	off bool
}

// The patterns that are named more than once.
const (
	streamPattern   = "/v1/streams/{stream}"
	rowsPattern     = streamPattern + "/rows"
	shardPattern    = "/v1/shards/{shard}"
	consumerPattern = shardPattern + "/consumers/{name}"
	logsPattern     = "/v1/logs"
)

// table is the routes of this server, in the order of the documents.
func (s *server) table() []route {
	unary := func(method, pattern, scope string, serve http.HandlerFunc, query ...string) route {
		return route{Route: Route{method, pattern, scope}, serve: s.unary(serve), query: append([]string{}, query...), gives: jsonType}
	}
	rows := func(method, pattern string, serve http.HandlerFunc, query ...string) route {
		return route{Route: Route{method, pattern, ScopeRead}, serve: serve, query: query}
	}
	onShard := func(method, pattern, scope string, serve ofShard, query ...string) route {
		return unary(method, pattern, scope, s.onShard(serve), append(query, "epoch")...)
	}
	return s.without([]route{
		unary("POST", rowsPattern, ScopeAppend, s.append, "ack", "producer", "sequence"),
		rows("GET", rowsPattern, s.read, "from", "after", "to", "limit", "follow"),
		unary("POST", streamPattern+"/trim", ScopeAdmin, s.trim),
		unary("DELETE", streamPattern, ScopeAdmin, s.remove),
		giving(ndjsonType, unary("GET", "/v1/streams", ScopeRead, s.list, "prefix", "after", "limit")),
		unary("GET", "/v1/shards", ScopeRead, s.served),
		rows("GET", shardPattern+"/rows", s.onShard(s.shardRows), "from", "after", "to", "limit", "follow", "epoch"),
		onShard("GET", shardPattern+"/consumers", ScopeRead, s.listConsumers),
		onShard("GET", consumerPattern, ScopeRead, s.getConsumer),
		onShard("PUT", consumerPattern, ScopeRead, s.putConsumer, "after"),
		onShard("DELETE", consumerPattern, ScopeAdmin, s.deleteConsumer),
		onShard("POST", consumerPattern+"/ack", ScopeRead, s.ackConsumer),
		rows("POST", consumerPattern+"/pull", s.reading(s.onShard(s.pull)).ServeHTTP, "limit", "epoch"),
		unary("POST", "/v1/flush", ScopeAdmin, s.flush),
		off(unary("GET", "/v1/status", ScopeRead, s.status), s.Status == nil),
		off(unary("GET", "/v1/explain", ScopeRead, s.explain, "key", "stream", "pos", "read"), s.Explain == nil),
		{Route: Route{"POST", logsPattern, ScopeAppend}, serve: s.unary(s.logs), off: s.Logs == nil},
		unary("GET", "/v1/openapi.json", ScopeRead, document(jsonType, openAPIJSON)),
		giving(yamlType, unary("GET", "/v1/openapi.yaml", ScopeRead, document(yamlType, openAPIYAML))),
		// Probes and scrapes are answered under any load: a busy process is not a dead one.
		{Route: Route{"GET", "/metrics", ScopeRead}, serve: s.Metrics, off: s.Metrics == nil},
		{Route: Route{"GET", "/healthz", ScopeOpen}, serve: http.HandlerFunc(s.alive)},
		{Route: Route{"GET", "/readyz", ScopeOpen}, serve: http.HandlerFunc(s.ready)},
	})
}

func off(r route, off bool) route {
	r.off = off
	return r
}

func giving(kind string, r route) route {
	r.gives = kind
	return r
}

// mux serves the table. A path that has other methods says which.
func (s *server) mux() *http.ServeMux {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, r := range s.table() {
		if r.off {
			continue
		}
		mux.Handle(r.String(), s.around(r))
		methods[r.Pattern] = append(methods[r.Pattern], r.Method)
		if r.Method == http.MethodGet {
			methods[r.Pattern] = append(methods[r.Pattern], http.MethodHead)
		}
	}
	for pattern, allow := range methods {
		slices.Sort(allow)
		mux.HandleFunc(pattern, only(strings.Join(allow, ", ")))
	}
	mux.HandleFunc("/", s.stray)
	return mux
}

// around puts what the process wired around a route: first what counts, so that it sees
// refusals, too; then who may.
func (s *server) around(r route) http.Handler {
	h := s.asked(r)
	if s.Guard != nil && r.Scope != ScopeOpen {
		h = s.Guard(r.Scope, h)
	}
	if s.Wrap != nil {
		h = s.Wrap(r.String(), h)
	}
	return h
}

// asked refuses a query that the route does not know: what is misspelt would be left out
// silently, and of two values one.
func (s *server) asked(r route) http.Handler {
	if r.query == nil {
		return r.serve
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		err := checkQuery(req.URL.RawQuery, r.query)
		if err == nil && r.gives != "" {
			// JSON is for those who know no more of NDJSON than that.
			err = mustAccept(req.Header, r.gives, jsonType)
		}
		if err != nil {
			s.fail(w, req, err)
			return
		}
		r.serve.ServeHTTP(w, req)
	})
}

func checkQuery(raw string, known []string) error {
	if raw == "" {
		return nil
	}
	q, err := url.ParseQuery(raw)
	if err != nil {
		return fmt.Errorf("%w: the query: %w", errBadRequest, err)
	}
	for name, values := range q {
		switch {
		case !slices.Contains(known, name):
			may := "none"
			if len(known) > 0 {
				may = strings.Join(known, ", ")
			}
			return fmt.Errorf("%w: no such parameter %.64q; this route knows: %s", errBadRequest, name, may)
		case len(values) > 1:
			return fmt.Errorf("%w: %.64s is given %d times; give it once", errBadRequest, name, len(values))
		}
	}
	return nil
}
