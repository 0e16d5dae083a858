package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// takenWithin is how long running writers have to take their share of a new epoch: they hear
// of it within localtier.DefaultTopologyEvery, and open their shards then.
const (
	takenWithin = 3 * localtier.DefaultTopologyEvery
	// quietFor is how long none more is taken once some are, before the rest is told of.
	quietFor = 3 * time.Second
)

// untaken are the shards of the open epoch that no living writer has: what is appended to
// their streams is refused until one takes them.
type untaken struct {
	Epoch  segment.Epoch   `json:"epoch"`
	Shards []segment.Shard `json:"shards"`
}

// untakenOf looks at the leases; nil: no epoch is open, or each of its shards is taken.
func untakenOf(tops []catalog.Topology, chains []catalog.ChainRow, now time.Time) *untaken {
	for _, top := range tops {
		if top.State != catalog.TopologyOpen {
			continue
		}
		taken := map[segment.Shard]bool{}
		for i := range chains {
			if c := &chains[i]; c.Epoch == top.Epoch && now.Before(c.LeaseEnd) {
				taken[c.Shard] = true
			}
		}
		out := &untaken{Epoch: top.Epoch}
		for shard := range segment.Shard(top.Shards) {
			if !taken[shard] {
				out.Shards = append(out.Shards, shard)
			}
		}
		if len(out.Shards) > 0 {
			return out
		}
	}
	return nil
}

// String is the finding with the next step.
func (u *untaken) String() string {
	shards, subject := shardsText(u.Shards), "no living writer has shard"
	if len(u.Shards) > 1 {
		subject += "s"
	}
	return fmt.Sprintf("%s %s of epoch %d, and rows of their streams are refused: start a writer that takes them, strandline writer --shards %s",
		subject, shards, u.Epoch, shards)
}

// shardsText writes shards as --shards reads them: 0-3,7.
func shardsText(shards []segment.Shard) string {
	var parts []string
	for i := 0; i < len(shards); {
		last := i
		for last+1 < len(shards) && shards[last+1] == shards[last]+1 {
			last++
		}
		if part := num(shards[i]); last == i {
			parts = append(parts, part)
		} else {
			parts = append(parts, part+"-"+num(shards[last]))
		}
		i = last + 1
	}
	return strings.Join(parts, ",")
}

// untakenNow asks the catalog.
func untakenNow(ctx context.Context, cat catalog.Catalog) (u *untaken, living int, err error) {
	now, err := cat.Now(ctx)
	if err != nil {
		return nil, 0, err
	}
	tops, err := cat.Topologies(ctx)
	if err != nil {
		return nil, 0, err
	}
	chains, err := cat.Chains(ctx)
	for i := range chains {
		if c := &chains[i]; !c.Closed && now.Before(c.LeaseEnd) {
			living++
		}
	}
	return untakenOf(tops, chains, now), living, err
}

// noteUntaken tells who changed the topology which shards of the open epoch nobody has. Writers
// that are running get the time to take theirs.
func (a *app) noteUntaken(ctx context.Context, cat catalog.Catalog, running bool) error {
	left := -1
	for end := time.Now().Add(takenWithin); ; {
		u, _, err := untakenNow(ctx, cat)
		if err != nil || u == nil {
			return err
		}
		if n := len(u.Shards); n != left {
			if left >= 0 {
				end = time.Now().Add(quietFor)
			}
			left = n
		}
		if !running || time.Now().After(end) {
			fmt.Fprintf(a.err, "strandline: note: %s\n", u)
			return nil
		}
		select {
		case <-time.After(drainEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
