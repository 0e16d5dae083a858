package telemetry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// pushTimeout bounds one push with its retries: the next one has newer numbers.
	pushTimeout = 10 * time.Second
	// spanQueue and spanBatch bound the memory of traces; what does not fit is dropped.
	spanQueue = 4096
	spanBatch = 512
)

func newMetricExporter(ctx context.Context, e endpoints) (sdkmetric.Exporter, error) {
	if e.grpc {
		options := []otlpmetricgrpc.Option{otlpmetricgrpc.WithTimeout(pushTimeout)}
		if e.metrics != "" {
			options = append(options, otlpmetricgrpc.WithEndpoint(e.metrics))
		}
		if e.insecure {
			options = append(options, otlpmetricgrpc.WithInsecure())
		}
		return otlpmetricgrpc.New(ctx, options...)
	}
	options := []otlpmetrichttp.Option{otlpmetrichttp.WithTimeout(pushTimeout)}
	if e.metrics != "" {
		options = append(options, otlpmetrichttp.WithEndpointURL(e.metrics))
	}
	return otlpmetrichttp.New(ctx, options...)
}

func newSpanExporter(ctx context.Context, e endpoints) (sdktrace.SpanExporter, error) {
	if e.grpc {
		options := []otlptracegrpc.Option{otlptracegrpc.WithTimeout(pushTimeout)}
		if e.traces != "" {
			options = append(options, otlptracegrpc.WithEndpoint(e.traces))
		}
		if e.insecure {
			options = append(options, otlptracegrpc.WithInsecure())
		}
		return otlptracegrpc.New(ctx, options...)
	}
	options := []otlptracehttp.Option{otlptracehttp.WithTimeout(pushTimeout)}
	if e.traces != "" {
		options = append(options, otlptracehttp.WithEndpointURL(e.traces))
	}
	return otlptracehttp.New(ctx, options...)
}

// startTraces begins to push spans. A full queue drops them; whoever ends one never waits.
func (p *Provider) startTraces(ctx context.Context, e endpoints, res *resource.Resource) error {
	exporter, err := newSpanExporter(ctx, e)
	if err != nil {
		return err
	}
	batch := sdktrace.NewBatchSpanProcessor(&quietSpans{SpanExporter: exporter, say: p.said("traces")},
		sdktrace.WithMaxQueueSize(spanQueue), sdktrace.WithMaxExportBatchSize(spanBatch), sdktrace.WithExportTimeout(pushTimeout))
	p.traces = sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithSpanProcessor(newIdleFilter(batch)))
	p.tracer = p.traces.Tracer(scope)
	return nil
}

// pushState counts pushes by signal.
type pushState struct {
	closing atomic.Bool
	mu      sync.Mutex
	signals []*signal
}

// signal is one of metrics and traces.
type signal struct {
	name       string
	ok, failed atomic.Int64
	away       atomic.Bool
}

// said makes what hears of each push of a signal: two lines an outage, its begin and its end.
func (p *Provider) said(name string) func(error) {
	s := &signal{name: name}
	p.push.mu.Lock()
	p.push.signals = append(p.push.signals, s)
	p.push.mu.Unlock()
	return func(err error) {
		if err == nil {
			s.ok.Add(1)
			if s.away.Swap(false) {
				p.cfg.Logger.Info("telemetry is pushed again", "signal", name)
			}
			return
		}
		s.failed.Add(1)
		if !s.away.Swap(true) && !p.push.closing.Load() {
			p.cfg.Logger.Warn("telemetry is not pushed: rows are not affected, and GET /metrics goes on; look at --telemetry-otlp and at the collector",
				"signal", name, "error", err)
		}
	}
}

// quietMetrics keeps a push's failure from the SDK, which would log each of them.
type quietMetrics struct {
	sdkmetric.Exporter
	say func(error)
}

func (q *quietMetrics) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	q.say(q.Exporter.Export(ctx, m))
	return nil
}

type quietSpans struct {
	sdktrace.SpanExporter
	say func(error)
}

func (q *quietSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	q.say(q.SpanExporter.ExportSpans(ctx, spans))
	return nil
}
