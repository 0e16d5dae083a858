package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// scope names this project's meters and spans.
const scope = "github.com/strandline/strandline"

// Provider is a process's telemetry. It is safe for concurrent use.
type Provider struct {
	cfg    Config
	reg    *prometheus.Registry
	meters *sdkmetric.MeterProvider
	traces *sdktrace.TracerProvider // nil: nothing is traced
	tracer trace.Tracer             // nil likewise

	sources atomic.Pointer[Sources]
	chains  chainsLook
	ins     instruments
	push    pushState
	labels  labelSets
	began   time.Time // from when on counters count
	closing sync.Once
}

// Start makes the meters, and begins to push if there is somewhere to push to: whether
// anybody listens there is not waited for. Close ends it.
func Start(ctx context.Context, cfg Config) (*Provider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Interval == 0 {
		cfg.Interval = DefaultInterval
	}
	p := &Provider{cfg: cfg, reg: prometheus.NewRegistry(), began: time.Now()}
	p.sources.Store(&Sources{})
	p.chains.now = cfg.Now
	where := cfg.endpoints()
	res := p.resource(ctx)
	readers, err := p.readers(ctx, where)
	if err != nil {
		return nil, err
	}
	// Cardinality is bounded by the table; the SDK's own limit would fold shards into one.
	options := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithCardinalityLimit(math.MaxInt32)}
	for _, r := range readers {
		options = append(options, sdkmetric.WithReader(r))
	}
	p.meters = sdkmetric.NewMeterProvider(options...)
	if err := p.make(p.meters.Meter(scope)); err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	if where.trace {
		if err := p.startTraces(ctx, where, res); err != nil {
			return nil, errors.Join(err, p.Close(ctx))
		}
	}
	return p, nil
}

// resource says who speaks, as the environment and the process have it.
func (p *Provider) resource(ctx context.Context) *resource.Resource {
	host, _ := os.Hostname() // a name that is unknown is left out
	attrs := []attribute.KeyValue{
		attribute.String("service.namespace", "strandline"), attribute.String("service.name", "strandline-"+p.cfg.Command),
		attribute.String("service.version", p.cfg.Version), attribute.String("host.name", host), attribute.Int("process.pid", os.Getpid()),
	}
	res, err := resource.New(ctx, resource.WithAttributes(attrs...), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		p.cfg.Logger.Warn("OTEL_RESOURCE_ATTRIBUTES is not taken", "error", err)
	}
	return res
}

// readers are the scrape, always, and the push where it goes somewhere.
func (p *Provider) readers(ctx context.Context, where endpoints) ([]sdkmetric.Reader, error) {
	p.reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	scrape, err := otelprom.New(
		otelprom.WithRegisterer(p.reg), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo(), otelprom.WithProducer(countedProducer{p}),
		otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithoutSuffixes),
	)
	if err != nil {
		return nil, fmt.Errorf("telemetry: the scrape: %w", err)
	}
	readers := []sdkmetric.Reader{scrape}
	if !where.push {
		return readers, nil
	}
	exporter, err := newMetricExporter(ctx, where)
	if err != nil {
		return nil, fmt.Errorf("telemetry: push of metrics: %w", err)
	}
	return append(readers, sdkmetric.NewPeriodicReader(&quietMetrics{Exporter: exporter, say: p.said("metrics")},
		sdkmetric.WithInterval(p.cfg.Interval), sdkmetric.WithTimeout(pushTimeout),
		sdkmetric.WithProducer(countedProducer{p}), sdkmetric.WithProducer(newRuntimeProducer(p.began)))), nil
}

// Metrics is the scrape.
func (p *Provider) Metrics() http.Handler {
	return promhttp.HandlerFor(p.reg, promhttp.HandlerOpts{
		ErrorLog: promLog{p.cfg.Logger}, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: maxScrapes,
	})
}

// maxScrapes at once; each builds its text in memory.
const maxScrapes = 4

// promLog is promhttp's logger.
type promLog struct{ log *slog.Logger }

func (l promLog) Println(v ...any) { l.log.Warn("scrape", "error", fmt.Sprint(v...)) }

// Close pushes what is left, within ctx, and ends what Start began. An endpoint that is
// away is no error of the process. The second Close does nothing.
func (p *Provider) Close(ctx context.Context) error {
	p.closing.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, closeTimeout)
		defer cancel()
		p.push.closing.Store(true)
		var both sync.WaitGroup
		if p.traces != nil {
			both.Go(func() { p.dropped(p.traces.Shutdown(ctx)) })
		}
		both.Go(func() { p.dropped(p.meters.Shutdown(ctx)) })
		both.Wait()
		p.chains.close()
	})
	return nil
}

// dropped tells of a last push that did not work.
func (p *Provider) dropped(err error) {
	if err != nil {
		p.cfg.Logger.Debug("the last push of telemetry was dropped", "error", err)
	}
}

// closeTimeout is what the last push may cost on the way out.
const closeTimeout = 3 * time.Second

func goVersion() string { return runtime.Version() }
