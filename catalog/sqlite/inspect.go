package sqlite

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
)

// Status counts what stands. It scans: for people and metrics, not for duties.
func (d *DB) Status(ctx context.Context) (out catalog.Status, err error) {
	err = d.read(ctx, "Status", func(t *tx) (err error) {
		out, err = t.status()
		return err
	})
	return out, err
}

func (t *tx) status() (catalog.Status, error) {
	out := catalog.Status{
		Now: t.now, Refs: map[catalog.RefKind]int64{}, Markers: map[catalog.Duty]catalog.MarkerCount{}, Intents: map[catalog.IntentState]int64{},
	}
	var err error
	if out.Settings, err = t.settings(); err != nil {
		return out, err
	}
	if _, err = t.one("SELECT COUNT(*), COALESCE(SUM(deleted), 0) FROM stream", nil, &out.Streams, &out.Deleted); err != nil {
		return out, err
	}
	if _, err = t.one("SELECT COUNT(*) FROM auditor WHERE lease_end > ?", []any{column.Nanos(t.now)}, &out.Auditors); err != nil {
		return out, err
	}
	if err = t.query("SELECT o.kind, COUNT(*) FROM ref r JOIN object o ON o.id = r.object GROUP BY o.kind", func(scan column.Scan) error {
		var kind string
		var n int64
		err := scan(&kind, &n)
		out.Refs[catalog.RefKind(kind)] = n
		return err
	}); err != nil {
		return out, err
	}
	if err = t.query("SELECT state, COUNT(*) FROM intent GROUP BY state", func(scan column.Scan) error {
		var state string
		var n int64
		err := scan(&state, &n)
		out.Intents[catalog.IntentState(state)] = n
		return err
	}); err != nil {
		return out, err
	}
	return out, t.markerCounts(out.Markers)
}

// Debts counts the markers that stand.
func (d *DB) Debts(ctx context.Context) (out catalog.Debts, err error) {
	err = d.read(ctx, "Debts", func(t *tx) error {
		out = catalog.Debts{Now: t.now, Markers: map[catalog.Duty]catalog.MarkerCount{}}
		return t.markerCounts(out.Markers)
	})
	return out, err
}

func (t *tx) markerCounts(out map[catalog.Duty]catalog.MarkerCount) error {
	if err := t.query(`SELECT duty, COUNT(*), SUM(due <= ?), MIN(due), SUM(CASE WHEN last_error <> '' THEN attempts ELSE 0 END) FROM marker GROUP BY duty`, func(scan column.Scan) error {
		var duty string
		var m catalog.MarkerCount
		var oldest int64
		err := scan(&duty, &m.Standing, &m.Due, &oldest, &m.Attempts)
		m.Oldest = column.At(oldest)
		out[catalog.Duty(duty)] = m
		return err
	}, column.Nanos(t.now)); err != nil {
		return err
	}
	return t.query("SELECT duty, last_error, MAX(attempts) FROM marker WHERE last_error <> '' GROUP BY duty", func(scan column.Scan) error {
		var duty, last string
		var n int64
		err := scan(&duty, &last, &n)
		m := out[catalog.Duty(duty)]
		m.LastError = last
		out[catalog.Duty(duty)] = m
		return err
	})
}

// RefsByKey pages all refs by (key, stream, first).
func (d *DB) RefsByKey(ctx context.Context, after *catalog.Ref, limit int) (out []catalog.LiveRef, err error) {
	const order = " ORDER BY o.key, r.stream, r.epoch, r.first LIMIT ?"
	// Driven by the unique index on the key, then by the index of refs on the object.
	const q = "SELECT " + refCols + ` FROM object o CROSS JOIN ref r ON r.object = o.id LEFT JOIN stream s ON s.id = r.stream
 LEFT JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard `
	err = d.read(ctx, "RefsByKey", func(t *tx) (err error) {
		if after == nil {
			out, err = t.refs(q+order, catalog.PageSize(limit))
			return err
		}
		// Two index ranges instead of one row comparison over two tables.
		rest, err := t.refs(q+"WHERE o.key = ? AND (r.stream, r.epoch, r.first) > (?, ?, ?)"+order,
			after.Key, after.StreamID, int64(after.Epoch), int64(after.First), catalog.PageSize(limit))
		if err != nil || len(rest) == catalog.PageSize(limit) {
			out = rest
			return err
		}
		more, err := t.refs(q+"WHERE o.key > ?"+order, after.Key, catalog.PageSize(limit)-len(rest))
		out = append(rest, more...)
		return err
	})
	return out, err
}

// MarkersOf pages a duty's markers by id.
func (d *DB) MarkersOf(ctx context.Context, duty catalog.Duty, afterID string, limit int) (out []catalog.Marker, err error) {
	err = d.read(ctx, "MarkersOf", func(t *tx) error {
		return t.query("SELECT "+column.Markers+" FROM marker WHERE duty = ? AND id > ? ORDER BY id LIMIT ?", func(scan column.Scan) error {
			var ns int64
			m, err := column.Marker(scan, &ns)
			out = append(out, m)
			return err
		}, string(duty), afterID, catalog.PageSize(limit))
	})
	return out, err
}

// Intents pages by key.
func (d *DB) Intents(ctx context.Context, afterKey string, limit int) (out []catalog.Intent, err error) {
	err = d.read(ctx, "Intents", func(t *tx) error {
		return t.query("SELECT "+column.Intents+" FROM intent WHERE key > ? ORDER BY key LIMIT ?", func(scan column.Scan) error {
			in, err := column.Intent(scan)
			out = append(out, in)
			return err
		}, afterKey, catalog.PageSize(limit))
	})
	return out, err
}

// AuditRows pages by number.
func (d *DB) AuditRows(ctx context.Context, after int64, limit int) (out []catalog.AuditRow, err error) {
	err = d.read(ctx, "AuditRows", func(t *tx) error {
		return t.query("SELECT seq, time, kind, subject, detail FROM audit WHERE seq > ? ORDER BY seq LIMIT ?", func(scan column.Scan) error {
			var r catalog.AuditRow
			var ns int64
			err := scan(&r.Seq, &ns, &r.Kind, &r.Subject, &r.Detail)
			r.Time = column.At(ns)
			out = append(out, r)
			return err
		}, after, catalog.PageSize(limit))
	})
	return out, err
}
