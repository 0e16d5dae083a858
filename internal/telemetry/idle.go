package telemetry

import (
	"context"
	"strings"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// dutyPrefix begins the name of a duty's span.
const dutyPrefix = "duty "

// maxHeld is how many spans of a pass wait for its end; a pass with more has work to show.
const maxHeld = 128

// idleFilter holds the spans of a duty's pass back until it has ended, and drops them all
// if it found nothing to do. Every other span goes on at once.
type idleFilter struct {
	next sdktrace.SpanProcessor

	mu   sync.Mutex
	held map[trace.TraceID][]sdktrace.ReadOnlySpan // of passes under way
}

func newIdleFilter(next sdktrace.SpanProcessor) *idleFilter {
	return &idleFilter{next: next, held: map[trace.TraceID][]sdktrace.ReadOnlySpan{}}
}

// OnStart implements sdktrace.SpanProcessor.
func (f *idleFilter) OnStart(parent context.Context, s sdktrace.ReadWriteSpan) {
	f.next.OnStart(parent, s)
	if !s.Parent().IsValid() && strings.HasPrefix(s.Name(), dutyPrefix) {
		f.mu.Lock()
		f.held[s.SpanContext().TraceID()] = []sdktrace.ReadOnlySpan{}
		f.mu.Unlock()
	}
}

// OnEnd implements sdktrace.SpanProcessor.
func (f *idleFilter) OnEnd(s sdktrace.ReadOnlySpan) {
	for _, out := range f.released(s) {
		f.next.OnEnd(out)
	}
}

// released are the spans that go on now.
func (f *idleFilter) released(s sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	id, root := s.SpanContext().TraceID(), !s.Parent().IsValid()
	f.mu.Lock()
	defer f.mu.Unlock()
	held, waits := f.held[id]
	switch {
	case !waits:
		return []sdktrace.ReadOnlySpan{s}
	case root && idle(s):
		delete(f.held, id)
		return nil
	case root || len(held) >= maxHeld:
		delete(f.held, id)
		return append(held, s)
	}
	f.held[id] = append(held, s)
	return nil
}

func idle(s sdktrace.ReadOnlySpan) bool {
	for _, a := range s.Attributes() {
		if a.Key == idleKey {
			return a.Value.AsBool()
		}
	}
	return false
}

// Shutdown implements sdktrace.SpanProcessor.
func (f *idleFilter) Shutdown(ctx context.Context) error { return f.next.Shutdown(ctx) }

// ForceFlush implements sdktrace.SpanProcessor.
func (f *idleFilter) ForceFlush(ctx context.Context) error { return f.next.ForceFlush(ctx) }
