package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// runtimeProducer gives the push what the scrape has of Go and of the process, under the
// same names. Summaries (of pauses of the garbage collector) stay the scrape's.
type runtimeProducer struct {
	reg   *prometheus.Registry
	began time.Time
}

func newRuntimeProducer(began time.Time) runtimeProducer {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return runtimeProducer{reg, began}
}

// Produce implements sdkmetric.Producer.
func (r runtimeProducer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	families, err := r.reg.Gather()
	now := time.Now()
	var out []metricdata.Metrics
	for _, f := range families {
		m := metricdata.Metrics{Name: f.GetName(), Description: f.GetHelp()}
		switch f.GetType() {
		case dto.MetricType_GAUGE:
			m.Data = metricdata.Gauge[float64]{DataPoints: r.points(f, now, func(x *dto.Metric) float64 { return x.GetGauge().GetValue() })}
		case dto.MetricType_COUNTER:
			m.Data = metricdata.Sum[float64]{
				DataPoints:  r.points(f, now, func(x *dto.Metric) float64 { return x.GetCounter().GetValue() }),
				Temporality: metricdata.CumulativeTemporality, IsMonotonic: true,
			}
		default:
			continue
		}
		out = append(out, m)
	}
	return []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: "github.com/prometheus/client_golang"}, Metrics: out}}, err
}

func (r runtimeProducer) points(f *dto.MetricFamily, now time.Time, value func(*dto.Metric) float64) []metricdata.DataPoint[float64] {
	out := make([]metricdata.DataPoint[float64], 0, len(f.GetMetric()))
	for _, x := range f.GetMetric() {
		var attrs []attribute.KeyValue
		for _, l := range x.GetLabel() {
			attrs = append(attrs, attribute.String(l.GetName(), l.GetValue()))
		}
		out = append(out, metricdata.DataPoint[float64]{Attributes: attribute.NewSet(attrs...), StartTime: r.began, Time: now, Value: value(x)})
	}
	return out
}
