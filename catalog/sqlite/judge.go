package sqlite

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
)

// Liveness returns all refs that name a key. An error says nothing about the key.
func (d *DB) Liveness(ctx context.Context, key string) (out []catalog.LiveRef, err error) {
	if key == "" {
		return nil, catalog.Invalid("Liveness", "no key")
	}
	err = d.read(ctx, "Liveness", func(t *tx) error {
		if err := t.checkKinds("Liveness"); err != nil {
			return err
		}
		out, err = t.refs("SELECT "+refCols+` FROM object o CROSS JOIN ref r ON r.object = o.id LEFT JOIN stream s ON s.id = r.stream
 LEFT JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard WHERE o.key = ? ORDER BY r.stream, r.epoch, r.first`, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Confirm starts a reap-check's read grace.
func (d *DB) Confirm(ctx context.Context, m catalog.MarkerRef) error {
	if m.Duty != catalog.DutyReapCheck {
		return catalog.Invalid("Confirm", "marker of duty %q", string(m.Duty))
	}
	return d.write(ctx, "Confirm", func(t *tx) error {
		grace, err := t.grace()
		if err != nil {
			return err
		}
		v, err := t.version()
		if err != nil {
			return err
		}
		n, err := t.execN(`UPDATE marker SET version = ?, confirmed_at = ?, due = ?, lease_owner = '', lease_end = 0, attempts = 0, last_error = ''
 WHERE duty = ? AND id = ? AND version = ?`, v, column.Nanos(t.now), column.Nanos(t.now)+grace, string(m.Duty), m.ID, m.Version)
		if err != nil || n == 1 {
			return err
		}
		return t.movedOn("Confirm", m)
	})
}

// movedOn is the conflict of a marker that is not at its version.
func (t *tx) movedOn(verb string, m catalog.MarkerRef) error {
	have, _, err := t.marker(m.Duty, m.ID)
	if err != nil {
		return err
	}
	return catalog.MovedOn(verb, m, have)
}

// CondemnKey condemns a settled key for a confirmed reap-check. From here nobody
// commits the key again; a crash before the delete leaves the marker, which comes
// back to a key that is condemned already.
func (d *DB) CondemnKey(ctx context.Context, m catalog.MarkerRef) error {
	return d.write(ctx, "CondemnKey", func(t *tx) error {
		if err := t.checkKinds("CondemnKey"); err != nil {
			return err
		}
		look, err := t.judging(m)
		if err != nil {
			return err
		}
		grace, err := t.grace()
		if err != nil {
			return err
		}
		look.Grace = time.Duration(grace)
		put, err := catalog.CondemnKey(m, look, t.now)
		if err != nil || put == nil {
			return err
		}
		return t.putIntent(put)
	})
}

// judging reads what stands for an intent and its marker.
func (t *tx) judging(m catalog.MarkerRef) (look catalog.Judging, err error) {
	if look.Intent, err = t.intent(m.ID); err != nil {
		return look, err
	}
	if look.Stands, look.Confirmed, err = t.marker(m.Duty, m.ID); err != nil {
		return look, err
	}
	look.Named, err = t.named(m.ID)
	return look, err
}

// BurnKey records that condemned keys are deleted: all of them, or none.
func (d *DB) BurnKey(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	return d.write(ctx, "BurnKey", func(t *tx) error {
		set, err := column.JSON(keys)
		if err != nil {
			return err
		}
		if err := t.checkBurn(keys, set); err != nil {
			return err
		}
		if err := t.burn(set); err != nil {
			return err
		}
		// Whatever else watched the object has nothing left to look at.
		return t.exec("DELETE FROM marker WHERE duty IN (?2, ?3, ?4) AND id IN (SELECT value FROM json_each(?1))",
			set, string(catalog.DutyReapCheck), string(catalog.DutyGC), string(catalog.DutyTailFill))
	})
}

// checkBurn: every key is condemned, or burned already (a lost answer).
func (t *tx) checkBurn(keys []string, set string) error {
	state := make(map[string]catalog.IntentState, len(keys))
	if err := t.query("SELECT key, state FROM intent WHERE key IN (SELECT value FROM json_each(?))", func(scan column.Scan) error {
		var k, s string
		err := scan(&k, &s)
		state[k] = catalog.IntentState(s)
		return err
	}, set); err != nil {
		return err
	}
	return catalog.CheckBurn(keys, state)
}

// burn turns the condemned ones of a set to burned, and arms their last look: a
// request that was sent before the delete may land after it.
func (t *tx) burn(set string) error {
	var ms []catalog.Armed
	if err := t.query("SELECT key, class FROM intent WHERE state = 'condemned' AND key IN (SELECT value FROM json_each(?))", func(scan column.Scan) error {
		var a catalog.Armed
		err := scan(&a.ID, (*string)(&a.Class))
		ms = append(ms, a)
		return err
	}, set); err != nil {
		return err
	}
	if err := t.exec("UPDATE intent SET state = 'burned', changed = ?, uploads = '[]' WHERE state = 'condemned' AND key IN (SELECT value FROM json_each(?))", column.Nanos(t.now), set); err != nil {
		return err
	}
	return t.armAll(catalog.DutyOrphan, ms, catalog.BurnDelay)
}

// BurnIntent is BurnKey for the judge: uploads and object are gone.
func (d *DB) BurnIntent(ctx context.Context, key string) error {
	return d.write(ctx, "BurnIntent", func(t *tx) error {
		set, err := column.JSON([]string{key})
		if err != nil {
			return err
		}
		if err := t.checkBurn([]string{key}, set); err != nil {
			return err
		}
		return t.burn(set)
	})
}

// CondemnIntent is the judge's first step (03 §8).
func (d *DB) CondemnIntent(ctx context.Context, m catalog.MarkerRef) (v catalog.Verdict, out catalog.Intent, err error) {
	if m.Duty != catalog.DutyOrphan {
		return "", out, catalog.Invalid("CondemnIntent", "marker of duty %q", string(m.Duty))
	}
	err = d.write(ctx, "CondemnIntent", func(t *tx) error {
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

func (t *tx) judge(m catalog.MarkerRef) (j catalog.Judgement, err error) {
	look, err := t.judging(m)
	if err != nil {
		return j, err
	}
	watcher, _, err := t.marker(catalog.DutyReapCheck, m.ID)
	if err != nil {
		return j, err
	}
	look.Watched = watcher != nil
	if look.Grace, err = t.orphanGrace(); err != nil {
		return j, err
	}
	if j, err = catalog.JudgeIntent(m, look, t.now); err != nil {
		return j, err
	}
	switch {
	case j.Verdict == catalog.Gone:
		return j, t.resolve(m)
	case j.Verdict == catalog.Named:
		return j, t.dropIntent(m.ID)
	case j.Verdict == catalog.NotYet:
		return j, t.postpone(m, j.Wait, "")
	case j.Condemn:
		return j, t.putIntent(&j.Intent)
	}
	return j, nil
}
