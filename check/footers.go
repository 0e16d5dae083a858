package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// named holds an object's own footer against every ref that names it (I2). What it
// finds wrong counts only if the ref still says the same afterwards. An object that
// is not there is missing if the bucket is the deciding one.
func (w *walk) named(ctx context.Context, at place, key string, refs []catalog.LiveRef) error {
	footer, err := readFooter(ctx, at.store, key)
	if unsound(err) {
		// One read may have met a proxy's or a disk's bad moment.
		footer, err = readFooter(ctx, at.store, key)
	}
	var broken string
	switch {
	case errors.Is(err, objstore.ErrNotFound) && !at.deciding:
		return nil // gone since it was listed
	case errors.Is(err, objstore.ErrNotFound):
		broken = "its object is not in the bucket"
	case unsound(err):
		broken = err.Error()
	case err != nil:
		return fmt.Errorf("read the footer of %s: %w", key, err)
	}
	w.report.Footers++
	whys := map[segment.Pos]map[int64]string{} // by first row and stream
	for i := range refs {
		ref := &refs[i].Ref
		why := broken
		if why == "" {
			why = coverage(footer, ref)
		}
		if why != "" {
			if whys[ref.FirstPos()] == nil {
				whys[ref.FirstPos()] = map[int64]string{}
			}
			whys[ref.FirstPos()][ref.StreamID] = why
		}
	}
	if len(whys) == 0 {
		return nil
	}
	now, err := w.cat.Liveness(ctx, key)
	if err != nil {
		return err
	}
	for i := range now {
		r := &now[i]
		if r.Dead(r.LiveFrom) {
			continue // retired soon: nobody may read it
		}
		why, ok := whys[r.FirstPos()][r.StreamID]
		if ok && broken == "" {
			why = coverage(footer, &r.Ref) // a rewrite may have cut it meanwhile
		}
		if why != "" {
			w.damage(at, r, why)
		}
	}
	return nil
}

// coverage says in words why a footer does not cover a ref, or nothing. Chunks that
// are wholly the ref's must add up to what it says. Of a ref that is a part of a
// chunk (the rest of a shorter output, the head of a trimmed one) only the bounds
// can be told: which rows lie before its first is in the chunk, not in the footer.
func coverage(f *segment.Footer, ref *catalog.Ref) string {
	if f.Kind != kindOfRef[ref.Kind] {
		return fmt.Sprintf("its object is a %s, the ref says %s", f.Kind, ref.Kind)
	}
	var rows, sum uint64
	var first, last segment.Seq
	found, cut := 0, false
	for i := range f.Chunks {
		c := &f.Chunks[i]
		if c.Stream != ref.Stream || c.Epoch != ref.Epoch || c.Last < ref.First || c.First > ref.Last {
			continue
		}
		if found == 0 {
			first = c.First
		}
		found++
		last = c.Last
		rows += c.Rows
		sum += c.RowSum
		cut = cut || c.First < ref.First || c.Last > ref.Last
	}
	switch {
	case found == 0:
		return "its footer has no chunk of the stream there"
	case last < ref.Last:
		return fmt.Sprintf("its footer covers rows %d to %d only", first, last)
	case cut && rows < ref.Rows, !cut && (rows != ref.Rows || sum != ref.RowSum):
		return fmt.Sprintf("its footer says %d rows of sum %016x, the ref %d of %016x", rows, sum, ref.Rows, ref.RowSum)
	}
	return ""
}

// kindOfRef: what the refs of each kind name.
var kindOfRef = map[catalog.RefKind]segment.ObjectKind{
	catalog.RefSlot: segment.ObjSlot, catalog.RefStream: segment.ObjStream, catalog.RefPack: segment.ObjPack,
}

// unsound: the object was read, and it is not what was put there. The store may say
// so before we do.
func unsound(err error) bool {
	return segment.IsStructural(err) || errors.Is(err, objstore.ErrCorrupt)
}

func readFooter(ctx context.Context, s *objstore.Store, key string) (*segment.Footer, error) {
	return segment.ReadFooter(func(n int64) ([]byte, int64, error) {
		tail, info, err := s.ReadSuffix(ctx, key, n)
		return tail, info.Size, err
	})
}
