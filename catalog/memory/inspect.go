package memory

import (
	"context"

	"github.com/strandline/strandline/catalog"
)

// Status counts what stands. It scans: for people and metrics, not for duties.
func (c *Catalog) Status(ctx context.Context) (out catalog.Status, err error) {
	err = c.read(ctx, "Status", func(t *tx) error {
		out = catalog.Status{
			Now: t.now, Settings: t.stands(), Streams: int64(t.stream.n),
			Refs: map[catalog.RefKind]int64{}, Markers: map[catalog.Duty]catalog.MarkerCount{}, Intents: map[catalog.IntentState]int64{},
		}
		for _, s := range t.stream.all() {
			if s.Deleted {
				out.Deleted++
			}
		}
		for _, end := range t.auditor.all() {
			if end > nanos(t.now) {
				out.Auditors++
			}
		}
		for _, r := range t.ref.all() {
			out.Refs[r.Kind]++
		}
		for _, in := range t.intent.all() {
			out.Intents[in.State]++
		}
		t.markerCounts(out.Markers)
		return nil
	})
	return out, err
}

// Debts counts the markers that stand.
func (c *Catalog) Debts(ctx context.Context) (out catalog.Debts, err error) {
	err = c.read(ctx, "Debts", func(t *tx) error {
		out = catalog.Debts{Now: t.now, Markers: map[catalog.Duty]catalog.MarkerCount{}}
		t.markerCounts(out.Markers)
		return nil
	})
	return out, err
}

func (t *tx) markerCounts(out map[catalog.Duty]catalog.MarkerCount) {
	worst := map[catalog.Duty]int{} // the attempts of the one whose error is shown
	for _, m := range t.marker.all() {
		n := out[m.Duty]
		n.Standing++
		if !t.now.Before(m.Due) {
			n.Due++
		}
		if n.Standing == 1 || m.Due.Before(n.Oldest) {
			n.Oldest = m.Due
		}
		if m.LastError != "" {
			n.Attempts += int64(m.Attempts)
			if n.LastError == "" || m.Attempts > worst[m.Duty] {
				n.LastError, worst[m.Duty] = m.LastError, m.Attempts
			}
		}
		out[m.Duty] = n
	}
}

// RefsByKey pages all refs by (key, stream, first).
func (c *Catalog) RefsByKey(ctx context.Context, after *catalog.Ref, limit int) (out []catalog.LiveRef, err error) {
	err = c.read(ctx, "RefsByKey", func(t *tx) error {
		refs := t.refName.all()
		if after != nil {
			k := objectOf(after)
			k.first++
			refs = t.refName.from(k)
		}
		for _, r := range refs {
			if len(out) == catalog.PageSize(limit) {
				break
			}
			l, err := t.live(r)
			if err != nil {
				return err
			}
			out = append(out, l)
		}
		return nil
	})
	return out, err
}

// MarkersOf pages a duty's markers by id.
func (c *Catalog) MarkersOf(ctx context.Context, duty catalog.Duty, afterID string, limit int) (out []catalog.Marker, err error) {
	err = c.read(ctx, "MarkersOf", func(t *tx) error {
		for k, m := range t.marker.from(markerKey{duty, afterID}) {
			if k.duty != duty || len(out) == catalog.PageSize(limit) {
				break
			}
			if k.id != afterID {
				out = append(out, m.Marker)
			}
		}
		return nil
	})
	return out, err
}

// Intents pages by key.
func (c *Catalog) Intents(ctx context.Context, afterKey string, limit int) (out []catalog.Intent, err error) {
	err = c.read(ctx, "Intents", func(t *tx) error {
		for k, in := range t.intent.from(afterKey) {
			if len(out) == catalog.PageSize(limit) {
				break
			}
			if k != afterKey {
				out = append(out, copyIntent(in))
			}
		}
		return nil
	})
	return out, err
}

// AuditRows pages by number.
func (c *Catalog) AuditRows(ctx context.Context, after int64, limit int) (out []catalog.AuditRow, err error) {
	err = c.read(ctx, "AuditRows", func(t *tx) error {
		for _, r := range t.audit.from(after + 1) {
			if len(out) == catalog.PageSize(limit) {
				break
			}
			out = append(out, r)
		}
		return nil
	})
	return out, err
}
