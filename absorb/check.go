package absorb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// ChainCatalog is what the absorb-check duty needs of a catalog.
type ChainCatalog interface {
	MendCatalog
	Now(ctx context.Context) (time.Time, error)
	Chains(ctx context.Context) ([]catalog.ChainRow, error)
	Topologies(ctx context.Context) ([]catalog.Topology, error)
}

// Checker is the auditor's absorb-check: chains whose lease has ended are looked
// at, and what stands at absorbed_end on is absorbed.
type Checker struct {
	Catalog ChainCatalog
	Classes objstore.Classes
}

// RunOnce looks at every open chain without a living lease, and then at the copies of
// every chain whose set has more than one bucket. One chain's failure holds up no other;
// all are returned.
func (k Checker) RunOnce(ctx context.Context) (Report, error) {
	var sum Report
	due, classes, err := k.due(ctx)
	if err != nil {
		return sum, err
	}
	var errs []error
	for _, row := range due {
		if ctx.Err() != nil {
			return sum, errors.Join(append(errs, ctx.Err())...)
		}
		done, err := k.chain(ctx, row.Chain, classes[row.Epoch])
		sum.Absorbed += done.Absorbed
		sum.Voided += done.Voided
		if err != nil {
			errs = append(errs, fmt.Errorf("absorb-check of chain %s: %w", row.Chain, err))
		}
	}
	sum.Copied, err = k.mend(ctx, classes)
	return sum, errors.Join(append(errs, err)...)
}

// mend makes the copies that are missing, class by class. The owner's lease does not
// matter: a copy is what stands in the first bucket, whoever makes it.
func (k Checker) mend(ctx context.Context, classes map[segment.Epoch]segment.Class) (made int, err error) {
	sets := map[segment.Class][]catalog.ChainRow{}
	for class, set := range k.Classes {
		if len(set) > 1 {
			sets[segment.Class(class)] = nil
		}
	}
	if len(sets) == 0 {
		return 0, nil // the ordinary deployment is asked nothing more
	}
	rows, err := k.Catalog.Chains(ctx) // again: slots were absorbed since
	if err != nil {
		return 0, fmt.Errorf("absorb-check: read the chains: %w", err)
	}
	for _, row := range rows {
		if class := classes[row.Epoch]; len(k.Classes[string(class)]) > 1 {
			sets[class] = append(sets[class], row)
		}
	}
	var errs []error
	for class, rows := range sets {
		n, err := Mend(ctx, k.Catalog, Bucket{Set: k.Classes[string(class)], Class: class}, rows)
		made += n
		errs = append(errs, err)
	}
	return made, errors.Join(errs...)
}

// due reads all that decides, before anything is done.
func (k Checker) due(ctx context.Context) ([]catalog.ChainRow, map[segment.Epoch]segment.Class, error) {
	topologies, err := k.Catalog.Topologies(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("absorb-check: read the topology: %w", err)
	}
	rows, err := k.Catalog.Chains(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("absorb-check: read the chains: %w", err)
	}
	now, err := k.Catalog.Now(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("absorb-check: read the clock: %w", err)
	}
	classes := make(map[segment.Epoch]segment.Class, len(topologies))
	for _, t := range topologies {
		classes[t.Epoch] = t.Class
	}
	var due []catalog.ChainRow
	for _, row := range rows {
		if leaseEnded(row, now) {
			due = append(due, row)
		}
	}
	return due, classes, nil
}

// leaseEnded: a chain that nobody ever owned has nothing to absorb, and a closed one
// is complete.
func leaseEnded(row catalog.ChainRow, now time.Time) bool {
	return row.Owner != uuid.Nil && !row.Closed && row.LeaseEnd.Before(now)
}

func (k Checker) chain(ctx context.Context, c segment.Chain, class segment.Class) (Report, error) {
	set, err := k.Classes.Set(string(class))
	if err != nil {
		return Report{}, err
	}
	// Owed: a bucket that hangs is waited for once, not at every slot. What it misses is
	// mended at the end of this pass, or of a later one.
	return All(ctx, k.Catalog, Bucket{Set: set, Class: class, Owed: NewOwed()}, c, Caller{})
}
