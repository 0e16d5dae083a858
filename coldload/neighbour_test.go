package coldload_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/segment"
)

// TestScanBesideRetention: a scan that has to explain missing rows looks at every stream's
// links. One in another chain may begin higher than its own row says, since that chain's
// watermark gave rows up.
func TestScanBesideRetention(t *testing.T) {
	x, _ := threeSlots(t, nil)
	x.Settle(1 << 26)
	x.TrimSlots()
	if _, err := x.Catalog.DeleteStream(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	x.Walk("b") // rows without a ref: the scan explains them
	c := &neighbour{Catalog: x.Catalog}
	got, err := scanAll(t.Context(), readerOn(t, x, c), x, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.plans == 0 {
		t.Fatal("the other chain's stream was never looked at")
	}
	sameScan(t, got, chainRows(x, 0, map[string]segment.Seq{"b": math.MaxUint64}))
}

func readerOn(t *testing.T, x *tiertest.Tier, c coldload.Catalog) *coldload.Reader {
	t.Helper()
	r, err := coldload.New(c, x.Classes, coldload.Config{Clock: x.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// neighbour has one more stream, in another chain whose watermark is 864.
type neighbour struct {
	coldload.Catalog
	plans int
}

var errSpins = errors.New("planned again and again")

func neighbourRow() catalog.Stream { return catalog.Stream{ID: 99, Name: "neighbour", Last: at(952)} }

func (n *neighbour) Streams(ctx context.Context, after string, limit int) ([]catalog.Stream, error) {
	list, err := n.Catalog.Streams(ctx, after, limit)
	if after == "" {
		list = append(list, neighbourRow())
	}
	return list, err
}

func (n *neighbour) Stream(ctx context.Context, name string) (catalog.Stream, error) {
	if name == "neighbour" {
		return neighbourRow(), nil
	}
	return n.Catalog.Stream(ctx, name)
}

func (n *neighbour) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	if r.Stream != "neighbour" {
		return n.Catalog.Plan(ctx, r)
	}
	if n.plans++; n.plans > 10 {
		return catalog.Plan{}, errSpins
	}
	return catalog.Plan{
		Stream: neighbourRow(), LiveFrom: at(865),
		Refs: []catalog.Ref{{Stream: "neighbour", Chain: segment.Chain{Epoch: 1, Shard: 1}, First: 870, Last: 952, PrevLast: at(860), Kind: catalog.RefPack}},
	}, nil
}
