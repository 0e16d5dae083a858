package httpapi

import (
	"net/http"
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
	serve http.Handler
	// off says that this process does not have it: its path is a stranger's.
	off bool
}

// table is the routes of this server, in the order of the documents.
func (s *server) table() []route {
	const (
		stream   = "/v1/streams/{stream}"
		shard    = "/v1/shards/{shard}"
		consumer = shard + "/consumers/{name}"
	)
	on := func(method, pattern, scope string, serve http.HandlerFunc) route {
		return route{Route: Route{method, pattern, scope}, serve: s.admit(serve)}
	}
	return []route{
		on("POST", stream+"/rows", ScopeAppend, s.append),
		on("GET", stream+"/rows", ScopeRead, s.read),
		on("GET", "/v1/shards", ScopeRead, s.served),
		on("GET", shard+"/rows", ScopeRead, s.onShard(s.shardRows)),
		on("GET", shard+"/consumers", ScopeRead, s.onShard(s.listConsumers)),
		on("GET", consumer, ScopeRead, s.onShard(s.getConsumer)),
		on("PUT", consumer, ScopeRead, s.onShard(s.putConsumer)),
		on("DELETE", consumer, ScopeAdmin, s.onShard(s.deleteConsumer)),
		on("POST", consumer+"/ack", ScopeRead, s.onShard(s.ackConsumer)),
		on("POST", consumer+"/pull", ScopeRead, s.onShard(s.pull)),
		on("POST", "/v1/flush", ScopeAdmin, s.flush),
		on("GET", "/v1/status", ScopeRead, s.status),
		{Route: Route{"GET", "/v1/explain", ScopeRead}, serve: s.admit(s.explain), off: s.Explain == nil},
		{Route: Route{"POST", "/v1/logs", ScopeAppend}, serve: s.admit(handlerFunc(s.Logs)), off: s.Logs == nil},
		// Probes and scrapes are answered under any load: a busy process is not a dead one.
		{Route: Route{"GET", "/metrics", ScopeRead}, serve: s.Metrics, off: s.Metrics == nil},
		{Route: Route{"GET", "/healthz", ScopeOpen}, serve: http.HandlerFunc(s.alive)},
		{Route: Route{"GET", "/readyz", ScopeOpen}, serve: http.HandlerFunc(s.ready)},
	}
}

func handlerFunc(h http.Handler) http.HandlerFunc {
	if h == nil {
		return nil
	}
	return h.ServeHTTP
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
	h := r.serve
	if s.Guard != nil && r.Scope != ScopeOpen {
		h = s.Guard(r.Scope, h)
	}
	if s.Wrap != nil {
		h = s.Wrap(r.String(), h)
	}
	return h
}
