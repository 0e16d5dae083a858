package telemetry

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
)

// Wrap counts and times the requests of a route, and traces them where traces go
// somewhere. The pattern is the label: of a path there is no bound.
func (p *Provider) Wrap(pattern string, next http.Handler) http.Handler {
	route := metric.WithAttributes(attribute.String("route", pattern))
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, seen := time.Now(), &answer{ResponseWriter: w, code: http.StatusOK}
		p.ins.inFlight.Add(r.Context(), 1, route)
		defer func() { // a handler that panics is an answer, too: the client sees its connection cut
			p.ins.inFlight.Add(r.Context(), -1, route)
			p.ins.http.Record(r.Context(), time.Since(began).Seconds(), p.labels.of("route", pattern, "code", strconv.Itoa(seen.code)))
		}()
		next.ServeHTTP(seen, r)
	})
	if p.traces == nil || untracedRoute(pattern) {
		return counted
	}
	return otelhttp.NewHandler(counted, pattern,
		otelhttp.WithTracerProvider(p.traces), otelhttp.WithMeterProvider(noop.NewMeterProvider()), otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithSpanNameFormatter(func(string, *http.Request) string { return pattern }))
}

// untracedRoute: probes and scrapes come every few seconds, and tell nothing.
func untracedRoute(pattern string) bool {
	_, path, _ := strings.Cut(pattern, " ")
	return path == "/metrics" || path == "/healthz" || path == "/readyz"
}

// answer remembers the status code.
type answer struct {
	http.ResponseWriter
	code  int
	begun bool
}

func (a *answer) WriteHeader(code int) {
	if !a.begun {
		a.code = code
		a.begun = code >= http.StatusOK // 100 Continue and its kin come before the answer
	}
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(b []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(b)
}

// Flush and Unwrap let followers send what they have.
func (a *answer) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
