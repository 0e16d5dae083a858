package sqlite

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

// marker reads one, nil if none stands, and when it was confirmed.
func (t *tx) marker(d catalog.Duty, id string) (m *catalog.Marker, confirmed time.Time, err error) {
	err = t.query("SELECT "+column.Markers+" FROM marker WHERE duty = ? AND id = ?", func(scan column.Scan) error {
		var ns int64
		r, err := column.Marker(scan, &ns)
		m, confirmed = &r, column.At(ns)
		return err
	}, string(d), id)
	return m, confirmed, err
}

// Marker is the standing one of a duty and id.
func (d *DB) Marker(ctx context.Context, duty catalog.Duty, id string) (out catalog.Marker, err error) {
	err = d.read(ctx, "Marker", func(t *tx) error {
		m, _, err := t.marker(duty, id)
		if err == nil && m == nil {
			err = fmt.Errorf("%w: marker %s %s", catalog.ErrNotFound, string(duty), id)
		}
		if err == nil {
			out = *m
		}
		return err
	})
	return out, err
}

// version is a fresh one: never used before, by any marker.
func (t *tx) version() (v int64, err error) {
	t.wrote = true
	_, err = t.one("UPDATE counter SET value = value + 1 WHERE name = 'marker' RETURNING value", nil, &v)
	return v, err
}

// arm creates the marker or raises the standing one's version.
func (t *tx) arm(d catalog.Duty, id string, class segment.Class, in time.Duration) error {
	return t.armAll(d, []catalog.Armed{{ID: id, Class: class}}, in)
}

// armAll arms many markers of one duty, in one statement. The trim-check's own
// clock is kept: an early run must not reset it. Any arm takes a confirmation back.
func (t *tx) armAll(d catalog.Duty, ms []catalog.Armed, in time.Duration) error {
	if len(ms) == 0 {
		return nil
	}
	v, err := t.version()
	if err != nil {
		return err
	}
	slices.SortFunc(ms, func(x, y catalog.Armed) int { return cmp.Compare(x.ID, y.ID) })
	rows := make([][2]string, len(ms))
	for i, m := range ms {
		rows[i] = [2]string{m.ID, string(m.Class)}
	}
	set, err := column.JSON(rows)
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO marker SELECT ?1, j.value ->> 0, ?2, ?3, j.value ->> 1, 0, '', 0, 0, 0, '' FROM json_each(?4) j WHERE true
 ON CONFLICT (duty, id) DO UPDATE SET version = excluded.version, confirmed_at = 0,
  due = CASE WHEN duty = 'trim-check' THEN due ELSE excluded.due END,
  class = CASE WHEN excluded.class = '' THEN class ELSE excluded.class END`, string(d), v, column.Nanos(t.now.Add(in)), set)
}

// Arm creates a marker, or raises the version of the one that stands.
func (d *DB) Arm(ctx context.Context, duty catalog.Duty, id string, class segment.Class, in time.Duration) error {
	if duty == "" || id == "" {
		return catalog.Invalid("Arm", "duty %q, id %q", string(duty), id)
	}
	return d.write(ctx, "Arm", func(t *tx) error { return t.arm(duty, id, class, in) })
}

// TakeDue leases markers that are due, earliest first.
func (d *DB) TakeDue(ctx context.Context, k catalog.Take) (out []catalog.Marker, err error) {
	if err := catalog.ValidateTake(&k); err != nil {
		return nil, err
	}
	err = d.write(ctx, "TakeDue", func(t *tx) error {
		out, err = t.take(&k)
		return err
	})
	return out, err
}

func (t *tx) take(k *catalog.Take) ([]catalog.Marker, error) {
	var out []catalog.Marker
	duties := slices.Compact(slices.Sorted(slices.Values(k.Duties)))
	for _, duty := range duties { // each an index scan that stops at the limit
		if err := t.query("SELECT "+column.Markers+" FROM marker WHERE duty = ? AND due <= ? AND lease_end <= ? ORDER BY due LIMIT ?", func(scan column.Scan) error {
			var ns int64
			m, err := column.Marker(scan, &ns)
			out = append(out, m)
			return err
		}, string(duty), column.Nanos(t.now.Add(k.Ahead)), column.Nanos(t.now), k.Limit); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(out, func(a, b catalog.Marker) int { return a.Due.Compare(b.Due) })
	out = out[:min(len(out), k.Limit)]
	if len(out) == 0 {
		return nil, nil
	}
	rows := make([][2]string, len(out))
	for i := range out {
		out[i].LeaseOwner, out[i].LeaseEnd = k.Owner, t.now.Add(k.Lease)
		rows[i] = [2]string{string(out[i].Duty), out[i].ID}
	}
	set, err := column.JSON(rows)
	if err != nil {
		return nil, err
	}
	return out, t.exec(`UPDATE marker SET lease_owner = ?, lease_end = ?, lease_version = version
 WHERE (duty, id) IN (SELECT j.value ->> 0, j.value ->> 1 FROM json_each(?) j)`, k.Owner, column.Nanos(t.now.Add(k.Lease)), set)
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
		return t.resolve(m)
	})
}

// refuseSettle: a settle marker whose slot stands goes by ResolveSettled only, which
// looks at the refs and keeps the transit's account.
func (t *tx) refuseSettle(m catalog.MarkerRef) error {
	c, id, err := catalog.ParseSettleID(m.ID)
	if err != nil {
		return err
	}
	var n int
	if _, err := t.one("SELECT COUNT(*) FROM slot WHERE epoch = ? AND shard = ? AND id = ?", []any{c.Epoch, c.Shard, int64(id)}, &n); err != nil {
		return err
	}
	if n > 0 {
		return catalog.Invalid("Resolve", "settle marker %s: its slot stands, use ResolveSettled", m.ID)
	}
	return nil
}

func (t *tx) resolve(m catalog.MarkerRef) error {
	n, err := t.execN("DELETE FROM marker WHERE duty = ? AND id = ? AND version = ?", string(m.Duty), m.ID, m.Version)
	if err != nil || n == 1 {
		return err
	}
	return t.unlease(m)
}

// unlease ends the lease that was taken at a version which is no more.
func (t *tx) unlease(m catalog.MarkerRef) error {
	return t.exec("UPDATE marker SET lease_owner = '', lease_end = 0 WHERE duty = ? AND id = ? AND lease_version = ? AND version <> ?",
		string(m.Duty), m.ID, m.Version, m.Version)
}

// Postpone moves a marker at its version and ends its lease.
func (d *DB) Postpone(ctx context.Context, m catalog.MarkerRef, in time.Duration, cause string) error {
	return d.write(ctx, "Postpone", func(t *tx) error { return t.postpone(m, in, cause) })
}

func (t *tx) postpone(m catalog.MarkerRef, in time.Duration, cause string) error {
	n, err := t.execN(`UPDATE marker SET due = ?, lease_owner = '', lease_end = 0,
 attempts = CASE WHEN ?2 = '' THEN 0 ELSE attempts + 1 END, last_error = ?2 WHERE duty = ?3 AND id = ?4 AND version = ?5`,
		column.Nanos(t.now.Add(in)), cause, string(m.Duty), m.ID, m.Version)
	if err != nil || n == 1 {
		return err
	}
	return t.unlease(m)
}

// NextDue is when TakeDue will next find something: a leased marker counts from its
// lease's end on.
func (d *DB) NextDue(ctx context.Context, duties []catalog.Duty) (due time.Time, ok bool, err error) {
	err = d.read(ctx, "NextDue", func(t *tx) error {
		for _, duty := range duties {
			next, found, err := t.nextDue(duty)
			if err != nil {
				return err
			}
			if found && (!ok || next.Before(due)) {
				due, ok = next, true
			}
		}
		return nil
	})
	return due, ok, err
}

func (t *tx) nextDue(duty catalog.Duty) (time.Time, bool, error) {
	var free, leased int64
	foundFree, err := t.one("SELECT due FROM marker WHERE duty = ? AND lease_end <= ? ORDER BY due LIMIT 1", []any{string(duty), column.Nanos(t.now)}, &free)
	if err != nil {
		return time.Time{}, false, err
	}
	bound := free
	if !foundFree {
		bound = 1<<63 - 1
	}
	foundLeased, err := t.one("SELECT MAX(due, lease_end) AS at FROM marker WHERE duty = ? AND due < ? AND lease_end > ? ORDER BY at LIMIT 1",
		[]any{string(duty), bound, column.Nanos(t.now)}, &leased)
	if err != nil {
		return time.Time{}, false, err
	}
	if foundLeased && leased < bound {
		return column.At(leased), true, nil
	}
	return column.At(free), foundFree, nil
}

// leased says whether the holder has the lease of its duty, or of that marker.
func (t *tx) leased(h catalog.Holder) (bool, error) {
	var n int
	_, err := t.one(`SELECT (SELECT COUNT(*) FROM lease WHERE duty = ?1 AND id = ?2 AND owner = ?3 AND lease_end > ?4)
 + (SELECT COUNT(*) FROM marker WHERE duty = ?1 AND id = ?2 AND lease_owner = ?3 AND lease_end > ?4)`,
		[]any{string(h.Duty), h.ID, h.Owner, column.Nanos(t.now)}, &n)
	return n > 0, err
}

// LeaseDuty takes or renews the one lease of a duty on a chain.
func (d *DB) LeaseDuty(ctx context.Context, h catalog.Holder, lease time.Duration) error {
	if h.Duty == "" || h.ID == "" || h.Owner == "" || lease <= 0 {
		return catalog.Invalid("LeaseDuty", "duty %q, id %q, owner %q, lease %v", string(h.Duty), h.ID, h.Owner, lease)
	}
	return d.write(ctx, "LeaseDuty", func(t *tx) error {
		n, err := t.execN(`INSERT INTO lease VALUES (?1, ?2, ?3, ?4)
 ON CONFLICT (duty, id) DO UPDATE SET owner = excluded.owner, lease_end = excluded.lease_end WHERE owner = ?3 OR lease_end <= ?5`,
			string(h.Duty), h.ID, h.Owner, column.Nanos(t.now.Add(lease)), column.Nanos(t.now))
		if err != nil || n == 1 {
			return err
		}
		var owner string
		var end int64
		if _, err := t.one("SELECT owner, lease_end FROM lease WHERE duty = ? AND id = ?", []any{string(h.Duty), h.ID}, &owner, &end); err != nil {
			return err
		}
		return catalog.Conflict("LeaseDuty", "lease of "+catalog.Serves(h), "free, or over", fmt.Sprintf("%s until %s", owner, column.At(end).Format(time.RFC3339)))
	})
}

// ReleaseDuty ends the lease if it is the holder's.
func (d *DB) ReleaseDuty(ctx context.Context, h catalog.Holder) error {
	return d.write(ctx, "ReleaseDuty", func(t *tx) error {
		return t.exec("DELETE FROM lease WHERE duty = ? AND id = ? AND owner = ?", string(h.Duty), h.ID, h.Owner)
	})
}
