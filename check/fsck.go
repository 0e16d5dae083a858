package check

import (
	"context"
	"fmt"
	"iter"
	"slices"
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
	DeadRefs(ctx context.Context, c segment.Chain, limit int) (refs []catalog.Ref, more bool, err error)
	Marker(ctx context.Context, d catalog.Duty, id string) (catalog.Marker, error)
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
	for _, step := range []func(context.Context) error{w.begin, w.heads, w.buckets, w.uploads, w.streams, w.reclaims} {
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
	epochs  map[segment.Epoch]segment.Class
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
	return w.cursors(ctx)
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
			if err := w.bucket(ctx, place{class, store, i == 0}); err != nil {
				return fmt.Errorf("class %s: %w", class, err)
			}
		}
	}
	return nil
}

// place is the bucket being walked. Only the deciding one of a set must hold
// everything.
type place struct {
	class    string
	store    *objstore.Store
	deciding bool
}

// bucket walks one bucket: two sequences in key order, side by side. Should their
// orders ever differ, a key is looked at twice, by name; no verdict rests on order.
func (w *walk) bucket(ctx context.Context, at place) error {
	next, stop := iter.Pull2(w.keyed(ctx, at))
	defer stop()
	refs, more, err := pull(next)
	if err != nil {
		return err
	}
	for info, err := range at.store.ListSorted(ctx, "") {
		if err != nil {
			return fmt.Errorf("list %s: %w", at.store.Name(), err)
		}
		for more && refs.key < info.Key {
			if err := w.unlisted(ctx, at, refs); err != nil {
				return err
			}
			if refs, more, err = pull(next); err != nil {
				return err
			}
		}
		w.count(info)
		if !more || refs.key != info.Key {
			if err := w.unnamed(ctx, at, info); err != nil {
				return err
			}
			continue
		}
		if err := w.named(ctx, at, info.Key, refs.refs); err != nil {
			return err
		}
		if refs, more, err = pull(next); err != nil {
			return err
		}
	}
	for more {
		if err := w.unlisted(ctx, at, refs); err != nil {
			return err
		}
		if refs, more, err = pull(next); err != nil {
			return err
		}
	}
	return nil
}

// unlisted: refs name a key that the listing did not show. It is asked for by name:
// the listing may be older than the commit.
func (w *walk) unlisted(ctx context.Context, at place, k keyedRefs) error {
	if !at.deciding {
		return w.copyMissing(ctx, at, k)
	}
	return w.named(ctx, at, k.key, k.refs)
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
func (w *walk) keyed(ctx context.Context, at place) iter.Seq2[keyedRefs, error] {
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
				if ref.Kind == catalog.RefLost {
					continue
				}
				if _, ok := w.classes[string(ref.Class)]; !ok {
					yield(keyedRefs{}, fmt.Errorf("refs name objects of class %q, for which no store is given; give one with --store", ref.Class))
					return
				}
				if string(ref.Class) != at.class {
					continue
				}
				if ref.Key != group.key {
					if group.refs != nil && !yield(group, nil) {
						return
					}
					group = keyedRefs{key: ref.Key}
				}
				group.refs = append(group.refs, ref)
				if at.deciding {
					w.report.Refs++
				}
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

func (w *walk) damage(at place, ref *catalog.LiveRef, why string) {
	first := ref.First
	if ref.LiveFrom.Epoch == ref.Epoch {
		first = max(first, ref.LiveFrom.Seq)
	}
	w.report.addDamage(w.cfg.MaxFindings, DamageItem{
		Stream: ref.Stream, Epoch: ref.Epoch, First: first, Last: ref.Last, Key: ref.Key, Bucket: at.store.Name(), Why: why,
	})
}
