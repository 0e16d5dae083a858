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
// finds wrong counts only if the ref still says the same afterwards.
func (w *walk) named(ctx context.Context, store *objstore.Store, info objstore.Info, refs []catalog.LiveRef) error {
	w.report.Footers++
	footer, err := readFooter(ctx, store, info.Key)
	var broken string
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		return w.missing(ctx, store, keyedRefs{key: info.Key, refs: refs}, true)
	case errors.Is(err, segment.ErrCorrupt):
		broken = err.Error()
	case err != nil:
		return fmt.Errorf("read the footer of %s: %w", info.Key, err)
	}
	var suspects []catalog.Ref
	whys := map[segment.Pos]string{}
	for i := range refs {
		ref := &refs[i].Ref
		why := broken
		if why == "" {
			why = coverage(footer, ref)
		}
		if why != "" {
			suspects = append(suspects, *ref)
			whys[ref.FirstPos()] = why
		}
	}
	if len(suspects) == 0 {
		return nil
	}
	now, err := w.cat.Liveness(ctx, info.Key)
	if err != nil {
		return err
	}
	for i := range suspects {
		for j := range now {
			if now[j].Ref == suspects[i] && !now[j].LastPos().Less(now[j].LiveFrom) {
				w.damage(&suspects[i], whys[suspects[i].FirstPos()])
			}
		}
	}
	return nil
}

// coverage says in words why a footer does not cover a ref, or nothing. The sums
// of a whole span must agree; of a part of a chunk only the bounds can be told.
func coverage(f *segment.Footer, ref *catalog.Ref) string {
	var rows, sum uint64
	var first, last segment.Seq
	found := 0
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
		rows += uint64(c.Rows)
		sum += c.RowSum
	}
	switch {
	case found == 0:
		return "its footer has no chunk of the stream there"
	case last < ref.Last || first > ref.First:
		return fmt.Sprintf("its footer covers rows %d to %d only", first, last)
	case first == ref.First && last == ref.Last && (rows != ref.Rows || sum != ref.RowSum):
		return fmt.Sprintf("its footer says %d rows of sum %016x, the ref %d of %016x", rows, sum, ref.Rows, ref.RowSum)
	}
	return ""
}

func readFooter(ctx context.Context, s *objstore.Store, key string) (*segment.Footer, error) {
	return segment.ReadFooter(func(n int64) ([]byte, int64, error) {
		tail, info, err := s.ReadSuffix(ctx, key, n)
		return tail, info.Size, err
	})
}
