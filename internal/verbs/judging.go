package verbs

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func (x *around) Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error) {
	return one(ctx, x, Verb{Name: "Liveness", About: []any{key}}, func(ctx context.Context) ([]catalog.LiveRef, error) {
		return x.catalog.Liveness(ctx, key)
	})
}

func (x *around) Confirm(ctx context.Context, m catalog.MarkerRef) error {
	return x.call(ctx, Verb{Name: "Confirm", Mutates: true, About: []any{m}}, func(ctx context.Context) error { return x.catalog.Confirm(ctx, m) })
}

func (x *around) CondemnKey(ctx context.Context, m catalog.MarkerRef) error {
	return x.call(ctx, Verb{Name: "CondemnKey", Mutates: true, About: []any{m}}, func(ctx context.Context) error { return x.catalog.CondemnKey(ctx, m) })
}

func (x *around) BurnKey(ctx context.Context, keys []string) error {
	return x.call(ctx, Verb{Name: "BurnKey", Mutates: true, About: []any{keys}}, func(ctx context.Context) error { return x.catalog.BurnKey(ctx, keys) })
}

func (x *around) Intent(ctx context.Context, key string) (catalog.Intent, error) {
	return one(ctx, x, Verb{Name: "Intent", About: []any{key}}, func(ctx context.Context) (catalog.Intent, error) {
		return x.catalog.Intent(ctx, key)
	})
}

func (x *around) CondemnIntent(ctx context.Context, m catalog.MarkerRef) (catalog.Verdict, catalog.Intent, error) {
	return two(ctx, x, Verb{Name: "CondemnIntent", Mutates: true, About: []any{m}}, func(ctx context.Context) (catalog.Verdict, catalog.Intent, error) {
		return x.catalog.CondemnIntent(ctx, m)
	})
}

func (x *around) BurnIntent(ctx context.Context, key string) error {
	return x.call(ctx, Verb{Name: "BurnIntent", Mutates: true, About: []any{key}}, func(ctx context.Context) error { return x.catalog.BurnIntent(ctx, key) })
}

func (x *around) RemoveIntent(ctx context.Context, key string) (bool, error) {
	return one(ctx, x, Verb{Name: "RemoveIntent", Mutates: true, About: []any{key}}, func(ctx context.Context) (bool, error) {
		return x.catalog.RemoveIntent(ctx, key)
	})
}

func (x *around) RaiseWatermark(ctx context.Context, w catalog.Watermark) (catalog.ChainRow, error) {
	return one(ctx, x, Verb{Name: "RaiseWatermark", Mutates: true, About: []any{w}}, func(ctx context.Context) (catalog.ChainRow, error) {
		return x.catalog.RaiseWatermark(ctx, w)
	})
}

func (x *around) DeadRefs(ctx context.Context, c segment.Chain, limit int) ([]catalog.Ref, bool, error) {
	return two(ctx, x, Verb{Name: "DeadRefs", About: []any{c, limit}}, func(ctx context.Context) ([]catalog.Ref, bool, error) {
		return x.catalog.DeadRefs(ctx, c, limit)
	})
}

func (x *around) StraddlingRefs(ctx context.Context, c segment.Chain, after *catalog.Ref, limit int) ([]catalog.Ref, bool, error) {
	return two(ctx, x, Verb{Name: "StraddlingRefs", About: []any{c, after, limit}}, func(ctx context.Context) ([]catalog.Ref, bool, error) {
		return x.catalog.StraddlingRefs(ctx, c, after, limit)
	})
}

func (x *around) AdvanceRewritten(ctx context.Context, c segment.Chain, consumerHoldMax int64) (catalog.ChainRow, error) {
	return one(ctx, x, Verb{Name: "AdvanceRewritten", Mutates: true, About: []any{c, consumerHoldMax}}, func(ctx context.Context) (catalog.ChainRow, error) {
		return x.catalog.AdvanceRewritten(ctx, c, consumerHoldMax)
	})
}

func (x *around) DueSlots(ctx context.Context, c segment.Chain, limit int) (catalog.TrimPlan, error) {
	return one(ctx, x, Verb{Name: "DueSlots", About: []any{c, limit}}, func(ctx context.Context) (catalog.TrimPlan, error) {
		return x.catalog.DueSlots(ctx, c, limit)
	})
}

func (x *around) AdvanceTrim(ctx context.Context, c segment.Chain, from segment.ID, to segment.ID) (catalog.ChainRow, error) {
	return one(ctx, x, Verb{Name: "AdvanceTrim", Mutates: true, About: []any{c, from, to}}, func(ctx context.Context) (catalog.ChainRow, error) {
		return x.catalog.AdvanceTrim(ctx, c, from, to)
	})
}

func (x *around) CondemnSlots(ctx context.Context, m catalog.MarkerRef, c segment.Chain, expect segment.ID, to segment.ID) (catalog.ChainRow, error) {
	return one(ctx, x, Verb{Name: "CondemnSlots", Mutates: true, About: []any{m, c, expect, to}}, func(ctx context.Context) (catalog.ChainRow, error) {
		return x.catalog.CondemnSlots(ctx, m, c, expect, to)
	})
}

func (x *around) TrimStream(ctx context.Context, name string, pos segment.Pos) (catalog.Stream, error) {
	return one(ctx, x, Verb{Name: "TrimStream", Mutates: true, About: []any{name, pos}}, func(ctx context.Context) (catalog.Stream, error) {
		return x.catalog.TrimStream(ctx, name, pos)
	})
}

func (x *around) DeleteStream(ctx context.Context, name string) (catalog.Stream, error) {
	return one(ctx, x, Verb{Name: "DeleteStream", Mutates: true, About: []any{name}}, func(ctx context.Context) (catalog.Stream, error) {
		return x.catalog.DeleteStream(ctx, name)
	})
}

func (x *around) WalkStream(ctx context.Context, streamID int64, limit int) (catalog.WalkPage, error) {
	return one(ctx, x, Verb{Name: "WalkStream", About: []any{streamID, limit}}, func(ctx context.Context) (catalog.WalkPage, error) {
		return x.catalog.WalkStream(ctx, streamID, limit)
	})
}

func (x *around) ArmWatchers(ctx context.Context, refs []catalog.Ref) error {
	return x.call(ctx, Verb{Name: "ArmWatchers", Mutates: true, About: []any{refs}}, func(ctx context.Context) error { return x.catalog.ArmWatchers(ctx, refs) })
}

func (x *around) RetireRefs(ctx context.Context, refs []catalog.Ref) (int, error) {
	return one(ctx, x, Verb{Name: "RetireRefs", Mutates: true, About: []any{refs}}, func(ctx context.Context) (int, error) {
		return x.catalog.RetireRefs(ctx, refs)
	})
}

func (x *around) AcceptLoss(ctx context.Context, key string, stream string) ([]catalog.Ref, error) {
	return one(ctx, x, Verb{Name: "AcceptLoss", Mutates: true, About: []any{key, stream}}, func(ctx context.Context) ([]catalog.Ref, error) {
		return x.catalog.AcceptLoss(ctx, key, stream)
	})
}

func (x *around) AdvanceJournal(ctx context.Context, c segment.Chain, n uint64) error {
	return x.call(ctx, Verb{Name: "AdvanceJournal", Mutates: true, About: []any{c, n}}, func(ctx context.Context) error { return x.catalog.AdvanceJournal(ctx, c, n) })
}

func (x *around) TakeDue(ctx context.Context, t catalog.Take) ([]catalog.Marker, error) {
	return one(ctx, x, Verb{Name: "TakeDue", Mutates: true, About: []any{t}}, func(ctx context.Context) ([]catalog.Marker, error) {
		return x.catalog.TakeDue(ctx, t)
	})
}

func (x *around) Arm(ctx context.Context, d catalog.Duty, id string, class segment.Class, in time.Duration) error {
	return x.call(ctx, Verb{Name: "Arm", Mutates: true, About: []any{d, id, class, in}}, func(ctx context.Context) error { return x.catalog.Arm(ctx, d, id, class, in) })
}

func (x *around) Resolve(ctx context.Context, m catalog.MarkerRef) error {
	return x.call(ctx, Verb{Name: "Resolve", Mutates: true, About: []any{m}}, func(ctx context.Context) error { return x.catalog.Resolve(ctx, m) })
}

func (x *around) Postpone(ctx context.Context, m catalog.MarkerRef, in time.Duration, cause string) error {
	return x.call(ctx, Verb{Name: "Postpone", Mutates: true, About: []any{m, in}}, func(ctx context.Context) error { return x.catalog.Postpone(ctx, m, in, cause) })
}

func (x *around) Marker(ctx context.Context, d catalog.Duty, id string) (catalog.Marker, error) {
	return one(ctx, x, Verb{Name: "Marker", About: []any{d, id}}, func(ctx context.Context) (catalog.Marker, error) {
		return x.catalog.Marker(ctx, d, id)
	})
}

func (x *around) NextDue(ctx context.Context, duties []catalog.Duty) (time.Time, bool, error) {
	return two(ctx, x, Verb{Name: "NextDue", About: []any{duties}}, func(ctx context.Context) (time.Time, bool, error) {
		return x.catalog.NextDue(ctx, duties)
	})
}

func (x *around) Stream(ctx context.Context, name string) (catalog.Stream, error) {
	return one(ctx, x, Verb{Name: "Stream", About: []any{name}}, func(ctx context.Context) (catalog.Stream, error) {
		return x.catalog.Stream(ctx, name)
	})
}

func (x *around) Streams(ctx context.Context, after string, limit int) ([]catalog.Stream, error) {
	return one(ctx, x, Verb{Name: "Streams", About: []any{after, limit}}, func(ctx context.Context) ([]catalog.Stream, error) {
		return x.catalog.Streams(ctx, after, limit)
	})
}

func (x *around) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	return one(ctx, x, Verb{Name: "Plan", About: []any{r}}, func(ctx context.Context) (catalog.Plan, error) {
		return x.catalog.Plan(ctx, r)
	})
}

func (x *around) Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error) {
	return one(ctx, x, Verb{Name: "Slots", About: []any{c, from, limit}}, func(ctx context.Context) ([]catalog.SlotRow, error) {
		return x.catalog.Slots(ctx, c, from, limit)
	})
}

func (x *around) ChainRefs(ctx context.Context, c segment.Chain, from segment.Seq, limit int) ([]catalog.Ref, error) {
	return one(ctx, x, Verb{Name: "ChainRefs", About: []any{c, from, limit}}, func(ctx context.Context) ([]catalog.Ref, error) {
		return x.catalog.ChainRefs(ctx, c, from, limit)
	})
}

func (x *around) RefsAcross(ctx context.Context, c segment.Chain, at segment.Seq, after *catalog.Ref, limit int) ([]catalog.Ref, bool, error) {
	return two(ctx, x, Verb{Name: "RefsAcross", About: []any{c, at, after, limit}}, func(ctx context.Context) ([]catalog.Ref, bool, error) {
		return x.catalog.RefsAcross(ctx, c, at, after, limit)
	})
}

func (x *around) Status(ctx context.Context) (catalog.Status, error) {
	return one(ctx, x, Verb{Name: "Status"}, func(ctx context.Context) (catalog.Status, error) {
		return x.catalog.Status(ctx)
	})
}

func (x *around) Debts(ctx context.Context) (catalog.Debts, error) {
	return one(ctx, x, Verb{Name: "Debts"}, func(ctx context.Context) (catalog.Debts, error) {
		return x.catalog.Debts(ctx)
	})
}

func (x *around) RefsByKey(ctx context.Context, after *catalog.Ref, limit int) ([]catalog.LiveRef, error) {
	return one(ctx, x, Verb{Name: "RefsByKey", About: []any{after, limit}}, func(ctx context.Context) ([]catalog.LiveRef, error) {
		return x.catalog.RefsByKey(ctx, after, limit)
	})
}

func (x *around) MarkersOf(ctx context.Context, d catalog.Duty, afterID string, limit int) ([]catalog.Marker, error) {
	return one(ctx, x, Verb{Name: "MarkersOf", About: []any{d, afterID, limit}}, func(ctx context.Context) ([]catalog.Marker, error) {
		return x.catalog.MarkersOf(ctx, d, afterID, limit)
	})
}

func (x *around) Intents(ctx context.Context, afterKey string, limit int) ([]catalog.Intent, error) {
	return one(ctx, x, Verb{Name: "Intents", About: []any{afterKey, limit}}, func(ctx context.Context) ([]catalog.Intent, error) {
		return x.catalog.Intents(ctx, afterKey, limit)
	})
}

func (x *around) AuditRows(ctx context.Context, after int64, limit int) ([]catalog.AuditRow, error) {
	return one(ctx, x, Verb{Name: "AuditRows", About: []any{after, limit}}, func(ctx context.Context) ([]catalog.AuditRow, error) {
		return x.catalog.AuditRows(ctx, after, limit)
	})
}
