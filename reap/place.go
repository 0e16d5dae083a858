package reap

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// place is where a chain's slots stand.
type place struct {
	chain segment.Chain
	class segment.Class
	set   objstore.Set
}

// topologies is what says where.
type topologies interface {
	Topologies(ctx context.Context) ([]catalog.Topology, error)
}

// placeOf looks the chain's bucket set up. Fewer stores than the epoch was made
// with would leave copies behind.
func placeOf(ctx context.Context, cat topologies, classes objstore.Classes, chain segment.Chain) (place, error) {
	all, err := cat.Topologies(ctx)
	if err != nil {
		return place{}, err
	}
	top := catalog.EpochIn(all, chain.Epoch)
	if top == nil {
		return place{}, fmt.Errorf("%w: topology of epoch %d", catalog.ErrNotFound, chain.Epoch)
	}
	set, err := classes.Set(string(top.Class))
	if err != nil {
		return place{}, err
	}
	if n := len(top.Buckets); n > 0 && n != len(set) {
		return place{}, fmt.Errorf("%w: epoch %d was made with %d buckets of class %s, %d are configured: give --store %s all of them",
			objstore.ErrInvalid, chain.Epoch, n, top.Class, len(set), top.Class)
	}
	return place{chain: chain, class: top.Class, set: set}, nil
}
