package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Marker is the standing one of a duty and id.
func (c *Catalog) Marker(ctx context.Context, duty catalog.Duty, id string) (out catalog.Marker, err error) {
	err = c.read(ctx, "Marker", func(t *tx) error {
		m, ok := t.marker.get(markerKey{duty, id})
		if !ok {
			return fmt.Errorf("%w: marker %s %s", catalog.ErrNotFound, string(duty), id)
		}
		out = m.Marker
		return nil
	})
	return out, err
}

// version is a fresh one: never used before, by any marker.
func (t *tx) version() int64 {
	t.lastVersion++
	return t.lastVersion
}

// at finds the marker of a reference if it stands at its version.
func (t *tx) at(m catalog.MarkerRef) (*markerRow, bool) {
	have, ok := t.marker.get(markerKey{m.Duty, m.ID})
	if !ok {
		return nil, false
	}
	return have, have.Version == m.Version || t.skip[Version]
}

// movedOn is the conflict of a marker that is not at its version.
func (t *tx) movedOn(verb string, m catalog.MarkerRef) error {
	return catalog.MovedOn(verb, m, t.judging(m).Stands)
}

// arm creates the marker or raises the standing one's version.
func (t *tx) arm(d catalog.Duty, id string, class segment.Class, in time.Duration) {
	t.armAt(d, catalog.Armed{ID: id, Class: class}, in, t.version())
}

// armAll arms many markers of one duty, at one version.
func (t *tx) armAll(d catalog.Duty, ms []catalog.Armed, in time.Duration) {
	if len(ms) == 0 {
		return
	}
	v := t.version()
	for _, m := range ms {
		t.armAt(d, m, in, v)
	}
}

// armAt: the trim-check's own clock is kept: an early run must not reset it. Any arm
// takes a confirmation back.
func (t *tx) armAt(d catalog.Duty, a catalog.Armed, in time.Duration, version int64) {
	m := markerRow{Marker: catalog.Marker{MarkerRef: catalog.MarkerRef{Duty: d, ID: a.ID, Version: version}, Due: t.now.Add(in), Class: a.Class}}
	if have, stands := t.marker.get(markerKey{d, a.ID}); stands {
		m = *have
		m.Version, m.Confirmed, m.confirmed = version, false, time.Time{}
		if d != catalog.DutyTrimCheck {
			m.Due = t.now.Add(in)
		}
		if a.Class != "" {
			m.Class = a.Class
		}
	}
	t.putMarker(&m)
}

// Arm creates a marker, or raises the version of the one that stands.
func (c *Catalog) Arm(ctx context.Context, duty catalog.Duty, id string, class segment.Class, in time.Duration) error {
	if duty == "" || id == "" {
		return catalog.Invalid("Arm", "duty %q, id %q", string(duty), id)
	}
	return c.write(ctx, "Arm", func(t *tx) error {
		t.arm(duty, id, class, in)
		return nil
	})
}

// TakeDue leases markers that are due, earliest first.
func (c *Catalog) TakeDue(ctx context.Context, k catalog.Take) (out []catalog.Marker, err error) {
	if err := catalog.ValidateTake(&k); err != nil {
		return nil, err
	}
	err = c.write(ctx, "TakeDue", func(t *tx) error {
		out = t.take(&k)
		return nil
	})
	return out, err
}

func (t *tx) take(k *catalog.Take) []catalog.Marker {
	var due []*markerRow
	for _, duty := range slices.Compact(slices.Sorted(slices.Values(k.Duties))) { // each a scan that stops at the limit
		due = t.dueOf(duty, k, due)
	}
	slices.SortStableFunc(due, func(a, b *markerRow) int { return a.Due.Compare(b.Due) })
	due = due[:min(len(due), k.Limit)]
	out := make([]catalog.Marker, 0, len(due))
	for _, have := range due {
		m := *have
		m.LeaseOwner, m.LeaseEnd, m.leaseVersion = k.Owner, t.now.Add(k.Lease), m.Version
		t.putMarker(&m)
		out = append(out, m.Marker)
	}
	return out
}

// dueOf appends a duty's markers that are due and not leased, earliest first.
func (t *tx) dueOf(duty catalog.Duty, k *catalog.Take, due []*markerRow) []*markerRow {
	n, until := 0, nanos(t.now.Add(k.Ahead))
	for at, m := range t.markerDue.from(dueKey{duty: duty, due: minTime}) {
		if at.duty != duty || at.due > until || n == k.Limit {
			break
		}
		if !t.now.Before(m.LeaseEnd) {
			due = append(due, m)
			n++
		}
	}
	return due
}

// minTime is below every due time.
const minTime = -1 << 63

// Resolve deletes a marker at its version. One that was armed meanwhile stays, and
// loses the lease that was taken at the old version.
func (c *Catalog) Resolve(ctx context.Context, m catalog.MarkerRef) error {
	return c.write(ctx, "Resolve", func(t *tx) error {
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
	if _, stands := t.slot.get(slotKey{c, id}); stands {
		return catalog.Invalid("Resolve", "settle marker %s: its slot stands, use ResolveSettled", m.ID)
	}
	return nil
}

func (t *tx) resolve(m catalog.MarkerRef) {
	if have, ok := t.at(m); ok {
		t.dropMarker(have)
		return
	}
	t.unlease(m)
}

// unlease ends the lease that was taken at a version which is no more.
func (t *tx) unlease(m catalog.MarkerRef) {
	have, ok := t.marker.get(markerKey{m.Duty, m.ID})
	if ok && have.leaseVersion == m.Version && have.Version != m.Version {
		t.release(have)
	}
}

func (t *tx) release(have *markerRow) {
	m := *have
	m.LeaseOwner, m.LeaseEnd = "", time.Time{}
	t.putMarker(&m)
}

// Postpone moves a marker at its version and ends its lease.
func (c *Catalog) Postpone(ctx context.Context, m catalog.MarkerRef, in time.Duration, cause string) error {
	return c.write(ctx, "Postpone", func(t *tx) error {
		t.postpone(m, in, cause)
		return nil
	})
}

func (t *tx) postpone(ref catalog.MarkerRef, in time.Duration, cause string) {
	have, ok := t.at(ref)
	if !ok {
		t.unlease(ref)
		return
	}
	m := *have
	m.Due, m.LeaseOwner, m.LeaseEnd, m.LastError = t.now.Add(in), "", time.Time{}, cause
	m.Attempts++
	if cause == "" {
		m.Attempts = 0
	}
	t.putMarker(&m)
}

// restart raises a marker's version and makes it due in a while, as if it had just
// been armed, its lease over.
func (t *tx) restart(have *markerRow, in time.Duration) *markerRow {
	m := *have
	m.Version, m.Due = t.version(), t.now.Add(in)
	m.LeaseOwner, m.LeaseEnd, m.Attempts, m.LastError = "", time.Time{}, 0, ""
	return &m
}

// NextDue is when TakeDue will next find something: a leased marker counts from its
// lease's end on.
func (c *Catalog) NextDue(ctx context.Context, duties []catalog.Duty) (due time.Time, ok bool, err error) {
	err = c.read(ctx, "NextDue", func(t *tx) error {
		for _, duty := range duties {
			if next, found := t.nextDue(duty); found && (!ok || next.Before(due)) {
				due, ok = next, true
			}
		}
		return nil
	})
	return due, ok, err
}

func (t *tx) nextDue(duty catalog.Duty) (due time.Time, ok bool) {
	for at, m := range t.markerDue.from(dueKey{duty: duty, due: minTime}) {
		if at.duty != duty || ok && !m.Due.Before(due) {
			break
		}
		next := m.Due
		if free := !t.now.Before(m.LeaseEnd); !free && m.LeaseEnd.After(next) {
			next = m.LeaseEnd
		}
		if !ok || next.Before(due) {
			due, ok = next, true
		}
	}
	return due, ok
}
