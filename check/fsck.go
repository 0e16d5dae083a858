package check

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Catalog is what a walk reads.
type Catalog interface {
	catalog.Inspector
	Now(ctx context.Context) (time.Time, error)
	Settings(ctx context.Context) (catalog.Settings, error)
	Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error)
	Chains(ctx context.Context) ([]catalog.ChainRow, error)
	Topologies(ctx context.Context) ([]catalog.Topology, error)
	Streams(ctx context.Context, after string, limit int) ([]catalog.Stream, error)
	Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error)
	Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error)
	Intent(ctx context.Context, key string) (catalog.Intent, error)
	Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error)
}

// Config of a walk.
type Config struct {
	// Page is how many catalog rows are read at once. Default 1,000.
	Page int
	// MaxFindings caps each list of the report. Default 10,000.
	MaxFindings int
	// Progress is told after every object, if set.
	Progress func(objects, bytes int64)
}

// Fsck walks the whole deployment once.
func Fsck(ctx context.Context, cat Catalog, classes objstore.Classes, cfg Config) (*Report, error) {
	if cfg.Page == 0 {
		cfg.Page = 1000
	}
	if cfg.MaxFindings == 0 {
		cfg.MaxFindings = 10_000
	}
	w := &walk{cat: cat, classes: classes, cfg: cfg, report: &Report{Garbage: []GarbageItem{}, Damage: []DamageItem{}}}
	for _, step := range []func(context.Context) error{w.begin, w.buckets, w.uploads, w.streams} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	w.report.judge()
	return w.report, nil
}

// walk is one run of Fsck.
type walk struct {
	cat     Catalog
	classes objstore.Classes
	cfg     Config
	report  *Report
	now     time.Time
	grace   time.Duration // orphan grace
	chains  map[segment.Chain]catalog.ChainRow
	epochs  map[segment.Epoch]catalog.Topology
}

func (w *walk) begin(ctx context.Context) error {
	settings, err := w.cat.Settings(ctx)
	if err != nil {
		return fmt.Errorf("read the catalog's settings: %w", err)
	}
	if w.now, err = w.cat.Now(ctx); err != nil {
		return err
	}
	w.grace = settings.OrphanGrace.Deleting(w.now, catalog.DefaultOrphanGrace)
	rows, err := w.cat.Chains(ctx)
	if err != nil {
		return err
	}
	w.chains = make(map[segment.Chain]catalog.ChainRow, len(rows))
	for _, row := range rows {
		w.chains[row.Chain] = row
	}
	tops, err := w.cat.Topologies(ctx)
	if err != nil {
		return err
	}
	w.epochs = make(map[segment.Epoch]catalog.Topology, len(tops))
	for _, t := range tops {
		w.epochs[t.Epoch] = t
	}
	return nil
}

// buckets merges, class by class, the listing of every bucket with the refs that
// name keys of that class, both in key order.
func (w *walk) buckets(ctx context.Context) error {
	names := make([]string, 0, len(w.classes))
	for class := range w.classes {
		names = append(names, class)
	}
	slices.Sort(names)
	for _, class := range names {
		for i, store := range w.classes[class] {
			if err := w.bucket(ctx, class, store, i == 0); err != nil {
				return fmt.Errorf("class %s: %w", class, err)
			}
		}
	}
	return nil
}

// bucket walks one bucket. Only the deciding bucket of a set must hold everything.
func (w *walk) bucket(ctx context.Context, class string, store *objstore.Store, deciding bool) error {
	next, stop := iter.Pull2(w.keyed(ctx, segment.Class(class)))
	defer stop()
	refs, more, err := pull(next)
	if err != nil {
		return err
	}
	for info, err := range sortedListing(ctx, store) {
		if err != nil {
			return fmt.Errorf("list %s: %w", store.Name(), err)
		}
		for more && refs.key < info.Key {
			if err := w.missing(ctx, store, refs, deciding); err != nil {
				return err
			}
			if refs, more, err = pull(next); err != nil {
				return err
			}
		}
		w.count(info)
		if more && refs.key == info.Key {
			if err := w.named(ctx, store, info, refs.refs); err != nil {
				return err
			}
			if refs, more, err = pull(next); err != nil {
				return err
			}
			continue
		}
		if err := w.unnamed(ctx, store, info); err != nil {
			return err
		}
	}
	for more {
		if err := w.missing(ctx, store, refs, deciding); err != nil {
			return err
		}
		if refs, more, err = pull(next); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) count(info objstore.Info) {
	w.report.Objects++
	w.report.Bytes += info.Size
	if w.cfg.Progress != nil {
		w.cfg.Progress(w.report.Objects, w.report.Bytes)
	}
}

// keyedRefs are all refs of one key.
type keyedRefs struct {
	key  string
	refs []catalog.LiveRef
}

// keyed yields the refs of a class by key, in pages.
func (w *walk) keyed(ctx context.Context, class segment.Class) iter.Seq2[keyedRefs, error] {
	return func(yield func(keyedRefs, error) bool) {
		var after *catalog.Ref
		var group keyedRefs
		for {
			page, err := w.cat.RefsByKey(ctx, after, w.cfg.Page)
			if err != nil {
				yield(keyedRefs{}, fmt.Errorf("read refs: %w", err))
				return
			}
			for _, ref := range page {
				if ref.Class != class || ref.Kind == catalog.RefLost {
					continue
				}
				if ref.Key != group.key {
					if group.refs != nil && !yield(group, nil) {
						return
					}
					group = keyedRefs{key: ref.Key}
				}
				group.refs = append(group.refs, ref)
				w.report.Refs++
			}
			if len(page) < w.cfg.Page {
				break
			}
			after = &page[len(page)-1].Ref
		}
		if group.refs != nil {
			yield(group, nil)
		}
	}
}

func pull(next func() (keyedRefs, error, bool)) (keyedRefs, bool, error) {
	refs, err, ok := next()
	return refs, ok && err == nil, err
}

// sortedListing lists a bucket in key order, sorting where the store does not.
func sortedListing(ctx context.Context, store *objstore.Store) iter.Seq2[objstore.Info, error] {
	if store.Capabilities().OrderedList {
		return store.List(ctx, "", "")
	}
	return func(yield func(objstore.Info, error) bool) {
		var all []objstore.Info
		for info, err := range store.List(ctx, "", "") {
			if err != nil {
				yield(objstore.Info{}, err)
				return
			}
			all = append(all, info)
		}
		slices.SortFunc(all, func(a, b objstore.Info) int { return strings.Compare(a.Key, b.Key) })
		for _, info := range all {
			if !yield(info, nil) {
				return
			}
		}
	}
}

// missing: refs name a key that the listing did not show. The object is asked for
// by name, and the refs again: the listing may be older than the commit.
func (w *walk) missing(ctx context.Context, store *objstore.Store, k keyedRefs, deciding bool) error {
	if !deciding {
		return nil
	}
	info, err := store.Head(ctx, k.key)
	if err == nil {
		w.count(info)
		return w.named(ctx, store, info, k.refs)
	}
	if !errors.Is(err, objstore.ErrNotFound) {
		return err
	}
	refs, err := w.cat.Liveness(ctx, k.key)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if ref.LastPos().Less(ref.LiveFrom) {
			continue // retired soon: nobody may read it
		}
		w.damage(&ref.Ref, "its object is not in the bucket")
	}
	return nil
}

func (w *walk) damage(ref *catalog.Ref, why string) {
	w.report.addDamage(w.cfg.MaxFindings, DamageItem{
		Stream: ref.Stream, Epoch: ref.Epoch, First: ref.First, Last: ref.Last, Key: ref.Key, Why: why,
	})
}
