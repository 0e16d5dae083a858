package telemetry

import "slices"

// Kind is a metric's type, in Prometheus's words.
type Kind string

// The types.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Unit is a metric's unit, as OpenTelemetry writes it.
type Unit string

// The units.
const (
	None    Unit = "1"
	Bytes   Unit = "By"
	Seconds Unit = "s"
)

// Group is a set of metrics that come together, and from which processes.
type Group struct {
	Title string
	// From are the commands that serve it.
	From    []string
	Metrics []Metric
}

// Metric is one row of the table. The name is the same in a scrape and in a push.
type Metric struct {
	Name   string
	Kind   Kind
	Unit   Unit
	Labels []string
	Help   string
	// made says who makes its points: an observer's callback, a sync instrument, or a
	// histogram that a room counted.
	made maker
	// optional metrics come only where what they tell of is configured.
	optional bool
	// eventual metrics come once there was something to tell.
	eventual bool
}

type maker int

const (
	observed maker = iota
	recorded
	counted
)

// The commands.
const (
	Up      = "up"
	Writer  = "writer"
	Auditor = "auditor"
	Reader  = "reader"
	Cache   = "cache"
)

// Table is every metric of this project, in the order of the documents. Go's and the
// process's own (go_*, process_*) come with it from client_golang.
func Table() []Group {
	return slices.Concat(ownTable(), writerTable(), dutyTable(), outsideTable())
}

// Lookup finds a metric by name.
func Lookup(name string) (Metric, bool) {
	for _, g := range Table() {
		for _, m := range g.Metrics {
			if m.Name == name {
				return m, true
			}
		}
	}
	return Metric{}, false
}

// Optional says that a process may be without the metric: where what it tells of is not
// configured, or has not come to pass yet.
func (m *Metric) Optional() bool { return m.optional || m.eventual }

func ownTable() []Group {
	return []Group{
		{Title: "The process", From: []string{Up, Writer, Auditor, Reader, Cache}, Metrics: []Metric{
			{Name: "strandline_build_info", Kind: Gauge, Unit: None, Labels: []string{"command", "version", "go_version"}, Help: "Always 1: what runs."},
			{Name: "strandline_ready", Kind: Gauge, Unit: None, Help: "1 while /readyz says yes, 0 while it says no."},
			{Name: "strandline_telemetry_exports_total", Kind: Counter, Unit: None, Labels: []string{"signal", "outcome"}, Help: "Pushes over OTLP, by signal (metrics, traces) and outcome (ok, failed).", optional: true},
		}},
		{Title: "HTTP", From: []string{Up, Writer, Auditor, Reader}, Metrics: []Metric{
			{Name: "strandline_http_request_seconds", Kind: Histogram, Unit: Seconds, Labels: []string{"route", "code"}, Help: "Requests by route (the pattern, never the path) and status code. One that follows lasts as long as its client listens.", made: recorded},
			{Name: "strandline_http_requests_in_flight", Kind: Gauge, Unit: None, Labels: []string{"route"}, Help: "Requests under way.", made: recorded},
		}},
	}
}
