package coldload_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/segment"
)

// counted counts the refs that a scan reads.
type counted struct {
	coldload.Catalog
	refs int
}

func (c *counted) ChainRefs(ctx context.Context, ch segment.Chain, from segment.Seq, limit int) ([]catalog.Ref, error) {
	refs, err := c.Catalog.ChainRefs(ctx, ch, from, limit)
	c.refs += len(refs)
	return refs, err
}

func (c *counted) RefsAcross(ctx context.Context, ch segment.Chain, at segment.Seq, after *catalog.Ref, limit int) ([]catalog.Ref, bool, error) {
	refs, more, err := c.Catalog.RefsAcross(ctx, ch, at, after, limit)
	c.refs += len(refs)
	return refs, more, err
}

// TestScanReadsRefsOnce: a scan of a chain's refs costs what the chain has, not its square.
// Every batch leaves a pack, and one stream in ten an object over all of them.
func TestScanReadsRefsOnce(t *testing.T) {
	const batches, streams = 40, 20
	x := tiertest.New(t, nil)
	for range batches {
		var ws []tiertest.Write
		for s := range streams {
			ws = append(ws, tiertest.Write{Stream: fmt.Sprintf("s%02d", s), Rows: 2, Size: 30})
		}
		x.Slot(ws...)
		x.Settle(1 << 20)
	}
	for range 3 { // and a last one of long refs
		x.Slot(tiertest.Write{Stream: "s00", Rows: 1, Size: 30}, tiertest.Write{Stream: "s01", Rows: 1, Size: 30})
	}
	x.Settle(1)
	x.TrimSlots()
	all, err := x.Catalog.ChainRefs(t.Context(), x.Chain, 0, 0)
	if err != nil || len(all) < batches*streams {
		t.Fatal(len(all), err)
	}
	c := &counted{Catalog: x.Catalog}
	r, err := coldload.New(c, x.Classes, coldload.Config{Clock: x.Clock.Now, PlanRefs: 32, ScanRefs: 64})
	if err != nil {
		t.Fatal(err)
	}
	got, err := scanAll(t.Context(), r, x, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	sameScan(t, got, chainRows(x, 0, nil))
	if c.refs > 4*len(all) {
		t.Errorf("%d refs were read for the %d that there are", c.refs, len(all))
	}
	t.Logf("%d refs read, %d there are", c.refs, len(all))
}

// torn gives one pass of a scan a ref again behind its first page, as a rewrite between two
// pages does that put a longer one in its place.
type torn struct {
	coldload.Catalog
	torn  int // passes that are yet to be
	first catalog.Ref
}

func (c *torn) ChainRefs(ctx context.Context, ch segment.Chain, from segment.Seq, limit int) ([]catalog.Ref, error) {
	refs, err := c.Catalog.ChainRefs(ctx, ch, from, limit)
	if err != nil || len(refs) == 0 {
		return refs, err
	}
	if from == 1 {
		c.first = refs[0]
	} else if c.torn > 0 {
		c.torn--
		refs = append([]catalog.Ref{c.first}, refs...)
	}
	return refs, nil
}

// TestScanPassTorn: a row that the pages of one pass name twice is looked at again before
// it is called damage.
func TestScanPassTorn(t *testing.T) {
	x := tiertest.New(t, nil)
	for range 5 {
		x.Slot(tiertest.Write{Stream: "s", Rows: 2, Size: 30})
		x.Settle(1)
	}
	x.TrimSlots()
	for _, passes := range []int{1, 1000} {
		c := &torn{Catalog: x.Catalog, torn: passes}
		r, err := coldload.New(c, x.Classes, coldload.Config{Clock: x.Clock.Now, PlanRefs: 2})
		if err != nil {
			t.Fatal(err)
		}
		got, err := scanAll(t.Context(), r, x, 0, nil)
		if passes > 1 {
			if !errors.Is(err, coldload.ErrCorrupt) {
				t.Errorf("refs that overlap whenever they are read: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		sameScan(t, got, chainRows(x, 0, nil))
		if c.torn != 0 {
			t.Error("no pass was torn")
		}
	}
}

// TestScanAcross: refs that begin in a stretch and end behind it are in it, although a pass
// by last rows does not come to them.
func TestScanAcross(t *testing.T) {
	x := tiertest.New(t, nil)
	for range 6 {
		var ws []tiertest.Write
		for s := range 9 {
			ws = append(ws, tiertest.Write{Stream: fmt.Sprintf("s%02d", s), Rows: 2, Size: 30})
		}
		x.Slot(ws...)
	}
	x.Settle(1)
	x.TrimSlots()
	for _, cfg := range []coldload.Config{{PlanRefs: 2, ScanRefs: 2}, {PlanRefs: 3, ScanRefs: 5}, {PlanRefs: 2, ScanRefs: 9}} {
		got, err := scanAll(t.Context(), reader(t, x, cfg), x, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		sameScan(t, got, chainRows(x, 0, nil))
	}
}
