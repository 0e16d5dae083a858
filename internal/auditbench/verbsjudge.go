package auditbench

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func (v *counted) Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error) {
	v.verbs.Add(1)
	return v.Catalog.Liveness(ctx, key)
}

func (v *counted) Confirm(ctx context.Context, m catalog.MarkerRef) error {
	v.verbs.Add(1)
	return v.Catalog.Confirm(ctx, m)
}

func (v *counted) CondemnKey(ctx context.Context, m catalog.MarkerRef) error {
	v.verbs.Add(1)
	return v.Catalog.CondemnKey(ctx, m)
}

func (v *counted) BurnKey(ctx context.Context, keys []string) error {
	v.verbs.Add(1)
	return v.Catalog.BurnKey(ctx, keys)
}

func (v *counted) Intent(ctx context.Context, key string) (catalog.Intent, error) {
	v.verbs.Add(1)
	return v.Catalog.Intent(ctx, key)
}

func (v *counted) CondemnIntent(ctx context.Context, m catalog.MarkerRef) (catalog.Verdict, catalog.Intent, error) {
	v.verbs.Add(1)
	return v.Catalog.CondemnIntent(ctx, m)
}

func (v *counted) BurnIntent(ctx context.Context, key string) error {
	v.verbs.Add(1)
	return v.Catalog.BurnIntent(ctx, key)
}

func (v *counted) RemoveIntent(ctx context.Context, key string) (bool, error) {
	v.verbs.Add(1)
	return v.Catalog.RemoveIntent(ctx, key)
}

func (v *counted) RaiseWatermark(ctx context.Context, w catalog.Watermark) (catalog.ChainRow, error) {
	v.verbs.Add(1)
	return v.Catalog.RaiseWatermark(ctx, w)
}

func (v *counted) DeadRefs(ctx context.Context, c segment.Chain, limit int) ([]catalog.Ref, bool, error) {
	v.verbs.Add(1)
	return v.Catalog.DeadRefs(ctx, c, limit)
}

func (v *counted) StraddlingRefs(ctx context.Context, c segment.Chain, after *catalog.Ref, limit int) ([]catalog.Ref, bool, error) {
	v.verbs.Add(1)
	return v.Catalog.StraddlingRefs(ctx, c, after, limit)
}

func (v *counted) AdvanceRewritten(ctx context.Context, c segment.Chain, consumerHoldMax int64) (catalog.ChainRow, error) {
	v.verbs.Add(1)
	return v.Catalog.AdvanceRewritten(ctx, c, consumerHoldMax)
}

func (v *counted) DueSlots(ctx context.Context, c segment.Chain, limit int) (catalog.TrimPlan, error) {
	v.verbs.Add(1)
	return v.Catalog.DueSlots(ctx, c, limit)
}

func (v *counted) AdvanceTrim(ctx context.Context, c segment.Chain, from, to segment.ID) (catalog.ChainRow, error) {
	v.verbs.Add(1)
	return v.Catalog.AdvanceTrim(ctx, c, from, to)
}

func (v *counted) CondemnSlots(ctx context.Context, m catalog.MarkerRef, c segment.Chain, expect, to segment.ID) (catalog.ChainRow, error) {
	v.verbs.Add(1)
	return v.Catalog.CondemnSlots(ctx, m, c, expect, to)
}

func (v *counted) TrimStream(ctx context.Context, name string, pos segment.Pos) (catalog.Stream, error) {
	v.verbs.Add(1)
	return v.Catalog.TrimStream(ctx, name, pos)
}

func (v *counted) DeleteStream(ctx context.Context, name string) (catalog.Stream, error) {
	v.verbs.Add(1)
	return v.Catalog.DeleteStream(ctx, name)
}

func (v *counted) WalkStream(ctx context.Context, streamID int64, limit int) (catalog.WalkPage, error) {
	v.verbs.Add(1)
	return v.Catalog.WalkStream(ctx, streamID, limit)
}

func (v *counted) ArmWatchers(ctx context.Context, refs []catalog.Ref) error {
	v.verbs.Add(1)
	return v.Catalog.ArmWatchers(ctx, refs)
}

func (v *counted) RetireRefs(ctx context.Context, refs []catalog.Ref) (int, error) {
	v.verbs.Add(1)
	return v.Catalog.RetireRefs(ctx, refs)
}

func (v *counted) AcceptLoss(ctx context.Context, key, stream string) ([]catalog.Ref, error) {
	v.verbs.Add(1)
	return v.Catalog.AcceptLoss(ctx, key, stream)
}

func (v *counted) AdvanceJournal(ctx context.Context, c segment.Chain, n uint64) error {
	v.verbs.Add(1)
	return v.Catalog.AdvanceJournal(ctx, c, n)
}

func (v *counted) TakeDue(ctx context.Context, t catalog.Take) ([]catalog.Marker, error) {
	v.verbs.Add(1)
	return v.Catalog.TakeDue(ctx, t)
}

func (v *counted) Arm(ctx context.Context, d catalog.Duty, id string, class segment.Class, in time.Duration) error {
	v.verbs.Add(1)
	return v.Catalog.Arm(ctx, d, id, class, in)
}

func (v *counted) Resolve(ctx context.Context, m catalog.MarkerRef) error {
	v.verbs.Add(1)
	return v.Catalog.Resolve(ctx, m)
}

func (v *counted) Postpone(ctx context.Context, m catalog.MarkerRef, in time.Duration, cause string) error {
	v.verbs.Add(1)
	return v.Catalog.Postpone(ctx, m, in, cause)
}

func (v *counted) Marker(ctx context.Context, d catalog.Duty, id string) (catalog.Marker, error) {
	v.verbs.Add(1)
	return v.Catalog.Marker(ctx, d, id)
}

func (v *counted) NextDue(ctx context.Context, duties []catalog.Duty) (time.Time, bool, error) {
	v.verbs.Add(1)
	return v.Catalog.NextDue(ctx, duties)
}

func (v *counted) Stream(ctx context.Context, name string) (catalog.Stream, error) {
	v.verbs.Add(1)
	return v.Catalog.Stream(ctx, name)
}

func (v *counted) Streams(ctx context.Context, after string, limit int) ([]catalog.Stream, error) {
	v.verbs.Add(1)
	return v.Catalog.Streams(ctx, after, limit)
}

func (v *counted) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	v.verbs.Add(1)
	return v.Catalog.Plan(ctx, r)
}

func (v *counted) Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error) {
	v.verbs.Add(1)
	return v.Catalog.Slots(ctx, c, from, limit)
}

func (v *counted) ChainRefs(ctx context.Context, c segment.Chain, from segment.Seq, limit int) ([]catalog.Ref, error) {
	v.verbs.Add(1)
	return v.Catalog.ChainRefs(ctx, c, from, limit)
}

func (v *counted) Status(ctx context.Context) (catalog.Status, error) {
	v.verbs.Add(1)
	return v.Catalog.Status(ctx)
}

func (v *counted) RefsByKey(ctx context.Context, after *catalog.Ref, limit int) ([]catalog.LiveRef, error) {
	v.verbs.Add(1)
	return v.Catalog.RefsByKey(ctx, after, limit)
}

func (v *counted) MarkersOf(ctx context.Context, d catalog.Duty, afterID string, limit int) ([]catalog.Marker, error) {
	v.verbs.Add(1)
	return v.Catalog.MarkersOf(ctx, d, afterID, limit)
}

func (v *counted) Intents(ctx context.Context, afterKey string, limit int) ([]catalog.Intent, error) {
	v.verbs.Add(1)
	return v.Catalog.Intents(ctx, afterKey, limit)
}

func (v *counted) AuditRows(ctx context.Context, after int64, limit int) ([]catalog.AuditRow, error) {
	v.verbs.Add(1)
	return v.Catalog.AuditRows(ctx, after, limit)
}

func (v *counted) RefsAcross(ctx context.Context, c segment.Chain, at segment.Seq, after *catalog.Ref, limit int) ([]catalog.Ref, bool, error) {
	v.verbs.Add(1)
	return v.Catalog.RefsAcross(ctx, c, at, after, limit)
}

func (v *counted) Debts(ctx context.Context) (catalog.Debts, error) {
	v.verbs.Add(1)
	return v.Catalog.Debts(ctx)
}
