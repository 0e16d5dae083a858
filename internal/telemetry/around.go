package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/verbs"
)

// Catalog is c with every verb timed, and traced within a span.
func (p *Provider) Catalog(c catalog.Catalog) catalog.Catalog { return verbs.Around(c, p.Verb) }

// Verb times one verb; it is a verbs.Func.
func (p *Provider) Verb(ctx context.Context, v verbs.Verb, do func(context.Context) error) error {
	ctx, end := p.traceVerb(ctx, v.Name)
	began := time.Now()
	err := do(ctx)
	p.ins.verb.Record(ctx, time.Since(began).Seconds(), p.labels.of("verb", v.Name, "outcome", outcomeOf(ctx, err)))
	end(err)
	return err
}

// kinds are the catalog's errors in a word each, the ones within others first.
var kinds = []struct {
	kind error
	name string
}{
	{catalog.ErrFenced, "fenced"},
	{catalog.ErrRolledBack, "rolled-back"},
	{catalog.ErrBeyondTip, "beyond-tip"},
	{catalog.ErrVoid, "void"},
	{catalog.ErrNotFound, "not-found"},
	{catalog.ErrConflict, "conflict"},
	{catalog.ErrAmbiguous, "ambiguous"},
	{catalog.ErrNewer, "newer"},
	{catalog.ErrUnavailable, "unavailable"},
	{catalog.ErrInvalid, "invalid"},
	{catalog.ErrReadOnly, "read-only"},
	{catalog.ErrCorrupt, "corrupt"},
	{catalog.ErrNoSpace, "no-space"},
}

// outcomeOf says what a verb ended in. One whose caller went away says nothing about the
// catalog, whatever it calls that.
func outcomeOf(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(ctx.Err(), context.Canceled):
		return "cancelled"
	}
	for _, k := range kinds {
		if errors.Is(err, k.kind) {
			return k.name
		}
	}
	return "other"
}

// Duty times and traces a pass; it is auditor.Deps.Around. Passes that found nothing to
// do are neither counted nor traced: they come every second.
func (p *Provider) Duty(ctx context.Context, duty string, run func(context.Context) (int, error)) (int, error) {
	ctx, end := p.traceDuty(ctx, duty)
	began := time.Now()
	worked, err := run(ctx)
	if worked > 0 || err != nil {
		outcome := "worked"
		if err != nil {
			outcome = "failed"
		}
		p.ins.duty.Record(ctx, time.Since(began).Seconds(), p.labels.of("duty", duty, "outcome", outcome))
	}
	end(worked, err)
	return worked, err
}

// labelSets are remembered pairs of labels: a set is sorted and hashed once.
type labelSets struct{ known sync.Map } // of [4]string: metric.MeasurementOption

// of is for values of closed sets only: what it is asked for once it keeps.
func (l *labelSets) of(key1, value1, key2, value2 string) metric.MeasurementOption {
	id := [4]string{key1, value1, key2, value2}
	if have, ok := l.known.Load(id); ok {
		return have.(metric.MeasurementOption)
	}
	made := metric.WithAttributeSet(attribute.NewSet(attribute.String(key1, value1), attribute.String(key2, value2)))
	have, _ := l.known.LoadOrStore(id, made)
	return have.(metric.MeasurementOption)
}
