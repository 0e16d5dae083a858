package memory

import (
	"context"

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
		put, err := catalog.CondemnKey(m, t.reaping(m), t.now)
		if put != nil {
			t.putIntent(put)
		}
		return err
	})
}

// judging is what stands for an intent and its marker.
func (t *tx) judging(m catalog.MarkerRef) catalog.Judging {
	look := catalog.Judging{Intent: t.intentOf(m.ID), Named: t.named(m.ID)}
	if have, ok := t.marker.get(markerKey{m.Duty, m.ID}); ok {
		seen := have.Marker
		look.Stands, look.Confirmed = &seen, have.confirmed
		if t.skip[Version] {
			seen.Version = m.Version
		}
	}
	return look
}

// reaping is what a reap-check looks at, but for the guards that are skipped.
func (t *tx) reaping(m catalog.MarkerRef) catalog.Judging {
	look := t.judging(m)
	look.Grace = t.grace()
	if t.skip[Confirmed] && look.Stands != nil {
		look.Stands.Confirmed, look.Confirmed = true, t.now.Add(-look.Grace)
	}
	if t.skip[Named] {
		look.Named = 0
	}
	return look
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
	state := make(map[string]catalog.IntentState, len(keys))
	var ms []catalog.Armed
	for _, k := range keys {
		in := t.intentOf(k)
		if in == nil {
			continue
		}
		if state[k] = in.State; t.skip[Condemned] {
			state[k] = catalog.IntentCondemned
		}
		if in.State != catalog.IntentBurned {
			ms = append(ms, catalog.Armed{ID: k, Class: in.Class})
			in.State, in.Changed, in.Uploads = catalog.IntentBurned, t.now, nil
			t.putIntent(in)
		}
	}
	t.armAll(catalog.DutyOrphan, ms, catalog.BurnDelay)
	return catalog.CheckBurn(keys, state)
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
		j, err := t.judge(m)
		v, out = j.Verdict, j.Intent
		return err
	})
	if err != nil {
		return "", catalog.Intent{}, err
	}
	return v, out, nil
}

func (t *tx) judge(m catalog.MarkerRef) (catalog.Judgement, error) {
	look := t.judging(m)
	_, look.Watched = t.marker.get(markerKey{catalog.DutyReapCheck, m.ID})
	look.Grace = t.orphanGrace()
	now := t.now
	if in := look.Intent; in != nil && t.skip[OrphanGrace] && now.Before(catalog.JudgeAt(in, look.Grace)) {
		now = catalog.JudgeAt(in, look.Grace)
	}
	j, err := catalog.JudgeIntent(m, look, now)
	if err != nil {
		return j, err
	}
	switch {
	case j.Verdict == catalog.Gone:
		t.resolve(m)
	case j.Verdict == catalog.Named:
		t.dropIntent(m.ID)
	case j.Verdict == catalog.NotYet:
		t.postpone(m, j.Wait, "")
	case j.Condemn && !t.skip[Condemned]: // skipped: said, not written
		t.putIntent(&j.Intent)
	}
	return j, nil
}
