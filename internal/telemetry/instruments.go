package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// instruments are the table as meters know it. They never change after Start.
type instruments struct {
	observed map[string]watchedInstrument

	http, verb, duty metric.Float64Histogram
	inFlight         metric.Int64UpDownCounter
}

type watchedInstrument struct {
	metric.Float64Observable
	labels []attribute.Key
}

// requestBounds are for requests and verbs, dutyBounds for work that moves gigabytes.
var (
	requestBounds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}
	dutyBounds    = []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 1800}
)

// make registers every metric of the table, and the one callback that observes.
func (p *Provider) make(m metric.Meter) error {
	p.ins.observed = map[string]watchedInstrument{}
	var all []metric.Observable
	for _, g := range Table() {
		for i := range g.Metrics {
			d := &g.Metrics[i]
			if d.made != observed {
				continue
			}
			o, err := observable(m, d)
			if err != nil {
				return fmt.Errorf("telemetry: %s: %w", d.Name, err)
			}
			w := watchedInstrument{Float64Observable: o}
			for _, l := range d.Labels {
				w.labels = append(w.labels, attribute.Key(l))
			}
			p.ins.observed[d.Name] = w
			all = append(all, o)
		}
	}
	if err := p.ins.record(m); err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	_, err := m.RegisterCallback(p.observe, all...)
	return err
}

func observable(m metric.Meter, d *Metric) (metric.Float64Observable, error) {
	help, unit := metric.WithDescription(d.Help), metric.WithUnit(string(d.Unit))
	if d.Kind == Counter {
		return m.Float64ObservableCounter(d.Name, help, unit)
	}
	return m.Float64ObservableGauge(d.Name, help, unit)
}

// record makes what is recorded where it happens.
func (i *instruments) record(m metric.Meter) error {
	for _, h := range []struct {
		name   string
		bounds []float64
		into   *metric.Float64Histogram
	}{
		{"strandline_http_request_seconds", requestBounds, &i.http},
		{"strandline_catalog_verb_seconds", requestBounds, &i.verb},
		{"strandline_duty_seconds", dutyBounds, &i.duty},
	} {
		d, _ := Lookup(h.name)
		var err error
		if *h.into, err = m.Float64Histogram(d.Name, metric.WithDescription(d.Help), metric.WithUnit(string(d.Unit)), metric.WithExplicitBucketBoundaries(h.bounds...)); err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	d, _ := Lookup("strandline_http_requests_in_flight")
	var err error
	i.inFlight, err = m.Int64UpDownCounter(d.Name, metric.WithDescription(d.Help), metric.WithUnit(string(d.Unit)))
	return err
}

// sink takes what an observer reads. Label values come in the order of the table.
type sink struct {
	o    metric.Observer
	seen map[string]watchedInstrument
}

func (s sink) put(name string, v float64, values ...string) {
	in, ok := s.seen[name]
	if !ok || len(values) != len(in.labels) {
		panic(fmt.Sprintf("telemetry: %s with labels %v is not in the table", name, values)) // every observer is run by a test
	}
	attrs := make([]attribute.KeyValue, len(values))
	for i, v := range values {
		attrs[i] = in.labels[i].String(v)
	}
	s.o.ObserveFloat64(in.Float64Observable, v, metric.WithAttributes(attrs...))
}

// oneOf puts 1 for the value that is, and 0 for the others of a closed set.
func (s sink) oneOf(name string, is func(string) bool, all []string, before ...string) {
	for _, v := range all {
		s.put(name, truth(is(v)), append(append([]string(nil), before...), v)...)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// observe reads every source once.
func (p *Provider) observe(ctx context.Context, o metric.Observer) error {
	s := sink{o, p.ins.observed}
	src := p.sources.Load()
	s.put("strandline_build_info", 1, p.cfg.Command, p.cfg.Version, goVersion())
	if src.Ready != nil {
		s.put("strandline_ready", truth(src.Ready() == nil))
	}
	p.push.mu.Lock()
	for _, sig := range p.push.signals {
		s.put("strandline_telemetry_exports_total", float64(sig.ok.Load()), sig.name, "ok")
		s.put("strandline_telemetry_exports_total", float64(sig.failed.Load()), sig.name, "failed")
	}
	p.push.mu.Unlock()
	src.observeWriter(s, p.cfg.Now())
	src.observeDuties(s)
	p.observeChains(ctx, s, src)
	src.observeStores(s)
	src.observeCache(s)
	return nil
}
