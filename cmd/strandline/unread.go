package main

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// unread is what a consumer has yet to read in a chain of an ended epoch.
type unread struct {
	chain segment.Chain
	rows  uint64
}

// unreadBefore lists what a consumer of this name has yet to read of the streams of a
// shard, in the epochs before: those rows come before the shard's own. chains are all rows.
func unreadBefore(tops []catalog.Topology, chains []catalog.ChainRow, at catalog.Topology, shard segment.Shard, name string) (out []unread) {
	feeds := make(map[segment.Chain]bool)
	for i := range tops {
		if tops[i].Epoch >= at.Epoch {
			continue
		}
		for _, s := range catalog.Feeding(tops[i].Shards, at.Shards, shard) {
			feeds[segment.Chain{Epoch: tops[i].Epoch, Shard: s}] = true
		}
	}
	for i := range chains {
		row := &chains[i]
		if !feeds[row.Chain] {
			continue
		}
		for _, k := range row.Consumers {
			if last := max(row.NextSeq, 1) - 1; k.Name == name && k.Cursor < last {
				out = append(out, unread{row.Chain, uint64(last - k.Cursor)})
			}
		}
	}
	return out
}

// noteUnread tells who pulls from an epoch what waits in those before.
func (a *app) noteUnread(ctx context.Context, t *tier, epoch segment.Epoch, shard segment.Shard, name string) error {
	tops, err := t.catalog.Topologies(ctx)
	if err != nil {
		return err
	}
	at, err := epochOf(tops, epoch)
	if err != nil || at.Epoch == tops[0].Epoch { // nothing was before
		return err
	}
	chains, err := t.catalog.Chains(ctx)
	if err != nil {
		return err
	}
	for _, u := range unreadBefore(tops, chains, at, shard, name) {
		fmt.Fprintf(a.err, "strandline: note: consumer %s has %s unread in shard %d of epoch %d, which come before these: strandline consumers pull %d %s --epoch %d\n",
			name, countOf(u.rows, "row"), u.chain.Shard, u.chain.Epoch, u.chain.Shard, name, u.chain.Epoch)
	}
	return nil
}
