package catalogbench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// sample is one measurement of a verb, or of the bare insert beside it.
type sample struct {
	rows       int
	took       time.Duration
	perSecond  float64 // of many calls at once; took is then of one
	concurrent bool
	pages      int // that SQLite wrote to its log
}

// bareOf is the name of the bare insert's samples.
func bareOf(verb string) string { return "bare " + verb }

// round measures every verb once or a few times, and adds to into.
func (c *chain) round(ctx context.Context, p *place, o *Options, into map[string][]sample) error {
	// What the bare inserts of the round before wrote makes SQLite forget all the pages that
	// the committer's connection knew. Those of every stream come back with this one.
	if _, err := c.absorb(ctx, c.scattered(largeSlot, 0)); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	small, err := c.absorbed(ctx, absorbSmall, smallSlot, o.Absorbs, into)
	if err != nil {
		return err
	}
	for _, m := range []struct {
		name string
		run  func() (sample, error)
	}{
		{plan, func() (sample, error) { return c.planned(ctx) }},
		{liveness, func() (sample, error) { return c.living(ctx, small[0]) }},
		{takeDue, func() (sample, error) { return c.taken(ctx) }},
	} {
		for range o.Absorbs {
			s, err := m.run()
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			into[m.name] = append(into[m.name], s)
		}
	}
	s, err := c.renewed(ctx, o.Renewing)
	if err != nil {
		return fmt.Errorf("%s: %w", renew, err)
	}
	into[renew] = append(into[renew], s)
	if s, err = c.rewritten(ctx); err != nil {
		return fmt.Errorf("%s: %w", commit, err)
	}
	into[commit] = append(into[commit], s)
	large, err := c.absorbed(ctx, absorbLarge, largeSlot, max(o.Absorbs/2, 1), into)
	if err != nil {
		return err
	}
	return bareRound(ctx, p, small, large, into)
}

// absorbed takes slots, and gives their keys.
func (c *chain) absorbed(ctx context.Context, name string, refs, times int, into map[string][]sample) (keys []string, err error) {
	for i := range times {
		slot := c.scattered(refs, i)
		before, err := c.logged(ctx)
		if err != nil {
			return nil, err
		}
		took, err := c.absorb(ctx, slot)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		after, err := c.logged(ctx)
		if err != nil {
			return nil, err
		}
		if after > before {
			after -= before // else the log began anew with this slot
		}
		into[name], keys = append(into[name], sample{rows: refs, took: took, pages: after}), append(keys, slot.Key)
	}
	return keys, nil
}

// bareRound puts the same rows back without the verb. It warms up, too.
func bareRound(ctx context.Context, p *place, small, large []string, into map[string][]sample) error {
	if _, err := p.bare.PutBack(ctx, large[0]); err != nil {
		return fmt.Errorf("the bare insert, warming up: %w", err)
	}
	for _, m := range []struct {
		name string
		rows int
		keys []string
	}{{absorbSmall, smallSlot, small}, {absorbLarge, largeSlot, large}} {
		for _, key := range m.keys {
			put, err := p.bare.PutBack(ctx, key)
			if err == nil && put.Rows != m.rows {
				err = fmt.Errorf("it found %d of %d rows", put.Rows, m.rows)
			}
			if err != nil {
				return fmt.Errorf("the bare insert: %w", err)
			}
			into[bareOf(m.name)] = append(into[bareOf(m.name)], sample{rows: put.Rows, took: put.Took})
		}
	}
	return nil
}

func (c *chain) planned(ctx context.Context) (sample, error) {
	began := time.Now()
	got, err := c.cat.Plan(ctx, catalog.PlanRequest{Stream: deepStream, Limit: deepRefs})
	return counting(len(got.Refs), deepRefs, time.Since(began), err)
}

func (c *chain) living(ctx context.Context, key string) (sample, error) {
	began := time.Now()
	got, err := c.cat.Liveness(ctx, key)
	return counting(len(got), smallSlot, time.Since(began), err)
}

// taken leases 1,000 markers. The lease is over at once, so that there are as many to take
// the next time.
func (c *chain) taken(ctx context.Context) (sample, error) {
	const markers = 1000
	t := catalog.Take{Duties: []catalog.Duty{catalog.DutyReapCheck, catalog.DutyOrphan}, Owner: "bench", Lease: time.Nanosecond, Limit: markers, Ahead: 48 * time.Hour}
	began := time.Now()
	got, err := c.cat.TakeDue(ctx, t)
	return counting(len(got), markers, time.Since(began), err)
}

func counting(got, want int, took time.Duration, err error) (sample, error) {
	if err == nil && got != want {
		err = fmt.Errorf("%d of %d rows", got, want)
	}
	return sample{rows: want, took: took}, err
}

// renewed is the compare-and-set: 16 clients, each with a chain of its own.
func (c *chain) renewed(ctx context.Context, during time.Duration) (sample, error) {
	var calls atomic.Int64
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for shard := range segment.Shard(shards) {
		g.Go(func() error {
			for time.Since(began) < during {
				if _, err := c.cat.RenewChain(ctx, segment.Chain{Epoch: 1, Shard: shard}, owner, 1, 24*time.Hour); err != nil {
					return err
				}
				calls.Add(1)
			}
			return nil
		})
	}
	err := g.Wait()
	took := time.Since(began)
	return sample{took: took / time.Duration(max(calls.Load(), 1)), perSecond: float64(calls.Load()) / took.Seconds(), concurrent: true}, err
}

// rewritten commits the earliest slot that owes a settle as one pack of 10,000 members.
func (c *chain) rewritten(ctx context.Context) (s sample, err error) {
	h := catalog.Holder{Duty: catalog.DutySettle, ID: catalog.ChainID(c.Chain), Owner: "bench"}
	if err := c.cat.LeaseDuty(ctx, h, time.Hour); err != nil {
		return s, err
	}
	w, err := c.cat.Window(ctx, c.Chain, 1) // one slot at least
	if err != nil {
		return s, err
	}
	if len(w.Slots) != 1 || len(w.Refs) != largeSlot {
		return s, fmt.Errorf("a window of %d slots and %d refs, not of one slot and %d", len(w.Slots), len(w.Refs), largeSlot)
	}
	r := catalog.Rewrite{Key: segment.PackKey(c.Chain, w.Slots[0].ID, w.Slots[0].ID, 0), Nonce: "bench"}
	if _, err := c.cat.Announce(ctx, catalog.Announce{Key: r.Key, Class: class, Holder: h, Nonce: r.Nonce, Deadline: time.Minute}); err != nil {
		return s, err
	}
	for i := range w.Refs {
		n := w.Refs[i]
		n.Key, n.Kind, n.Revision = r.Key, catalog.RefPack, 0
		r.Runs = append(r.Runs, catalog.Run{Expect: w.Refs[i : i+1], New: n})
	}
	began := time.Now()
	got, err := c.cat.CommitRewrite(ctx, r)
	if s, err = counting(len(got.Committed), largeSlot, time.Since(began), err); err != nil {
		return s, err
	}
	n, err := c.cat.ResolveSettled(ctx, c.Chain, []catalog.MarkerRef{w.Slots[0].Marker.MarkerRef})
	if err == nil && n != 1 {
		err = errors.New("the slot's settle marker stands")
	}
	return s, err
}
