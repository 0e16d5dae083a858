package check_test

import (
	"context"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/segment"
)

// TestWhatWatches: of the duties whose marker's id is an object's key, gc and reap-check see
// to one that no ref names. A tail-fill's does not, and a pack-merge's names no object.
func TestWhatWatches(t *testing.T) {
	pack := segment.PackKey(segment.Chain{Epoch: 1}, 1, 2, 0)
	for duty, want := range map[catalog.Duty]check.State{
		catalog.DutyGC: check.Pending, catalog.DutyReapCheck: check.Pending, catalog.DutyTailFill: check.Leaked, catalog.DutyPackMerge: check.Leaked,
	} {
		x := tier(t)
		x.Put(pack, []byte("x"))
		id := pack
		if duty == catalog.DutyPackMerge {
			id = catalog.PackMergeID(x.Chain, 0)
		}
		fatal(x, x.Catalog.Arm(t.Context(), duty, id, segment.ClassStandard, 0))
		garbage(t, must(t, x), want, pack)
	}
}

// stale answers the first calls with the refs that stood when it was made.
type stale struct {
	check.Catalog
	refs  []catalog.LiveRef
	calls int
}

func (s *stale) RefsByKey(_ context.Context, after *catalog.Ref, _ int) ([]catalog.LiveRef, error) {
	if after != nil {
		return nil, nil
	}
	return s.refs, nil
}

func (s *stale) Liveness(ctx context.Context, key string) (out []catalog.LiveRef, err error) {
	if s.calls--; s.calls < 0 {
		return s.Catalog.Liveness(ctx, key)
	}
	for _, r := range s.refs {
		if r.Key == key {
			out = append(out, r)
		}
	}
	return out, nil
}

// TestRefsThatDieMeanwhile: an object goes after its refs died, however late in a look that
// is; and a look that found a fault asks twice more for the refs.
func TestRefsThatDieMeanwhile(t *testing.T) {
	for calls := range 3 {
		x := tier(t)
		settled(x)
		refs, err := x.Catalog.RefsByKey(t.Context(), nil, 100)
		fatal(x, err)
		deleteStream(x, "a")
		x.Delete(objectOfA)
		r := walk1(t, x, &stale{x.Catalog, refs, calls})
		if damaged := r.DamageTotal > 0; damaged != (calls > 1) {
			t.Errorf("%d stale answers: %+v", calls, *r)
		}
	}
}

func walk1(t *testing.T, x *tiertest.Tier, cat check.Catalog) *check.Report {
	t.Helper()
	r, err := check.Fsck(t.Context(), cat, x.Classes, check.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ending aborts an upload when its intent is asked for.
type ending struct {
	check.Catalog
	end func()
}

func (e *ending) Intent(ctx context.Context, key string) (catalog.Intent, error) {
	e.end()
	return e.Catalog.Intent(ctx, key)
}

// TestUploadThatEndsMeanwhile: a job ended between the listing of uploads and the look for
// its intent.
func TestUploadThatEndsMeanwhile(t *testing.T) {
	x := tier(t)
	key := segment.StreamKey("a", 1, 999, 0)
	id, err := x.Mem.CreateUpload(t.Context(), key, nil)
	fatal(x, err)
	x.Clock.Advance(2 * tiertest.OrphanGrace)
	garbage(t, walk1(t, x, x.Catalog), check.Pending, key)
	hit := false
	garbage(t, walk1(t, x, &ending{x.Catalog, func() { hit = true; fatal(x, x.Mem.Abort(t.Context(), key, id)) }}), "")
	if !hit {
		t.Error("nobody asked for its intent")
	}
}
