package postgres

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
)

// Status counts what stands. It scans: for people and metrics, not for duties.
func (d *DB) Status(ctx context.Context) (out catalog.Status, err error) {
	err = d.read(ctx, "Status", func(t *tx) error {
		if err := t.know(); err != nil {
			return err
		}
		out = catalog.Status{
			Now: t.now, Refs: map[catalog.RefKind]int64{}, Markers: map[catalog.Duty]catalog.MarkerCount{}, Intents: map[catalog.IntentState]int64{},
		}
		settings := t.askSettings("")
		t.askOne("SELECT count(*), count(*) FILTER (WHERE deleted) FROM stream", nil, nil, &out.Streams, &out.Deleted)
		t.askOne("SELECT count(*) FROM auditor WHERE lease_end > $1", []any{column.Nanos(t.now)}, nil, &out.Auditors)
		// Counted by object first: an index-only scan of as many entries as there are refs.
		t.ask("SELECT o.kind, sum(r.n)::int8 FROM (SELECT object, count(*) AS n FROM ref GROUP BY object) r JOIN object o ON o.id = r.object GROUP BY o.kind", func(scan column.Scan) error {
			var kind string
			var n int64
			err := scan(&kind, &n)
			out.Refs[catalog.RefKind(kind)] = n
			return err
		})
		t.ask("SELECT state, count(*) FROM intent GROUP BY state", func(scan column.Scan) error {
			var state string
			var n int64
			err := scan(&state, &n)
			out.Intents[catalog.IntentState(state)] = n
			return err
		})
		t.askCounts(out.Markers)
		err := t.flush()
		out.Settings = *settings
		return err
	})
	return out, err
}

// Debts counts the markers that stand.
func (d *DB) Debts(ctx context.Context) (out catalog.Debts, err error) {
	err = d.read(ctx, "Debts", func(t *tx) error {
		if err := t.know(); err != nil {
			return err
		}
		out = catalog.Debts{Now: t.now, Markers: map[catalog.Duty]catalog.MarkerCount{}}
		t.askCounts(out.Markers)
		return t.flush()
	})
	return out, err
}

func (t *tx) askCounts(out map[catalog.Duty]catalog.MarkerCount) {
	t.ask(`SELECT duty, count(*), count(*) FILTER (WHERE due <= $1), min(due), sum(CASE WHEN last_error <> '' THEN attempts ELSE 0 END)::int8 FROM marker GROUP BY duty`, func(scan column.Scan) error {
		var duty string
		var m catalog.MarkerCount
		var oldest int64
		err := scan(&duty, &m.Standing, &m.Due, &oldest, &m.Attempts)
		m.Oldest = column.At(oldest)
		out[catalog.Duty(duty)] = m
		return err
	}, column.Nanos(t.now))
	t.ask("SELECT DISTINCT ON (duty) duty, last_error FROM marker WHERE last_error <> '' ORDER BY duty, attempts DESC, id", func(scan column.Scan) error {
		var duty, last string
		err := scan(&duty, &last)
		m := out[catalog.Duty(duty)]
		m.LastError = last
		out[catalog.Duty(duty)] = m
		return err
	})
}

// RefsByKey pages all refs by (key, stream, first).
func (d *DB) RefsByKey(ctx context.Context, after *catalog.Ref, limit int) (out []catalog.LiveRef, err error) {
	const order = " ORDER BY o.key, r.stream, r.epoch, r.first LIMIT "
	err = d.read(ctx, "RefsByKey", func(t *tx) error {
		out = nil
		n := catalog.PageSize(limit)
		from := ""
		if after != nil {
			from = after.Key
			// Two index ranges instead of one row comparison over two tables.
			t.askRefs(&out, naming+"WHERE o.key = $1 AND (r.stream, r.epoch, r.first) > ($2::int8, $3::int8, $4::int8)"+order+"$5",
				from, after.StreamID, int64(after.Epoch), int64(after.First), int64(n))
			if err := t.flush(); err != nil || len(out) == n {
				return err
			}
		}
		// Objects in the order of their keys, each with its refs: no more of them are read
		// than a page has rows.
		t.askRefs(&out, "SELECT "+refCols+` FROM (SELECT * FROM object WHERE (key > $1 OR key = '' AND $2) AND EXISTS (SELECT 1 FROM ref x WHERE x.object = object.id) ORDER BY key LIMIT $3) o
 JOIN ref r ON r.object = o.id`+streamJoin+order+"$3", from, after == nil, int64(n-len(out)))
		return t.flush()
	})
	return out, err
}

// MarkersOf pages a duty's markers by id.
func (d *DB) MarkersOf(ctx context.Context, duty catalog.Duty, afterID string, limit int) (out []catalog.Marker, err error) {
	err = d.read(ctx, "MarkersOf", func(t *tx) error {
		out = nil
		t.ask("SELECT "+column.Markers+" FROM marker WHERE duty = $1 AND id > $2 ORDER BY id LIMIT $3", func(scan column.Scan) error {
			var ns int64
			m, err := column.Marker(scan, &ns)
			out = append(out, m)
			return err
		}, string(duty), plain(afterID), int64(catalog.PageSize(limit)))
		return nil
	})
	return out, err
}

// Intents pages by key.
func (d *DB) Intents(ctx context.Context, afterKey string, limit int) (out []catalog.Intent, err error) {
	err = d.read(ctx, "Intents", func(t *tx) error {
		out = nil
		t.ask("SELECT "+column.Intents+" FROM intent WHERE key > $1 ORDER BY key LIMIT $2", func(scan column.Scan) error {
			in, err := column.Intent(scan)
			out = append(out, in)
			return err
		}, plain(afterKey), int64(catalog.PageSize(limit)))
		return nil
	})
	return out, err
}

// AuditRows pages by number.
func (d *DB) AuditRows(ctx context.Context, after int64, limit int) (out []catalog.AuditRow, err error) {
	err = d.read(ctx, "AuditRows", func(t *tx) error {
		out = nil
		t.ask("SELECT seq, at, kind, subject, detail FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2", func(scan column.Scan) error {
			var r catalog.AuditRow
			var ns int64
			err := scan(&r.Seq, &ns, &r.Kind, &r.Subject, &r.Detail)
			r.Time = column.At(ns)
			out = append(out, r)
			return err
		}, after, int64(catalog.PageSize(limit)))
		return nil
	})
	return out, err
}
