package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/strandline/strandline/catalog"
)

// wouldDo is a dry run for machines.
type wouldDo struct {
	DryRun bool     `json:"dry_run"`
	Would  []string `json:"would"`
}

func (a *app) printWould(w wouldDo) error {
	if a.json {
		return a.printJSON(w)
	}
	if len(w.Would) == 0 {
		w.Would = []string{"change nothing: the topology is so already"}
	}
	for _, step := range w.Would {
		if _, err := fmt.Fprintf(a.out, "would %s\n", step); err != nil {
			return err
		}
	}
	return nil
}

// saySteps is the dry run of a change.
func (r *reshard) saySteps(ctx context.Context, tops []catalog.Topology, next catalog.Topology) error {
	r.say("make epoch %d with %s, class %s (%s), settle %t, gives up: %s",
		next.Epoch, countOf(next.Shards, "shard"), next.Class, strings.Join(next.Buckets, ", "), next.Settle, retentionOf(next.Retention))
	var errs []error
	for _, old := range tops {
		if old.State == catalog.TopologyClosed {
			continue
		}
		owners, err := r.owners(ctx, old)
		errs = append(errs, err)
		r.say("close epoch %d: %s, %d of them with a living writer, which has %v to let go", old.Epoch, countOf(old.Shards, "shard"), len(owners), r.drain)
	}
	r.say("open epoch %d", next.Epoch)
	return errors.Join(errs...)
}
