package main

import (
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// changesEpoch: these are constants of an epoch, so that another value is another epoch.
func (f *topologyFlags) changesEpoch() bool {
	return f.given("shards") || f.given("class") || f.given("settle")
}

// next is the topology that is asked for, beginning from the last one.
func (f *topologyFlags) next(last catalog.Topology, classes objstore.Classes) (catalog.Topology, error) {
	next := last
	if f.given("shards") {
		next.Shards = f.shards
	}
	if f.given("settle") {
		next.Settle = f.settle
	}
	if !f.given("class") {
		return next, nil
	}
	set, err := classes.Set(f.class)
	if err != nil {
		return next, usage("--class: %w", err)
	}
	next.Class, next.Buckets = segment.Class(f.class), namesOf(set)
	return next, nil
}

// sameEpoch tells whether b would be the epoch a again.
func sameEpoch(a, b catalog.Topology) bool {
	return a.Shards == b.Shards && a.Class == b.Class && a.Settle == b.Settle && slices.Equal(a.Buckets, b.Buckets)
}

func namesOf(set objstore.Set) []string {
	names := make([]string, len(set))
	for i, s := range set {
		names[i] = s.Name()
	}
	return names
}
