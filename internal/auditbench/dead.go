package auditbench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/settle"
)

// smallRows of text make an object of some KiB: what reaping costs does not depend on it.
const smallRows = 20

// preparing is how many calls prepare at once.
const preparing = 16

// objects settles n streams, named by a range, into an object each.
func (t *tier) objects(ctx context.Context, a *author, from, to int) error {
	settler, err := t.settler(settle.Config{StreamObjectMin: 1, Outputs: preparing})
	if err != nil {
		return err
	}
	for ; from < to; from += slotStreams {
		var calls []call
		for i := from; i < min(to, from+slotStreams); i++ {
			calls = append(calls, call{stream: nameOf(i), rows: smallRows})
		}
		s, err := a.seal(calls)
		if err != nil {
			return err
		}
		if err := t.publish(ctx, s); err != nil {
			return err
		}
	}
	_, err = t.settle(ctx, settler)
	return err
}

func nameOf(i int) string { return fmt.Sprintf("object/%06d", i) }

// kill deletes the streams of a range.
func (t *tier) kill(ctx context.Context, from, to int) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(preparing)
	for i := from; i < to; i++ {
		group.Go(func() error {
			_, err := t.db.DeleteStream(gctx, nameOf(i))
			return err
		})
	}
	return group.Wait()
}

// teardown walks what was killed: the objects' reap-checks are due one grace later.
func (t *tier) teardown(ctx context.Context) error {
	walker := reap.NewWalker(t.cat, t.classes, orphan.NewDeleter(t.classes))
	for {
		due, err := t.take(ctx, catalog.DutyTeardown)
		if err != nil || len(due) == 0 {
			return err
		}
		for _, res := range walker.RunOnce(ctx, due) {
			if res.Err != nil {
				return res.Err
			}
		}
	}
}

// take leases due markers of a duty, as many as a pass takes.
func (t *tier) take(ctx context.Context, d catalog.Duty) ([]catalog.Marker, error) {
	return t.cat.TakeDue(ctx, catalog.Take{Duties: []catalog.Duty{d}, Owner: owner, Lease: time.Minute, Limit: orphan.BatchMax})
}
