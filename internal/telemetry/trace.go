package telemetry

import (
	"context"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/settle"
)

// Appends is localtier.Options.Trace; nil where nothing is traced, and of a nil Provider.
func (p *Provider) Appends() func(context.Context, localtier.Traced) (context.Context, func(error)) {
	if p == nil || p.tracer == nil {
		return nil
	}
	return func(ctx context.Context, t localtier.Traced) (context.Context, func(error)) {
		ctx, span := p.tracer.Start(ctx, string(t.Step))
		if span.IsRecording() {
			span.SetAttributes(attribute.String("strandline.chain", t.Chain.String()))
			if t.Stream != "" {
				span.SetAttributes(attribute.String("strandline.stream", t.Stream))
			}
			setInts(span, "strandline.rows", int64(t.Rows), "strandline.segment", int64(t.Segment), "strandline.position", int64(t.Position), "strandline.bytes", t.Bytes)
		}
		return ctx, func(err error) { finish(span, err) }
	}
}

// setInts sets those that are not zero.
func setInts(span trace.Span, pairs ...any) {
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		if n, _ := pairs[i+1].(int64); n != 0 {
			span.SetAttributes(attribute.Int64(name, n))
		}
	}
}

func finish(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// Jobs is settle.Deps.Trace; nil likewise.
func (p *Provider) Jobs() func(context.Context, string) (context.Context, func(settle.Traced)) {
	if p == nil || p.tracer == nil {
		return nil
	}
	return func(ctx context.Context, key string) (context.Context, func(settle.Traced)) {
		ctx, span := p.tracer.Start(ctx, "job", trace.WithAttributes(attribute.String("strandline.key", key)))
		return ctx, func(t settle.Traced) {
			setInts(span, "strandline.members", int64(t.Members), "strandline.bytes", t.Bytes, "strandline.bytes_through", t.Through,
				"strandline.bytes_server_side", t.ServerSide, "strandline.requests", t.Requests.Total(), "strandline.requests_put_like", t.Requests.PutLike())
			finish(span, t.Err)
		}
	}
}

// idleKey marks the span of a pass that found nothing to do: it is dropped (idle.go).
const idleKey = attribute.Key("strandline.idle")

func (p *Provider) traceDuty(ctx context.Context, duty string) (context.Context, func(int, error)) {
	if p.tracer == nil {
		return ctx, func(int, error) {}
	}
	ctx, span := p.tracer.Start(ctx, dutyPrefix+duty, trace.WithNewRoot(), trace.WithAttributes(attribute.String("strandline.duty", duty)))
	return ctx, func(worked int, err error) {
		span.SetAttributes(attribute.Int("strandline.worked", worked), idleKey.Bool(worked == 0 && err == nil))
		finish(span, err)
	}
}

// traceVerb is a span only within another: a verb of a loop is no story by itself.
func (p *Provider) traceVerb(ctx context.Context, verb string) (context.Context, func(error)) {
	if p.tracer == nil || !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, func(error) {}
	}
	ctx, span := p.tracer.Start(ctx, "catalog "+verb, trace.WithSpanKind(trace.SpanKindClient))
	return ctx, func(err error) {
		span.SetAttributes(attribute.String("strandline.outcome", outcomeOf(ctx, err)))
		span.End() // a conflict is an answer, and no error of the span
	}
}

// GRPC traces the calls of a gRPC server; it is empty where nothing is traced.
func (p *Provider) GRPC() grpc.ServerOption {
	if p == nil || p.traces == nil {
		return grpc.EmptyServerOption{}
	}
	return grpc.StatsHandler(otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(p.traces), otelgrpc.WithMeterProvider(noop.NewMeterProvider()), otelgrpc.WithPropagators(propagation.TraceContext{})))
}
