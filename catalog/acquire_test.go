package catalog

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/strandline/strandline/segment"
)

// TestAcquireRow: who may take a chain, and what of its row changes with it.
func TestAcquireRow(t *testing.T) {
	me, other := segment.UUID{1}, segment.UUID{2}
	end := t0.Add(time.Minute)
	owned := ChainRow{Chain: segment.Chain{Epoch: 1}, Owner: other, Address: "there", Term: 4, LeaseEnd: end, AbsorbedEnd: 9}
	open := &Topology{Epoch: 1, State: TopologyOpen}
	ask := Acquire{Chain: owned.Chain, Owner: me, Address: "here", Expect: 4, Lease: time.Hour}
	with := func(change func(*Acquire)) Acquire { a := ask; change(&a); return a }
	for name, x := range map[string]struct {
		row      ChainRow
		a        Acquire
		epoch    *Topology
		now      time.Time
		kind     error
		takeover bool
	}{
		"after its lease":   {owned, ask, open, end, nil, true},
		"within its lease":  {owned, ask, open, end.Add(-1), ErrConflict, false},
		"stolen":            {owned, with(func(a *Acquire) { a.Steal = true }), open, t0, nil, true},
		"its own again":     {owned, with(func(a *Acquire) { a.Owner = other }), open, t0, nil, false},
		"resumed":           {owned, with(func(a *Acquire) { a.Owner, a.Resume = other, true }), open, t0, nil, false},
		"another's resumed": {owned, with(func(a *Acquire) { a.Resume = true }), open, end, ErrConflict, false},
		"nobody's":          {ChainRow{Chain: owned.Chain, Term: 4}, ask, open, t0, nil, false},
		"another term":      {owned, with(func(a *Acquire) { a.Expect = 3 }), open, end, ErrConflict, false},
		"closed":            {ChainRow{Chain: owned.Chain, Term: 4, Closed: true}, ask, open, t0, ErrConflict, false},
		"its epoch opening": {owned, ask, &Topology{Epoch: 1, State: TopologyOpening}, end, ErrConflict, false},
		"no such epoch":     {owned, ask, nil, end, ErrCorrupt, false},
		"no lease":          {owned, with(func(a *Acquire) { a.Lease = 0 }), open, end, ErrInvalid, false},
	} {
		got, takeover, err := AcquireRow(x.row, &x.a, x.epoch, x.now)
		if !errors.Is(err, x.kind) || (takeover != "") != x.takeover {
			t.Errorf("%s: takeover %q: %v", name, takeover, err)
		}
		if err == nil && (got.Term != 5 || got.Owner != x.a.Owner || got.Address != "here" || !got.LeaseEnd.Equal(x.now.Add(time.Hour)) || got.AbsorbedEnd != x.row.AbsorbedEnd) {
			t.Errorf("%s: became %+v", name, got)
		}
	}
}

// TestInheritConsumers: a chain begins with the consumers of those before it that its
// streams may come from, before the first row, and with no more than a chain may have.
func TestInheritConsumers(t *testing.T) {
	before, next := &Topology{Epoch: 1, Shards: 2}, &Topology{Epoch: 2, Shards: 4}
	row := func(e segment.Epoch, s segment.Shard, names ...string) (c ChainRow) {
		c.Chain = segment.Chain{Epoch: e, Shard: s}
		for _, n := range names {
			c.Consumers = append(c.Consumers, segment.Consumer{Name: n, Cursor: 7})
		}
		return c
	}
	many := make([]string, segment.MaxConsumers+1)
	for i := range many {
		many[i] = fmt.Sprintf("%05d", i)
	}
	chains := []ChainRow{row(1, 0, "a"), row(1, 1), row(2, 0), row(2, 1), row(2, 2), row(2, 3)}
	begin, said := InheritConsumers(before, next, chains)
	if len(said) != 0 || len(begin) != 2 || begin[0].Shard != 0 || begin[1].Shard != 2 {
		t.Fatalf("begin %+v, said %+v", begin, said)
	}
	for _, c := range begin {
		if c.Epoch != 2 || len(c.Consumers) != 1 || c.Consumers[0] != (segment.Consumer{Name: "a"}) {
			t.Errorf("chain %s begins with %+v", c.Chain, c.Consumers)
		}
	}
	begin[0].Consumers[0].Cursor = 9
	if begin[1].Consumers[0].Cursor != 0 || chains[2].Consumers != nil {
		t.Error("rows share their consumers")
	}
	chains[1] = row(1, 1, many...)
	begin, said = InheritConsumers(before, next, chains)
	if len(begin) != 4 || len(begin[1].Consumers) != segment.MaxConsumers || len(said) != 2 || said[0].Subject != chains[3].Chain.String() {
		t.Errorf("too many consumers: %d rows, said %+v", len(begin), said)
	}
	if begin, said := InheritConsumers(nil, next, chains); begin != nil || said != nil {
		t.Errorf("of no epoch: %+v, %+v", begin, said)
	}
}
