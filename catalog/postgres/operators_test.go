package postgres

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/catalogtest"
	"github.com/strandline/strandline/segment"
)

// operators are what people do by hand, each meeting what duties, writers, or another
// operator do at the same time.
var operators = []race{
	{"loss against loss", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2 b:1")
		key := segment.SlotKey(w.Chain, 1)
		return losing(key, "a"), losing(key, "a")
	}},
	{"loss against another stream's", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2 b:1")
		key := segment.SlotKey(w.Chain, 1)
		return losing(key, "a"), losing(key, "b")
	}},
	{"a void slot against its absorb", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2")
		return losing(segment.SlotKey(w.Chain, 2), ""), absorbing1(w, "a:1")
	}},
	{"an absorb against its slot's void", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2")
		return absorbing1(w, "a:1"), losing(segment.SlotKey(w.Chain, 2), "")
	}},
	{"a void slot against acquire", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2")
		return losing(segment.SlotKey(w.Chain, 2), ""), stealing(w, 7)
	}},
	{"loss against trim", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:3 b:1")
		w.Absorb("a:2")
		return losing(segment.SlotKey(w.Chain, 1), "a"), trimming("a", 3)
	}},
	{"trim against loss", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:3 b:1")
		w.Absorb("a:2")
		return trimming("a", 3), losing(segment.SlotKey(w.Chain, 1), "a")
	}},
	{"loss against delete", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:3 b:1")
		return losing(segment.SlotKey(w.Chain, 1), "a"), deleting("a")
	}},
	{"delete against loss", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:3 b:1")
		return deleting("a"), losing(segment.SlotKey(w.Chain, 1), "a")
	}},
	{"loss against delete, walk", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:3 b:1")
		return losing(segment.SlotKey(w.Chain, 1), "a"), both(deleting("a"), retiring(w.Refs("a")))
	}},
	{"retire against loss", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:3 b:1")
		dead := w.Refs("a")
		_, err := w.C.DeleteStream(w.Ctx, "a")
		w.OK(err)
		return retiring(dead), losing(segment.SlotKey(w.Chain, 1), "a")
	}},
	{"loss against retire", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:3 b:1")
		dead := w.Refs("a")
		_, err := w.C.DeleteStream(w.Ctx, "a")
		w.OK(err)
		return losing(segment.SlotKey(w.Chain, 1), "a"), retiring(dead)
	}},
	{"loss against absorb", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2 b:1")
		return losing(segment.SlotKey(w.Chain, 1), "a"), absorbing1(w, "a:2 b:1")
	}},
	{"absorb against loss", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2 b:1")
		return absorbing1(w, "a:2 b:1"), losing(segment.SlotKey(w.Chain, 1), "a")
	}},
	{"loss of a settled object against its reaping", func(w *catalogtest.World) (op, op) {
		m := ripe(w)
		return losing(m.ID, "a"), reaping(m)
	}},
	{"loss against watermark", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2")
		w.Absorb("a:2")
		return losing(segment.SlotKey(w.Chain, 1), "a"), raising(w, 2, 1)
	}},
	{"watermark against loss", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2")
		w.Absorb("a:2")
		return raising(w, 2, 1), losing(segment.SlotKey(w.Chain, 1), "a")
	}},
	{"loss against a plan", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2 b:1")
		return losing(segment.SlotKey(w.Chain, 1), "a"), planning("a")
	}},
	{"loss against resolve", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2")
		w.Absorb("a:2")
		w.Settle("a")
		return losing(w.Refs("a")[0].Key, "a"), resolving(w)
	}},
	{"rewritten against loss", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2")
		w.Absorb("a:2")
		w.Settle("a")
		_, err := resolving(w)(w.Ctx, w.C)
		w.OK(err)
		return rewinding(w), losing(w.Refs("a")[0].Key, "a")
	}},
	{"trim against trim", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:3")
		w.Absorb("a:3")
		return trimming("a", 5), trimming("a", 3)
	}},
	{"trim against delete", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:3")
		return trimming("a", 2), deleting("a")
	}},
	{"delete against delete", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:3")
		return deleting("a"), deleting("a")
	}},
	{"delete against commit", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2 b:1")
		return deleting("a"), committing(commit)
	}},
	{"commit against delete, walk", func(w *catalogtest.World) (op, op) {
		commit := rewriting(w, "a:2 b:1")
		return committing(commit), both(deleting("a"), retiring(w.Refs("a")))
	}},
	{"delete against watermark", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2")
		w.Absorb("a:2")
		return deleting("a"), raising(w, 2, 1)
	}},
	{"topology set against topology set", func(*catalogtest.World) (op, op) {
		return stepping(catalog.TopologyOpen, catalog.TopologyClosing), stepping(catalog.TopologyOpen, catalog.TopologyClosing)
	}},
	{"topology set against acquire", func(w *catalogtest.World) (op, op) {
		return stepping(catalog.TopologyOpen, catalog.TopologyClosing), stealing(w, 7)
	}},
	{"acquire against topology set", func(w *catalogtest.World) (op, op) {
		return stealing(w, 7), stepping(catalog.TopologyOpen, catalog.TopologyClosing)
	}},
	{"topology set against absorb", func(w *catalogtest.World) (op, op) {
		return stepping(catalog.TopologyOpen, catalog.TopologyClosing), absorbing1(w, "a:2")
	}},
	{"absorb against topology set", func(w *catalogtest.World) (op, op) {
		return absorbing1(w, "a:2"), stepping(catalog.TopologyOpen, catalog.TopologyClosing)
	}},
	{"a new epoch against topology set", func(w *catalogtest.World) (op, op) {
		return ensuring(2), stepping(catalog.TopologyOpen, catalog.TopologyClosing)
	}},
	{"topology set against an absorb that closes", func(w *catalogtest.World) (op, op) {
		_, err := w.C.SetTopologyState(w.Ctx, 1, catalog.TopologyOpen, catalog.TopologyClosing)
		w.OK(err)
		return stepping(catalog.TopologyClosing, catalog.TopologyClosed), closing(w)
	}},
	{"an absorb that closes against topology set", func(w *catalogtest.World) (op, op) {
		_, err := w.C.SetTopologyState(w.Ctx, 1, catalog.TopologyOpen, catalog.TopologyClosing)
		w.OK(err)
		return closing(w), stepping(catalog.TopologyClosing, catalog.TopologyClosed)
	}},
	{"retention against topology set", func(*catalogtest.World) (op, op) {
		return keeping(100), stepping(catalog.TopologyOpen, catalog.TopologyClosing)
	}},
	{"topology set against retention", func(*catalogtest.World) (op, op) {
		return stepping(catalog.TopologyOpen, catalog.TopologyClosing), keeping(100)
	}},
	{"retention against retention", func(*catalogtest.World) (op, op) { return keeping(100), keeping(200) }},
	{"retention against watermark", func(w *catalogtest.World) (op, op) {
		w.Absorb("a:2")
		w.Absorb("a:2")
		return keeping(100), raising(w, 2, 1)
	}},
}

// keeping sets the retention of epoch 1 to so many rows.
func keeping(rows uint64) op {
	return func(ctx context.Context, c catalog.Catalog) (any, error) {
		return c.SetRetention(ctx, 1, catalog.Retention{Mode: catalog.RetentionInterest, Rows: rows})
	}
}
