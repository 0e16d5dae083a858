package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// maybeMarker is one marker, nil if none stands, and when it was confirmed.
type maybeMarker struct {
	m         *catalog.Marker
	confirmed time.Time
}

func (t *tx) askMarker(d catalog.Duty, id, how string) *maybeMarker {
	out := &maybeMarker{}
	t.ask("SELECT "+column.Markers+" FROM marker WHERE duty = $1 AND id = $2"+how, func(scan column.Scan) error {
		var ns int64
		r, err := column.Marker(scan, &ns)
		out.m, out.confirmed = &r, column.At(ns)
		return err
	}, string(d), plain(id))
	return out
}

// Marker is the standing one of a duty and id.
func (d *DB) Marker(ctx context.Context, duty catalog.Duty, id string) (catalog.Marker, error) {
	var have *maybeMarker
	err := d.read(ctx, "Marker", func(t *tx) error {
		have = t.askMarker(duty, id, "")
		return nil
	})
	if err == nil && have.m == nil {
		err = fmt.Errorf("%w: marker %s %s", catalog.ErrNotFound, string(duty), id)
	}
	if err != nil {
		return catalog.Marker{}, err
	}
	return *have.m, nil
}

// newVersion queues the drawing of a version that no marker ever had; the statement
// behind it says version for it. A version that was drawn and rolled back is never used.
func (t *tx) newVersion() { t.exec("SELECT nextval('marker_version')") }

const version = "currval('marker_version')"

// arm creates the marker or raises the standing one's version.
func (t *tx) arm(d catalog.Duty, id string, class segment.Class, in time.Duration) {
	t.armAll(d, []catalog.Armed{{ID: id, Class: class}}, in)
}

// armAll arms many markers of one duty, in one statement, in the order of their ids. The
// trim-check's own clock is kept: an early run must not reset it. Any arm takes a
// confirmation back.
func (t *tx) armAll(d catalog.Duty, ms []catalog.Armed, in time.Duration) {
	if len(ms) == 0 {
		return
	}
	slices.SortFunc(ms, func(x, y catalog.Armed) int { return cmp.Compare(x.ID, y.ID) })
	ids, classes := make([]string, len(ms)), make([]string, len(ms))
	for i, m := range ms {
		ids[i], classes[i] = plain(m.ID), string(m.Class)
	}
	t.newVersion()
	t.exec(`INSERT INTO marker SELECT $1, j.id, `+version+`, $2::int8, j.class, 0, '', 0, 0, 0, '' FROM unnest($3::text[], $4::text[]) j(id, class)
 ON CONFLICT (duty, id) DO UPDATE SET version = excluded.version, confirmed_at = 0,
  due = CASE WHEN marker.duty = 'trim-check' THEN marker.due ELSE excluded.due END,
  class = CASE WHEN excluded.class = '' THEN marker.class ELSE excluded.class END`, string(d), column.Nanos(t.now.Add(in)), ids, classes)
}

// Arm creates a marker, or raises the version of the one that stands.
func (d *DB) Arm(ctx context.Context, duty catalog.Duty, id string, class segment.Class, in time.Duration) error {
	if duty == "" || id == "" {
		return catalog.Invalid("Arm", "duty %q, id %q", string(duty), id)
	}
	return d.write(ctx, "Arm", func(t *tx) error {
		err := t.know()
		t.arm(duty, id, class, in)
		return err
	})
}

// TakeDue leases markers that are due, earliest first. Two that take at once share what is
// due: each passes over the rows that the other holds.
func (d *DB) TakeDue(ctx context.Context, k catalog.Take) (out []catalog.Marker, err error) {
	if err := catalog.ValidateTake(&k); err != nil {
		return nil, err
	}
	err = d.write(ctx, "TakeDue", func(t *tx) error {
		if err := t.know(); err != nil {
			return err
		}
		out = nil
		duties := make([]string, 0, len(k.Duties))
		for _, duty := range slices.Compact(slices.Sorted(slices.Values(k.Duties))) {
			duties = append(duties, string(duty))
		}
		// Each duty an index scan that stops at the limit.
		t.ask(`UPDATE marker SET lease_owner = $1, lease_end = $2, lease_version = marker.version FROM (
 SELECT due.duty, due.id FROM unnest($3::text[]) j(duty) CROSS JOIN LATERAL (
  SELECT m.duty, m.id, m.due FROM marker m WHERE m.duty = j.duty AND m.due <= $4 AND m.lease_end <= $5
  ORDER BY m.due, m.id LIMIT $6 FOR UPDATE SKIP LOCKED) due
 ORDER BY due.due, due.duty, due.id LIMIT $6) taken
 WHERE marker.duty = taken.duty AND marker.id = taken.id RETURNING marker.duty, marker.id, marker.version, marker.due, marker.class,
 marker.confirmed_at, marker.lease_owner, marker.lease_end, marker.attempts, marker.last_error`, func(scan column.Scan) error {
			var ns int64
			m, err := column.Marker(scan, &ns)
			out = append(out, m)
			return err
		}, plain(k.Owner), column.Nanos(t.now.Add(k.Lease)), duties, column.Nanos(t.now.Add(k.Ahead)), column.Nanos(t.now), int64(k.Limit))
		return nil
	})
	slices.SortFunc(out, func(a, b catalog.Marker) int {
		if c := a.Due.Compare(b.Due); c != 0 {
			return c
		}
		if a.Duty != b.Duty {
			return cmp.Compare(string(a.Duty), string(b.Duty))
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return out, err
}

// Resolve deletes a marker at its version. One that was armed meanwhile stays, and
// loses the lease that was taken at the old version.
func (d *DB) Resolve(ctx context.Context, m catalog.MarkerRef) error {
	return d.write(ctx, "Resolve", func(t *tx) error {
		if m.Duty == catalog.DutySettle {
			if err := t.refuseSettle(m); err != nil {
				return err
			}
		}
		t.resolve(m)
		return nil
	})
}

// refuseSettle: a settle marker whose slot stands goes by ResolveSettled only, which
// looks at the refs and keeps the transit's account.
func (t *tx) refuseSettle(m catalog.MarkerRef) error {
	c, id, err := catalog.ParseSettleID(m.ID)
	if err != nil {
		return err
	}
	stands, err := t.one("SELECT 1 FROM slot WHERE epoch = $1::int8 AND shard = $2::int8 AND id = $3", []any{int64(c.Epoch), int64(c.Shard), int64(id)}, new(int))
	if err != nil {
		return err
	}
	if stands {
		return catalog.Invalid("Resolve", "settle marker %s: its slot stands, use ResolveSettled", m.ID)
	}
	return nil
}

func (t *tx) resolve(m catalog.MarkerRef) {
	t.exec("DELETE FROM marker WHERE duty = $1 AND id = $2 AND version = $3", string(m.Duty), plain(m.ID), m.Version)
	t.unlease(m)
}

// unlease ends the lease that was taken at a version which is no more.
func (t *tx) unlease(m catalog.MarkerRef) {
	t.exec("UPDATE marker SET lease_owner = '', lease_end = 0 WHERE duty = $1 AND id = $2 AND lease_version = $3 AND version <> $3",
		string(m.Duty), plain(m.ID), m.Version)
}

// Postpone moves a marker at its version and ends its lease.
func (d *DB) Postpone(ctx context.Context, m catalog.MarkerRef, in time.Duration, cause string) error {
	return d.write(ctx, "Postpone", func(t *tx) error {
		err := t.know()
		t.postpone(m, in, cause)
		return err
	})
}

func (t *tx) postpone(m catalog.MarkerRef, in time.Duration, cause string) {
	t.exec(`UPDATE marker SET due = $1, lease_owner = '', lease_end = 0,
 attempts = CASE WHEN $2 = '' THEN 0 ELSE attempts + 1 END, last_error = $2 WHERE duty = $3 AND id = $4 AND version = $5`,
		column.Nanos(t.now.Add(in)), plain(cause), string(m.Duty), plain(m.ID), m.Version)
	t.unlease(m)
}

// NextDue is when TakeDue will next find something: a leased marker counts from its
// lease's end on.
func (d *DB) NextDue(ctx context.Context, duties []catalog.Duty) (due time.Time, ok bool, err error) {
	err = d.read(ctx, "NextDue", func(t *tx) error {
		if err := t.know(); err != nil {
			return err
		}
		due, ok = time.Time{}, false
		earliest := func(scan column.Scan) error {
			var ns int64
			err := scan(&ns)
			if when := column.At(ns); !ok || when.Before(due) {
				due, ok = when, true
			}
			return err
		}
		for _, duty := range duties {
			t.ask("SELECT due FROM marker WHERE duty = $1 AND lease_end <= $2 ORDER BY due LIMIT 1", earliest, string(duty), column.Nanos(t.now))
			// Of those leased only such as are due before the first free one count.
			t.ask(`SELECT min(GREATEST(due, lease_end)) FROM marker WHERE duty = $1 AND lease_end > $2
 AND due < COALESCE((SELECT f.due FROM marker f WHERE f.duty = $1 AND f.lease_end <= $2 ORDER BY f.due LIMIT 1), 9223372036854775807)
 HAVING count(*) > 0`, earliest, string(duty), column.Nanos(t.now))
		}
		return t.flush()
	})
	return due, ok, err
}
