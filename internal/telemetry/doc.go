// Package telemetry shows what a process does: one set of OpenTelemetry meters, read by a
// Prometheus scrape and pushed over OTLP, and traces where an endpoint is set.
//
//	rooms count     localtier.Writer.Status, wal.Metrics, auditor.Summary, Store.Account,
//	                the object cache's Stats: plain atomic counters
//	      |  read once a scrape or a push
//	observers       writer.go duties.go chains.go stores.go cache.go
//	      |
//	meters          table*.go: each metric once, with name, type, unit, labels and meaning
//	      |                                    \
//	GET /metrics (provider.go)                  OTLP push (push.go), both from one collection
//
//	config.go     Config, and its faults
//	provider.go   Start, Close
//	sources.go    what a process gives to be looked at
//	instruments.go  the table as instruments; doctable.go the table as docs/telemetry.md has it
//	histograms.go histograms that rooms counted by themselves; runtime.go: Go's own numbers
//	around.go     histograms of what passes through here: verbs, duties, HTTP (http.go)
//	trace.go      spans of appends, publishes, duties, jobs, verbs; idle.go drops those of
//	              passes that found nothing to do
//
// Contract. Nothing here is on the way of a row: no meter is called in an append, and a
// hook of traces is nil unless there is somewhere to send them. A scrape asks the bucket
// for nothing, and the catalog at most one cheap verb every fifteen seconds. An endpoint
// that is away costs its queue, which is bounded, and two log lines. A label never holds
// a stream, a key, a consumer or an id: what is unbounded stays in logs and traces.
// Shards and epochs are labels; the topology bounds them.
//
// What this package does not do: logs (slog is passed in), decide anything.
package telemetry
