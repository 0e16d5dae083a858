package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/verbs"
	"github.com/strandline/strandline/segment"
)

// newCatalog is c with every verb of the process a step. Close ends nothing: the catalog is
// everybody's.
func newCatalog(p *process, c catalog.Catalog) catalog.Catalog {
	return stepCatalog{verbs.Around(c, p.verb)}
}

type stepCatalog struct{ catalog.Catalog }

// Close implements catalog.Catalog.
func (stepCatalog) Close() error { return nil }

// verb makes one verb.
func (p *process) verb(ctx context.Context, v verbs.Verb, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return notAsked(ctx, v.Name)
	}
	var err error
	c := &call{p: p, what: "cat " + v.Name, key: keyOf(v.About...), mutates: v.Mutates}
	c.apply = func(fate) {
		if v.Name == "AcceptLoss" {
			p.sim.check.accepting(v.About[0].(string), v.About[1].(string))
		}
		if err = do(context.WithoutCancel(ctx)); err == nil && v.Name == "CommitRewrite" {
			p.sim.committed(p, v.About[0].(catalog.Rewrite))
		}
	}
	f := p.sim.park(ctx, c)
	switch f.kind {
	case FaultNone:
		return err
	case faultUnmade:
		return notAsked(ctx, v.Name)
	}
	kind := catalog.ErrUnavailable
	if c.mutates && (f.kind == FaultLost || f.kind == FaultLate || f.kind == FaultTimeout || f.kind == FaultDead || f.kind == FaultCrashAfter) {
		kind = catalog.ErrAmbiguous
	}
	return fmt.Errorf("%w: %s: %w: %s", kind, v.Name, errInjected, f.kind)
}

// notAsked is the answer to a caller whose ctx is over.
func notAsked(ctx context.Context, verb string) error {
	return fmt.Errorf("%w: %s: %w", catalog.ErrUnavailable, verb, context.Cause(ctx))
}

// keyOf names what a verb is about, without what differs between two runs of a seed:
// UUIDs and nonces.
func keyOf(args ...any) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteByte(' ')
		b.WriteString(aboutOf(a))
	}
	return strings.TrimPrefix(b.String(), " ")
}

func aboutOf(a any) string {
	switch a := a.(type) {
	case catalog.Acquire:
		return fmt.Sprintf("%s term %d resume %t steal %t", a.Chain, a.Expect, a.Resume, a.Steal)
	case catalog.Absorb:
		return fmt.Sprintf("%s term %d by %d void %t", a.Key, a.Slot.Term, a.CallerTerm, a.Void)
	case catalog.Announce:
		return fmt.Sprintf("%s for %s %s", a.Key, a.Holder.Duty, a.Holder.ID)
	case catalog.Rewrite:
		return fmt.Sprintf("%s %d runs", a.Key, len(a.Runs))
	case catalog.Holder:
		return fmt.Sprintf("%s %s %s", a.Duty, a.ID, a.Owner)
	case catalog.MarkerRef:
		return fmt.Sprintf("%s %s", a.Duty, a.ID)
	case catalog.Take:
		return fmt.Sprintf("%v %s", a.Duties, a.Owner)
	case catalog.PlanRequest:
		return fmt.Sprintf("%s %s..%s", a.Stream, a.From, a.To)
	case catalog.Watermark:
		return fmt.Sprintf("%s seq %d", a.Chain, a.Seq)
	case catalog.Topology:
		return fmt.Sprintf("epoch %d", a.Epoch)
	case catalog.Retention:
		return string(a.Mode)
	case segment.Chain:
		return a.String()
	case []catalog.MarkerRef:
		return fmt.Sprintf("%d markers", len(a))
	case []catalog.Ref:
		if len(a) == 0 {
			return "no refs"
		}
		return fmt.Sprintf("%d refs from %s %s", len(a), a[0].Stream, a[0].FirstPos())
	case *catalog.Ref:
		if a == nil {
			return "first"
		}
		return a.Key
	case time.Duration:
		return a.String()
	}
	return fmt.Sprint(a)
}
