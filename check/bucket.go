package check

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// place is the bucket being walked. Only the deciding one of a set must hold
// everything.
type place struct {
	class    string
	store    *objstore.Store
	deciding bool
}

// buckets walks every bucket of every class.
func (w *walk) buckets(ctx context.Context) error {
	for _, class := range slices.Sorted(maps.Keys(w.classes)) {
		for i, store := range w.classes[class] {
			if err := w.bucket(ctx, place{class, store, i == 0}); err != nil {
				return fmt.Errorf("class %s: %w", class, err)
			}
		}
	}
	return nil
}

// seen is all that is known of a key: each of the three may be missing.
type seen struct {
	key    string
	listed *objstore.Info
	refs   []catalog.LiveRef
	slot   *catalog.SlotRow // what the catalog absorbed there
}

// bucket walks one bucket: three sequences in key order, side by side. Should their
// orders ever differ, a key is looked at twice, by name; no verdict rests on order.
func (w *walk) bucket(ctx context.Context, at place) error {
	listed := begin(at.store.ListSorted(ctx, ""), func(i objstore.Info) string { return i.Key })
	refs := begin(w.keyed(ctx, at), func(k keyedRefs) string { return k.key })
	slots := begin(w.slotRows(ctx, at), func(s catalog.SlotRow) string { return segment.SlotKey(s.Chain, s.ID) })
	defer listed.stop()
	defer refs.stop()
	defer slots.stop()
	looks, lookCtx := errgroup.WithContext(ctx)
	looks.SetLimit(w.cfg.Concurrency)
	err := func() error {
		for lookCtx.Err() == nil {
			if listed.err != nil {
				return fmt.Errorf("list %s: %w", at.store.Name(), listed.err)
			}
			if err := errors.Join(refs.err, slots.err); err != nil {
				return err
			}
			f, more := next(listed, refs, slots)
			if !more {
				return nil
			}
			if err := w.dispatch(lookCtx, at, f, looks); err != nil {
				return err
			}
		}
		return nil // a look failed, or the caller gave up: Wait and ctx say so
	}()
	return firstOf(looks.Wait(), err, ctx.Err())
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// next takes the least key off the three sequences.
func next(listed *source[objstore.Info], refs *source[keyedRefs], slots *source[catalog.SlotRow]) (f seen, more bool) {
	for _, key := range []*string{listed.at(), refs.at(), slots.at()} {
		if key != nil && (!more || *key < f.key) {
			f.key, more = *key, true
		}
	}
	if info, ok := listed.take(f.key); ok {
		f.listed = &info
	}
	if k, ok := refs.take(f.key); ok {
		f.refs = k.refs
	}
	if row, ok := slots.take(f.key); ok {
		f.slot = &row
	}
	return f, more
}

// source is a sequence with its first element at hand.
type source[T any] struct {
	pull func() (T, error, bool)
	stop func()
	key  func(T) string
	head T
	name string // key of head
	more bool
	err  error
}

func begin[T any](seq iter.Seq2[T, error], key func(T) string) *source[T] {
	s := &source[T]{key: key}
	s.pull, s.stop = iter.Pull2(seq)
	s.advance()
	return s
}

func (s *source[T]) advance() {
	if s.head, s.err, s.more = s.pull(); s.err != nil || !s.more {
		s.more = false
		return
	}
	s.name = s.key(s.head)
}

func (s *source[T]) at() *string {
	if !s.more {
		return nil
	}
	return &s.name
}

func (s *source[T]) take(key string) (head T, ok bool) {
	if !s.more || s.name != key {
		return head, false
	}
	head = s.head
	s.advance()
	return head, true
}

// dispatch looks at one key. Looks that take a request for each object run beside
// the walk, as many as the Config allows.
func (w *walk) dispatch(ctx context.Context, at place, f seen, looks *errgroup.Group) error {
	if f.listed != nil {
		w.count(*f.listed)
	}
	switch {
	case f.refs != nil && f.listed == nil && !at.deciding:
		return w.copyMissing(ctx, at, f)
	case f.refs != nil && f.listed != nil && !w.sampled(f.key):
		w.report.Skipped++
		return nil
	case f.refs != nil:
		// Not listed: it is asked for by name, the listing may be older than the commit.
		return w.beside(ctx, looks, int64(len(f.refs)), func() error { return w.named(ctx, at, f) })
	case f.listed != nil:
		if err := w.unnamed(ctx, at, *f.listed); err != nil || f.slot == nil || !w.sampled(f.key) {
			return err
		}
		return w.beside(ctx, looks, 1, func() error { return w.restingSlot(ctx, at, f) })
	case at.deciding:
		return w.slotMissing(ctx, at, f)
	}
	return nil
}

// beside runs a look, which holds so many refs, beside the walk if there may be several.
func (w *walk) beside(ctx context.Context, looks *errgroup.Group, refs int64, look func() error) error {
	if w.cfg.Concurrency == 1 {
		return look()
	}
	refs = min(refs, refsAtOnce)
	if err := w.held.Acquire(ctx, refs); err != nil {
		return nil //nolint:nilerr // a look failed, or the caller gave up: the walk's end says so
	}
	looks.Go(func() error {
		defer w.held.Release(refs)
		return look()
	})
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
			for i := range page {
				mine, err := w.mine(&page[i], at)
				if err != nil {
					yield(keyedRefs{}, err)
					return
				}
				if !mine {
					continue
				}
				if page[i].Key != group.key {
					if group.refs != nil && !yield(group, nil) {
						return
					}
					group = keyedRefs{key: page[i].Key}
				}
				group.refs = append(group.refs, page[i])
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

// mine says whether a ref names an object of the class being walked, and counts it.
func (w *walk) mine(ref *catalog.LiveRef, at place) (bool, error) {
	if ref.Kind == catalog.RefLost {
		return false, nil
	}
	if _, ok := w.classes[string(ref.Class)]; !ok {
		return false, fmt.Errorf("refs name objects of class %q, for which no store is given; give one with --store", ref.Class)
	}
	if string(ref.Class) != at.class {
		return false, nil
	}
	if at.deciding {
		w.report.Refs++
	}
	return true, nil
}

// slotRows yields what the catalog absorbed into a class and has not trimmed, in the
// order of the slots' keys.
func (w *walk) slotRows(ctx context.Context, at place) iter.Seq2[catalog.SlotRow, error] {
	var rows []catalog.ChainRow
	for _, row := range w.chains {
		if string(w.epochs[row.Epoch]) == at.class {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b catalog.ChainRow) int {
		return strings.Compare(segment.SlotPrefix(a.Chain), segment.SlotPrefix(b.Chain))
	})
	return func(yield func(catalog.SlotRow, error) bool) {
		for i := range rows {
			for from := rows[i].Trimmed; from < rows[i].AbsorbedEnd; {
				page, err := w.cat.Slots(ctx, rows[i].Chain, from, w.cfg.Page)
				if err != nil {
					yield(catalog.SlotRow{}, fmt.Errorf("read the slots of chain %s: %w", rows[i].Chain, err))
					return
				}
				for _, slot := range page {
					if slot.ID < rows[i].AbsorbedEnd && !yield(slot, nil) {
						return
					}
				}
				if len(page) < w.cfg.Page {
					break
				}
				from = page[len(page)-1].ID + 1
			}
		}
	}
}
