package check

import (
	"context"
	"fmt"
	"slices"

	"github.com/strandline/strandline/objstore"
)

// ordered refuses a set in which the bucket that decides (by the newest epoch of its class)
// stands behind another. Settled objects and heads would go to the other one, where
// processes that have the right order do not look: rows would seem lost to them, and
// objects would stay for ever.
//
// It goes by names. A bucket under another address is not known again, and one that is
// left out is not missed: the rest of a set may have to go on without it.
func ordered(ctx context.Context, cat StampCatalog, classes objstore.Classes) error {
	tops, err := cat.Topologies(ctx)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for i := range slices.Backward(tops) {
		class := string(tops[i].Class)
		set := classes[class]
		if seen[class] || len(set) == 0 || len(tops[i].Buckets) == 0 {
			continue
		}
		seen[class] = true
		decides := tops[i].Buckets[0]
		is := func(s *objstore.Store) bool { return s.Name() == decides }
		if !is(set[0]) && slices.ContainsFunc(set[1:], is) {
			return fmt.Errorf("%w: class %s: %s is given first, but %s decides (epoch %d); give --store %s= with the buckets in the order that topology show prints",
				ErrNotMine, class, set[0].Name(), decides, tops[i].Epoch, class)
		}
	}
	return nil
}
