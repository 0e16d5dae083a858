package postgres

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
)

// Liveness returns all refs that name a key. An error says nothing about the key.
func (d *DB) Liveness(ctx context.Context, key string) (out []catalog.LiveRef, err error) {
	if key == "" {
		return nil, catalog.Invalid("Liveness", "no key")
	}
	err = d.read(ctx, "Liveness", func(t *tx) error {
		out = nil
		t.askKinds("Liveness")
		t.askRefs(&out, naming+"WHERE o.key = $1 ORDER BY r.stream, r.epoch, r.first", plain(key))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Confirm starts a reap-check's read grace. The marker is changed only at its version: an
// arm that comes first makes it another.
func (d *DB) Confirm(ctx context.Context, m catalog.MarkerRef) error {
	if m.Duty != catalog.DutyReapCheck {
		return catalog.Invalid("Confirm", "marker of duty %q", string(m.Duty))
	}
	return d.write(ctx, "Confirm", func(t *tx) error {
		grace, err := t.grace()
		if err != nil {
			return err
		}
		n, err := t.execN(`UPDATE marker SET version = nextval('marker_version'), confirmed_at = $1, due = $2, lease_owner = '', lease_end = 0, attempts = 0, last_error = ''
 WHERE duty = $3 AND id = $4 AND version = $5`, column.Nanos(t.now), column.Nanos(t.now.Add(grace)), string(m.Duty), plain(m.ID), m.Version)
		if err != nil || n == 1 {
			return err
		}
		return t.movedOn("Confirm", m)
	})
}

// movedOn is the conflict of a marker that is not at its version.
func (t *tx) movedOn(verb string, m catalog.MarkerRef) error {
	have := t.askMarker(m.Duty, m.ID, "")
	if err := t.flush(); err != nil {
		return err
	}
	return catalog.MovedOn(verb, m, have.m)
}

// CondemnKey condemns a settled key for a confirmed reap-check. From here nobody
// commits the key again; a crash before the delete leaves the marker, which comes
// back to a key that is condemned already.
//
// The key is claimed before anything is looked at: an announcement of it waits, or was
// first, and then its intent stands or its commit's refs do. The marker is kept as well:
// an arm takes its confirmation back, or waits until the key is condemned.
func (d *DB) CondemnKey(ctx context.Context, m catalog.MarkerRef) error {
	return d.write(ctx, "CondemnKey", func(t *tx) error {
		t.askKinds("CondemnKey")
		claim := t.askClaim(&catalog.Intent{Key: m.ID, Serves: string(m.Duty) + ":" + m.ID, State: catalog.IntentCondemned})
		stands := t.askMarker(m.Duty, m.ID, " FOR UPDATE")
		named := t.askNamed(m.ID)
		settings := t.askSettings("")
		if err := t.flush(); err != nil {
			return err
		}
		in, err := claim.stood()
		if err != nil {
			return err
		}
		put, err := catalog.CondemnKey(m, catalog.Judging{
			Intent: in, Stands: stands.m, Confirmed: stands.confirmed, Named: *named, Grace: t.graceOf(settings),
		}, t.now)
		if err != nil || put == nil {
			return err
		}
		return t.putIntent(put)
	})
}

// BurnKey records that condemned keys are deleted: all of them, or none.
func (d *DB) BurnKey(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	return d.write(ctx, "BurnKey", func(t *tx) error {
		if err := t.burn(keys); err != nil {
			return err
		}
		// Whatever else watched the object has nothing left to look at.
		t.exec("DELETE FROM marker WHERE duty = ANY($1::text[]) AND id = ANY($2::text[])",
			[]string{string(catalog.DutyReapCheck), string(catalog.DutyGC), string(catalog.DutyTailFill)}, keys)
		return nil
	})
}

// burn turns the condemned ones of a set to burned, and arms their last look: a request
// that was sent before the delete may land after it. Every key is condemned, or burned
// already (a lost answer).
func (t *tx) burn(keys []string) error {
	state := make(map[string]catalog.IntentState, len(keys))
	var ms []catalog.Armed
	if err := t.query("SELECT key, class, state FROM intent WHERE key = ANY($1::text[]) ORDER BY key FOR UPDATE", func(scan column.Scan) error {
		var a catalog.Armed
		var s string
		err := scan(&a.ID, (*string)(&a.Class), &s)
		if state[a.ID] = catalog.IntentState(s); state[a.ID] == catalog.IntentCondemned {
			ms = append(ms, a)
		}
		return err
	}, keys); err != nil {
		return err
	}
	if err := catalog.CheckBurn(keys, state); err != nil {
		return err
	}
	t.exec("UPDATE intent SET state = 'burned', changed = $1, uploads = '[]' WHERE state = 'condemned' AND key = ANY($2::text[])", column.Nanos(t.now), keys)
	t.armAll(catalog.DutyOrphan, ms, catalog.BurnDelay)
	return nil
}

// BurnIntent is BurnKey for the judge: uploads and object are gone.
func (d *DB) BurnIntent(ctx context.Context, key string) error {
	return d.write(ctx, "BurnIntent", func(t *tx) error { return t.burn([]string{key}) })
}

// CondemnIntent is the judge's first step (03 §8). It holds the intent's row from before
// it looks for refs, as CommitRewrite does. The refs are looked for before the reap-check:
// whoever takes the last ref away armed the reap-check before, or in the same transaction.
func (d *DB) CondemnIntent(ctx context.Context, m catalog.MarkerRef) (v catalog.Verdict, out catalog.Intent, err error) {
	if m.Duty != catalog.DutyOrphan {
		return "", out, catalog.Invalid("CondemnIntent", "marker of duty %q", string(m.Duty))
	}
	err = d.write(ctx, "CondemnIntent", func(t *tx) error {
		t.askKinds("CondemnIntent")
		in, stands, named := t.askIntent(m.ID, " FOR UPDATE"), t.askMarker(m.Duty, m.ID, " FOR UPDATE"), t.askNamed(m.ID)
		watcher, settings := t.askMarker(catalog.DutyReapCheck, m.ID, ""), t.askSettings("")
		if err := t.flush(); err != nil {
			return err
		}
		j, err := catalog.JudgeIntent(m, catalog.Judging{
			Intent: in.in, Stands: stands.m, Named: *named, Watched: watcher.m != nil, Grace: t.orphanGraceOf(settings),
		}, t.now)
		v, out = j.Verdict, j.Intent
		if err != nil {
			return err
		}
		return t.judged(m, &j)
	})
	if err != nil {
		return "", catalog.Intent{}, err
	}
	return v, out, nil
}

// judged queues what the judgement says.
func (t *tx) judged(m catalog.MarkerRef, j *catalog.Judgement) error {
	switch {
	case j.Verdict == catalog.Gone:
		t.resolve(m)
	case j.Verdict == catalog.Named:
		t.dropIntent(m.ID)
	case j.Verdict == catalog.NotYet:
		t.postpone(m, j.Wait, "")
	case j.Condemn:
		return t.putIntent(&j.Intent)
	}
	return nil
}
