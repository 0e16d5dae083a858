package tiertest

import (
	"log/slog"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

// Settle settles every slot: streams of at least streamMin raw bytes get objects of
// their own, the others share packs.
func (x *Tier) Settle(streamMin int64) {
	x.T.Helper()
	s, err := settle.New(settle.Deps{
		Catalog: x.Catalog, Classes: x.Classes, Clock: x.Clock.Now, Logger: slog.New(slog.DiscardHandler),
		NewNonce: uuid.NewString, NewUUID: uuid.New,
	}, settle.Config{SettleAge: -1, SettleBytes: -1, StreamObjectMin: streamMin, SpoolDir: x.T.TempDir()})
	x.must(err)
	for {
		rep, err := s.RunOnce(x.T.Context(), x.Chain, "test")
		x.must(err)
		if len(rep.Failures) > 0 {
			x.T.Fatal(rep.Failures)
		}
		if rep.Idle != "" {
			return
		}
	}
}

// TrimSlots condemns every settled slot and deletes it a grace later.
func (x *Tier) TrimSlots() {
	x.T.Helper()
	x.CondemnSlots()
	x.DeleteSlots()
}

// CondemnSlots condemns every settled slot.
func (x *Tier) CondemnSlots() {
	x.T.Helper()
	row, err := x.Catalog.AdvanceRewritten(x.T.Context(), x.Chain, 1<<40)
	x.must(err)
	ms, err := x.Catalog.MarkersOf(x.T.Context(), catalog.DutyTrimCheck, "", 1)
	x.must(err)
	if len(ms) == 0 {
		x.T.Fatal("no trim-check stands: nothing was settled")
	}
	_, err = x.Catalog.CondemnSlots(x.T.Context(), ms[0].MarkerRef, x.Chain, row.Condemned, row.Rewritten)
	x.must(err)
}

// DeleteSlots deletes the condemned slots, a grace later.
func (x *Tier) DeleteSlots() {
	x.T.Helper()
	x.Clock.Advance(2 * ReadGrace)
	row, err := x.Catalog.Chain(x.T.Context(), x.Chain)
	x.must(err)
	for id := row.Trimmed; id < row.Condemned; id++ {
		x.Delete(segment.SlotKey(x.Chain, id))
	}
	_, err = x.Catalog.AdvanceTrim(x.T.Context(), x.Chain, row.Trimmed, row.Condemned)
	x.must(err)
}

// Walk retires the refs of a trimmed stream.
func (x *Tier) Walk(stream string) {
	x.T.Helper()
	s, err := x.Catalog.Stream(x.T.Context(), stream)
	x.must(err)
	for {
		page, err := x.Catalog.WalkStream(x.T.Context(), s.ID, 100)
		x.must(err)
		x.must(x.Catalog.ArmWatchers(x.T.Context(), page.Dead))
		_, err = x.Catalog.RetireRefs(x.T.Context(), page.Dead)
		x.must(err)
		if !page.More {
			return
		}
	}
}

// Delete takes an object out of the bucket, whoever names it.
func (x *Tier) Delete(key string) {
	x.T.Helper()
	res, err := x.Mem.Delete(x.T.Context(), []string{key})
	x.must(err)
	x.must(res[0].Err)
}

// Put places an object under a key.
func (x *Tier) Put(key string, body []byte) {
	x.T.Helper()
	_, err := x.Store.PutOnce(x.T.Context(), key, body, nil)
	x.must(err)
}

// Keys lists the bucket's keys of a kind, in order.
func (x *Tier) Keys(kind segment.KeyKind) (keys []string) {
	x.T.Helper()
	for info, err := range x.Store.ListSorted(x.T.Context(), "") {
		x.must(err)
		if k, err := segment.ParseKey(info.Key); err == nil && k.Kind == kind {
			keys = append(keys, info.Key)
		}
	}
	return keys
}
