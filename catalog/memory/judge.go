package memory

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
)

// Liveness returns all refs that name a key. An error says nothing about the key.
func (c *Catalog) Liveness(ctx context.Context, key string) (out []catalog.LiveRef, err error) {
	if key == "" {
		return nil, catalog.Invalid("Liveness", "no key")
	}
	err = c.read(ctx, "Liveness", func(t *tx) error {
		if err := t.checkKinds("Liveness"); err != nil {
			return err
		}
		for r := range t.naming(key) {
			l, err := t.live(r)
			if err != nil {
				return err
			}
			out = append(out, l)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Confirm starts a reap-check's read grace.
func (c *Catalog) Confirm(ctx context.Context, m catalog.MarkerRef) error {
	if m.Duty != catalog.DutyReapCheck {
		return catalog.Invalid("Confirm", "marker of duty %q", string(m.Duty))
	}
	return c.write(ctx, "Confirm", func(t *tx) error {
		have, ok := t.at(m)
		if !ok {
			return t.movedOn("Confirm", m)
		}
		next := t.restart(have, t.grace())
		next.Confirmed, next.confirmed = true, t.now
		t.putMarker(next)
		return nil
	})
}

// CondemnKey condemns a settled key for a confirmed reap-check. From here nobody
// commits the key again; a crash before the delete leaves the marker, which comes
// back to a key that is condemned already.
func (c *Catalog) CondemnKey(ctx context.Context, m catalog.MarkerRef) error {
	return c.write(ctx, "CondemnKey", func(t *tx) error {
		if err := t.checkKinds("CondemnKey"); err != nil {
			return err
		}
		in := t.intentOf(m.ID)
		if err := t.checkCondemnKey(m, in); err != nil {
			return err
		}
		if in != nil {
			return nil // condemned or burned before
		}
		stands, _ := t.marker.get(markerKey{m.Duty, m.ID})
		t.putIntent(&catalog.Intent{
			Key: m.ID, Class: stands.Class, Serves: string(m.Duty) + ":" + m.ID,
			Announced: t.now, Deadline: t.now, State: catalog.IntentCondemned, Changed: t.now,
		})
		return nil
	})
}

// checkCondemnKey asks the guards, but for those that are skipped.
func (t *tx) checkCondemnKey(m catalog.MarkerRef, in *catalog.Intent) error {
	var stands *catalog.Marker
	var ripe time.Time
	if have, ok := t.marker.get(markerKey{m.Duty, m.ID}); ok {
		seen := have.Marker
		stands, ripe = &seen, have.confirmed.Add(t.grace())
		if t.skip[Confirmed] {
			seen.Confirmed, ripe = true, t.now
		}
		if t.skip[Version] {
			seen.Version = m.Version
		}
	}
	named := t.named(m.ID)
	if t.skip[Named] {
		named = 0
	}
	return catalog.CheckCondemnKey(m, stands, ripe, t.now, named, in)
}

// BurnKey records that condemned keys are deleted: all of them, or none.
func (c *Catalog) BurnKey(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	return c.write(ctx, "BurnKey", func(t *tx) error {
		if err := t.burn(keys); err != nil {
			return err
		}
		// Whatever else watched the object has nothing left to look at.
		for _, k := range keys {
			for _, d := range []catalog.Duty{catalog.DutyReapCheck, catalog.DutyGC, catalog.DutyTailFill} {
				if m, ok := t.marker.get(markerKey{d, k}); ok {
					t.dropMarker(m)
				}
			}
		}
		return nil
	})
}

// BurnIntent is BurnKey for the judge: uploads and object are gone.
func (c *Catalog) BurnIntent(ctx context.Context, key string) error {
	return c.write(ctx, "BurnIntent", func(t *tx) error { return t.burn([]string{key}) })
}

// burn turns condemned keys to burned, and arms their last look: a request that was
// sent before the delete may land after it. One that is burned already is a lost
// answer; any other state is a conflict.
func (t *tx) burn(keys []string) error {
	var ms []armed
	for _, k := range keys {
		in := t.intentOf(k)
		switch {
		case in == nil:
			return catalog.Conflict("BurnKey", "state of "+k, catalog.IntentCondemned, "no intent")
		case in.State == catalog.IntentBurned:
			continue
		case in.State != catalog.IntentCondemned && !t.skip[Condemned]:
			return catalog.Conflict("BurnKey", "state of "+k, catalog.IntentCondemned, string(in.State))
		}
		ms = append(ms, armed{k, in.Class})
		in.State, in.Changed, in.Uploads = catalog.IntentBurned, t.now, nil
		t.putIntent(in)
	}
	t.armAll(catalog.DutyOrphan, ms, catalog.BurnDelay)
	return nil
}

// CondemnIntent is the judge's first step (03 §8).
func (c *Catalog) CondemnIntent(ctx context.Context, m catalog.MarkerRef) (v catalog.Verdict, out catalog.Intent, err error) {
	if m.Duty != catalog.DutyOrphan {
		return "", out, catalog.Invalid("CondemnIntent", "marker of duty %q", string(m.Duty))
	}
	err = c.write(ctx, "CondemnIntent", func(t *tx) error {
		if err := t.checkKinds("CondemnIntent"); err != nil {
			return err
		}
		in := t.intentOf(m.ID)
		if in == nil {
			v = catalog.Gone
			t.resolve(m)
			return nil
		}
		v, err = t.judge(m, in)
		out = *in
		return err
	})
	if err != nil {
		return "", catalog.Intent{}, err
	}
	return v, out, nil
}

func (t *tx) judge(m catalog.MarkerRef, in *catalog.Intent) (catalog.Verdict, error) {
	if in.State != catalog.IntentStanding {
		return catalog.Condemned, nil
	}
	if _, ok := t.at(m); !ok {
		return "", t.movedOn("CondemnIntent", m) // announced again meanwhile
	}
	if _, watched := t.marker.get(markerKey{catalog.DutyReapCheck, in.Key}); watched || t.isNamed(in.Key) {
		t.dropIntent(in.Key)
		return catalog.Named, nil
	}
	if when := catalog.JudgeAt(in, t.orphanGrace()); t.now.Before(when) && !t.skip[OrphanGrace] {
		t.postpone(m, when.Sub(t.now), "")
		return catalog.NotYet, nil
	}
	if t.skip[Condemned] {
		return catalog.Condemned, nil // said, not written
	}
	in.State, in.Changed = catalog.IntentCondemned, t.now
	t.putIntent(in)
	return catalog.Condemned, nil
}
