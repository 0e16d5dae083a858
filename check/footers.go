package check

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// fault is what is wrong with rows of a ref in one bucket, or with bytes that no live row
// needs.
type fault struct {
	ref         *catalog.LiveRef // nil: no live ref's
	first, last segment.Seq
	why         string
}

// sampled says whether an object is looked into.
func (w *walk) sampled(key string) bool {
	if w.cfg.Sample < 0 {
		return false
	}
	if w.cfg.Sample <= 1 {
		return true
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // a hash takes everything
	return h.Sum64()%uint64(w.cfg.Sample) == 0
}

// named holds an object against every ref that names it (I2). What it finds wrong
// counts only if a second look, at the refs as they are by then, finds it again, and the
// refs still say the same afterwards.
func (w *walk) named(ctx context.Context, at place, f seen) error {
	faults, err := w.inspect(ctx, at, f.refs, f.slot)
	if err != nil || len(faults) == 0 {
		return err
	}
	refs, err := w.cat.Liveness(ctx, f.key)
	if err != nil {
		return err
	}
	if faults, err = w.inspect(ctx, at, refs, f.slot); err != nil || len(faults) == 0 {
		return err
	}
	if refs, err = w.cat.Liveness(ctx, f.key); err != nil {
		return err
	}
	var stand []fault
	for _, bad := range faults {
		if bad.ref == nil {
			stand = append(stand, bad)
		} else if bad.ref = sameRef(refs, bad.ref); bad.ref != nil {
			stand = append(stand, bad)
		}
	}
	return w.tell(ctx, at, f, stand)
}

// sameRef is the ref as it is now, or nil: retired, repointed, or wholly given up, so
// that nobody may read it.
func sameRef(now []catalog.LiveRef, ref *catalog.LiveRef) *catalog.LiveRef {
	for i := range now {
		if now[i].Same(&ref.Ref) && !now[i].Dead(now[i].LiveFrom) {
			return &now[i]
		}
	}
	return nil
}

// tell tells damage from a rotten copy: rows that another bucket of the set serves
// are not lost. What no bucket serves is told once, of the one that decides.
func (w *walk) tell(ctx context.Context, at place, f seen, faults []fault) error {
	told := false
	for _, bad := range faults {
		if bad.ref == nil {
			w.rotten(RottenItem{Key: f.key, Bucket: at.store.Name(), Why: bad.why + noOwner})
			continue
		}
		sound, err := w.soundElsewhere(ctx, at, bad.ref, f.slot)
		switch {
		case errors.Is(err, errPassed):
			w.unreadable(UnreadableItem{Key: f.key, Bucket: at.store.Name(), Why: bad.why + "; whether another bucket of its set has the rows could not be read"})
		case err != nil:
			return err
		case sound != "" && !told:
			told = true
			w.rotten(RottenItem{Key: f.key, Bucket: at.store.Name(), Why: bad.why, SoundIn: sound})
		case sound == "" && at.deciding:
			w.damage(at, bad)
		}
	}
	return nil
}

// soundElsewhere names another bucket of the set that has the ref's rows whole, read and
// decoded; empty: none. errPassed: none that could be read, and one that could not.
func (w *walk) soundElsewhere(ctx context.Context, at place, ref *catalog.LiveRef, slot *catalog.SlotRow) (string, error) {
	var unread error
	for i, store := range w.classes[at.class] {
		if store == at.store {
			continue
		}
		other := place{at.class, store, i == 0}
		faults, err := w.look(ctx, other, []catalog.LiveRef{*ref}, slot, true)
		if errors.Is(err, errPassed) {
			unread = err
			continue
		}
		if err != nil {
			return "", err
		}
		if !slices.ContainsFunc(faults, func(f fault) bool { return f.ref != nil }) {
			return store.Name(), nil
		}
	}
	return "", unread
}

// inspect is look that goes on past what cannot be read, and of which an object that is missing in a bucket for copies is no
// fault: it went since it was listed, and the missing copies are told elsewhere.
func (w *walk) inspect(ctx context.Context, at place, refs []catalog.LiveRef, slot *catalog.SlotRow) ([]fault, error) {
	faults, err := w.look(ctx, at, refs, slot, w.cfg.Deep)
	if len(faults) > 0 && faults[0].why == notThere && !at.deciding {
		return nil, passed(err)
	}
	return faults, passed(err)
}

// notThere: a HEAD's 404 has no code, a GET's says that it is the object that is missing.
const notThere = "its object is not in the bucket"

// look reads an object, its footer or with deep its chunks too, and says what is wrong with
// the live rows of refs, which name it. errPassed: not all of it could be read.
func (w *walk) look(ctx context.Context, at place, refs []catalog.LiveRef, slot *catalog.SlotRow, deep bool) ([]fault, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	key := refs[0].Key
	o, err := readObject(ctx, at.store, key)
	broken := ""
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		broken = notThere
	case unsound(err):
		broken = err.Error()
	case err != nil:
		return nil, w.pass(ctx, at, key, fmt.Errorf("read the footer of %s: %w", key, err))
	case slot != nil:
		broken = o.otherThan(slot)
	}
	w.add(func(r *Report) { r.Footers++ })
	var faults []fault
	for i := range refs {
		ref := &refs[i]
		if ref.Dead(ref.LiveFrom) {
			continue // retired soon: nobody may read it
		}
		why := broken
		if why == "" {
			why = coverage(o.footer, &ref.Ref)
		}
		if why != "" {
			faults = append(faults, fault{ref, ref.First, ref.Last, why})
		}
	}
	if !deep || broken != "" || len(faults) > 0 {
		return faults, nil
	}
	return w.dig(ctx, at, o.footer, refs)
}

// unsound: the object was read, and it is not what was put there. The store may say
// so before we do; a range beyond its end is a shorter object.
func unsound(err error) bool {
	return segment.IsStructural(err) || errors.Is(err, objstore.ErrCorrupt) || errors.Is(err, objstore.ErrRange)
}

// object is an object's own word about itself.
type object struct {
	footer *segment.Footer
	info   objstore.Info
}

// readObject reads a footer: one GET, two for a large one. Bytes that are no footer are read
// once more: one read may have met a proxy's or a disk's bad moment.
func readObject(ctx context.Context, s *objstore.Store, key string) (o object, err error) {
	for look := 1; look <= 2; look++ {
		o.footer, err = segment.ReadFooter(func(n int64) ([]byte, int64, error) {
			tail, info, err := s.ReadSuffix(ctx, key, n)
			o.info = info
			return tail, info.Size, err
		})
		if !unsound(err) {
			break
		}
	}
	return o, err
}
