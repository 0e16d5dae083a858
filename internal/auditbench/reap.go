package auditbench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/probe"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
)

// probing is how many probes are in flight, as in a reaper's pass.
const probing = 16

// reaped is one round.
type reaped struct {
	probes, first, second spent
	deleting              float64 // seconds in the store's delete, of second
	bare                  float64 // seconds
}

// reapPart reaps dead objects beside a bare delete of as many. Who comes first goes by turns.
func (b *bench) reapPart(ctx context.Context, r *Report) error {
	out := &Reap{Objects: b.o.Objects, BareName: "the store's driver"}
	if b.o.Bare != nil {
		out.BareName = b.o.Bare.Name
	}
	var all []reaped
	for round := range b.o.Rounds {
		b.step("reap")
		a := newAuthor(time.Now)
		err := b.within(ctx, fmt.Sprintf("reap-%d", round), a, func(t *tier) error {
			one, err := b.reapOnce(ctx, t, a, round%2 == 1)
			all = append(all, one)
			return err
		})
		if err != nil {
			return err
		}
	}
	out.sum(all)
	r.Reap = out
	return nil
}

func (b *bench) reapOnce(ctx context.Context, t *tier, a *author, bareFirst bool) (one reaped, err error) {
	n := b.o.Objects
	if err := t.objects(ctx, a, 0, n); err != nil {
		return one, err
	}
	bare := t.driver.dir + "bare/"
	if err := b.copies(ctx, t, bare); err != nil {
		return one, err
	}
	if err := t.kill(ctx, 0, n); err != nil {
		return one, err
	}
	if err := t.teardown(ctx); err != nil {
		return one, err
	}
	t.clock.advance(readGrace)
	if one.probes, err = t.probeAll(ctx); err != nil {
		return one, err
	}
	if one.first, err = t.measure(func() error { return t.reap(ctx, reap.Confirmed, n) }); err != nil {
		return one, err
	}
	t.clock.advance(readGrace)
	if bareFirst {
		one.bare, err = b.bareDelete(ctx, bare)
	}
	if err != nil {
		return one, err
	}
	before := t.driver.deleting.Load()
	if one.second, err = t.measure(func() error { return t.reap(ctx, reap.Reaped, n) }); err != nil {
		return one, err
	}
	one.deleting = time.Duration(t.driver.deleting.Load() - before).Seconds()
	if !bareFirst {
		one.bare, err = b.bareDelete(ctx, bare)
	}
	return one, err
}

// copies puts, under a directory of its own, an object for each settled one, under the same key and of the same size.
func (b *bench) copies(ctx context.Context, t *tier, dir string) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(preparing)
	for info, err := range t.store.List(ctx, segment.ObjPrefix, "") {
		if err != nil {
			return errorAfter(group, err)
		}
		group.Go(func() error {
			_, err := b.store.PutOnce(gctx, dir+info.Key, make([]byte, info.Size), nil)
			return err
		})
	}
	return group.Wait()
}

func errorAfter(group *errgroup.Group, err error) error {
	_ = group.Wait() // err was first
	return err
}

// bareDelete times a bulk delete of all keys under dir with nothing around it.
func (b *bench) bareDelete(ctx context.Context, dir string) (seconds float64, err error) {
	var keys []string
	for info, err := range b.store.List(ctx, dir, "") {
		if err != nil {
			return 0, err
		}
		keys = append(keys, info.Key)
	}
	if len(keys) != b.o.Objects {
		return 0, fmt.Errorf("%d objects to delete bare, want %d", len(keys), b.o.Objects)
	}
	began := time.Now()
	for set := range slices.Chunk(keys, orphan.BatchMax) {
		if err := b.deleteSet(ctx, set); err != nil {
			return 0, err
		}
	}
	return time.Since(began).Seconds(), nil
}

func (b *bench) deleteSet(ctx context.Context, keys []string) error {
	if b.o.Bare != nil {
		return b.o.Bare.Delete(ctx, keys)
	}
	fates, err := b.store.Driver().Delete(ctx, keys)
	for _, f := range fates {
		if err == nil {
			err = f.Err
		}
	}
	return err
}

// probeAll looks at every settled object.
func (t *tier) probeAll(ctx context.Context) (spent, error) {
	var keys []string
	for info, err := range t.store.List(ctx, segment.ObjPrefix, "") {
		if err != nil {
			return spent{}, err
		}
		keys = append(keys, info.Key)
	}
	return t.measure(func() error {
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(probing)
		for _, key := range keys {
			group.Go(func() error {
				verdict, _, err := probe.Probe(gctx, t.store, t.cat, probe.Object{Key: key, Class: segment.ClassStandard}, probe.DefaultGCLeast)
				if err == nil && verdict != probe.Reapable {
					err = fmt.Errorf("%s: verdict %q of a dead object", key, verdict)
				}
				return err
			})
		}
		return group.Wait()
	})
}

// reap runs passes until nothing is due, and holds every outcome of n against want.
func (t *tier) reap(ctx context.Context, want reap.Outcome, n int) error {
	reaper := reap.New(t.cat, t.classes, orphan.NewDeleter(t.classes), probe.DefaultGCLeast)
	got := 0
	for {
		due, err := t.take(ctx, catalog.DutyReapCheck)
		if err != nil {
			return err
		}
		if len(due) == 0 {
			break
		}
		for _, res := range reaper.RunOnce(ctx, due) {
			if res.Err != nil || res.Outcome != want {
				return fmt.Errorf("%s: %q, want %q: %w", res.Marker.ID, res.Outcome, want, res.Err)
			}
			got++
		}
	}
	if got != n {
		return fmt.Errorf("%d objects were %s, want %d", got, want, n)
	}
	return nil
}

func (o *Reap) sum(all []reaped) {
	n := float64(o.Objects)
	rate := func(of func(reaped) float64) float64 { return over(n, median(all, of)) }
	o.ProbesPerSecond = rate(func(r reaped) float64 { return r.probes.seconds })
	o.ConfirmsPerSec = rate(func(r reaped) float64 { return r.first.seconds })
	o.ReapsPerSecond = rate(func(r reaped) float64 { return r.second.seconds })
	o.BareDeletesPerSecond = rate(func(r reaped) float64 { return r.bare })
	o.DeleteRatio = median(all, func(r reaped) float64 { return over(r.bare, r.deleting) })
	o.ReapRatio = median(all, func(r reaped) float64 { return over(r.bare, r.second.seconds) })
	o.TwoPassesRatio = median(all, func(r reaped) float64 { return over(r.bare, r.first.seconds+r.second.seconds) })
	both := func(r reaped) spent { return r.first.plus(r.second) }
	o.CPUSeconds = median(all, func(r reaped) float64 { return both(r).cpuSeconds })
	o.Verbs = median(all, func(r reaped) float64 { return float64(both(r).verbs) / n })
	o.Gets = median(all, func(r reaped) float64 { return float64(both(r).gets()) / n })
	o.Deletes = median(all, func(r reaped) float64 { return float64(both(r).requests.Requests[objstore.OpDelete]) / n })
	for _, r := range all {
		o.see(both(r))
	}
}
