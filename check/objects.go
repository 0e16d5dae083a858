package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/doctor"
	"github.com/strandline/strandline/segment"
)

// standing is what is known of an object that no ref named when the refs were
// read: the inputs of judge.
type standing struct {
	key     segment.Key
	chain   *catalog.ChainRow // nil: no such chain
	intent  *catalog.Intent   // nil: none
	watched catalog.Duty      // duty of a marker for the key, or empty
	young   bool              // its intent's deadline has not passed
	epoch   bool              // the catalog has the key's epoch
	old     bool              // as old as no running doctor is
	stray   bool              // it stands in a bucket for copies, and not in the one that decides
}

// finding is what an object without a ref is.
type finding struct {
	waiting bool
	state   State // empty: as it should be
	why     string
}

// judge decides, purely, what an object without a ref is.
func judge(s standing) finding {
	switch s.key.Kind {
	case segment.KeySlot:
		return judgeSlot(s)
	case segment.KeyStream, segment.KeyPack:
		return judgeSettled(s)
	case segment.KeyHead, segment.KeyTrim:
		if s.chain == nil {
			return finding{state: Unknown, why: "a record of a chain that the catalog does not have: was the catalog rolled back?"}
		}
		return finding{}
	case segment.KeyTopology:
		if !s.epoch {
			return finding{state: Unknown, why: "a record of an epoch that the catalog does not have: was the catalog rolled back?"}
		}
		return finding{}
	case segment.KeyStamp:
		return finding{}
	case segment.KeyDoctor:
		return judgeProbe(s)
	default:
		return finding{state: Unknown, why: "not a key that Strandline forms"}
	}
}

// judgeProbe: a doctor removes its keys itself; what a killed one left, a later one.
func judgeProbe(s standing) finding {
	if s.old {
		return finding{state: Pending, why: "left by a doctor that was stopped: run `strandline doctor`, or start a writer or an auditor"}
	}
	return finding{waiting: true, why: "a doctor is at work"}
}

func judgeSlot(s standing) finding {
	switch {
	case s.chain == nil:
		return finding{state: Leaked, why: "a slot of a chain that the catalog does not have"}
	case s.key.ID < s.chain.Trimmed:
		return finding{state: Leaked, why: fmt.Sprintf("a stray below the chain's trimmed position %d", s.chain.Trimmed)}
	case s.key.ID >= s.chain.AbsorbedEnd && s.stray:
		return finding{state: Pending, why: "a copy of what the first bucket of the set does not have: nobody absorbs it, it goes when its position is trimmed"}
	case s.key.ID >= s.chain.AbsorbedEnd && s.chain.Closed:
		return finding{state: Unknown, why: "a slot beyond the end of a closed chain: nobody absorbs it"}
	case s.key.ID >= s.chain.AbsorbedEnd:
		return finding{waiting: true, why: "published, not absorbed yet"}
	default:
		return finding{waiting: true, why: "waits for its settle or for its trim"}
	}
}

func judgeSettled(s standing) finding {
	switch {
	case s.intent != nil && s.intent.State == catalog.IntentStanding && s.young:
		return finding{waiting: true, why: "a job is making it"}
	case s.intent != nil && s.intent.State == catalog.IntentBurned:
		return finding{state: Pending, why: "landed after its key was burned; the orphan judge's last look deletes it"}
	case s.intent != nil:
		return finding{state: Pending, why: "under an intent; the orphan judge sees to it"}
	case s.watched != "":
		return finding{state: Pending, why: fmt.Sprintf("dead; its %s is due after the grace", s.watched)}
	default:
		return finding{state: Leaked, why: "nothing watches it"}
	}
}

// unnamed looks at an object without a ref: first at what may own it. What nothing
// owns is looked at again before it is reported, for all that was read in bulk is old.
func (w *walk) unnamed(ctx context.Context, at place, info objstore.Info) error {
	s, err := w.standing(ctx, info)
	if err != nil {
		return err
	}
	if s.stray, err = w.isStray(ctx, at, s); err != nil {
		return err
	}
	f := judge(s)
	if f.state == Leaked || f.state == Unknown && s.key.Kind != 0 || f.state == Pending && s.key.Kind == segment.KeyDoctor {
		var accounted bool
		if f, accounted, err = w.lookAgain(ctx, at, info); err != nil || accounted {
			return err
		}
	}
	if f.waiting {
		w.report.Waiting++
		w.report.WaitingBytes += info.Size
		if !heldByDesign(s, w.settles[s.key.Chain.Epoch]) {
			w.owe(OwedItem{What: "object", ID: info.Key, Bucket: at.store.Name(), Why: f.why})
		}
	}
	if f.state != "" {
		w.garbage(GarbageItem{Key: info.Key, Bucket: at.store.Name(), Bytes: info.Size, State: f.state, Why: f.why})
	}
	return nil
}

// lookAgain asks by name, in the order of an object's life: an intent stands before
// the object, then refs, then a reap-check, then a burned intent. Whoever was in one
// of these states at the first look is found in it, or in a later one, or the object is
// gone, which is asked last. accounted is true of what a ref names, or is gone.
func (w *walk) lookAgain(ctx context.Context, at place, info objstore.Info) (f finding, accounted bool, err error) {
	refs, err := w.cat.Liveness(ctx, info.Key)
	if err != nil {
		return f, false, err
	}
	if len(refs) > 0 {
		return f, true, w.named(ctx, at, seen{key: info.Key, listed: &info, refs: refs})
	}
	if err := w.cursors(ctx); err != nil {
		return f, false, err
	}
	s, err := w.standing(ctx, info)
	if err != nil {
		return f, false, err
	}
	// Once more after the markers: its reap-check may have been resolved by the burn.
	if s.intent == nil && s.watched == "" {
		if err := w.intent(ctx, info.Key, &s); err != nil {
			return f, false, err
		}
	}
	// A HEAD's 404 has no code: a missing bucket looks the same. The GET has one.
	_, _, err = at.store.ReadSuffix(ctx, info.Key, 1)
	there, err := stands(ctx, at.store, info.Key, err)
	if err != nil || !there {
		return f, true, err
	}
	return judge(s), false, nil
}

// cursors reads the chains and epochs anew.
func (w *walk) cursors(ctx context.Context) error {
	rows, err := w.cat.Chains(ctx)
	if err != nil {
		return err
	}
	w.chains = make(map[segment.Chain]catalog.ChainRow, len(rows))
	for _, row := range rows {
		w.chains[row.Chain] = row
	}
	tops, err := w.cat.Topologies(ctx)
	if err != nil {
		return err
	}
	w.epochs, w.settles = make(map[segment.Epoch]segment.Class, len(tops)), make(map[segment.Epoch]bool, len(tops))
	for _, t := range tops {
		w.epochs[t.Epoch], w.settles[t.Epoch] = t.Class, t.Settle
	}
	return closedEpochs(tops, rows)
}

// closedEpochs: an epoch is closed after its last chain was, in the catalog's own
// transaction. One that says otherwise is no ground for a verdict.
func closedEpochs(tops []catalog.Topology, rows []catalog.ChainRow) error {
	closed := map[segment.Epoch]bool{}
	for _, t := range tops {
		closed[t.Epoch] = t.State == catalog.TopologyClosed
	}
	for i := range rows {
		if closed[rows[i].Epoch] && !rows[i].Closed {
			return fmt.Errorf("%w: epoch %d is closed, its chain %s is not: bring the newest copy of the catalog back (a rebuild from the bucket comes with a later release)",
				catalog.ErrCorrupt, rows[i].Epoch, rows[i].Chain)
		}
	}
	return nil
}

func (w *walk) standing(ctx context.Context, info objstore.Info) (standing, error) {
	var s standing
	key := info.Key
	k, err := segment.ParseKey(key)
	if err != nil {
		return s, nil //nolint:nilerr // an unknown shape is a finding, not a fault
	}
	s.key = k
	s.old = w.now.Sub(info.Modified) >= doctor.LeftoverAge
	_, s.epoch = w.epochs[k.Chain.Epoch]
	if row, ok := w.chains[k.Chain]; ok {
		s.chain = &row
	}
	if k.Kind != segment.KeyStream && k.Kind != segment.KeyPack {
		return s, nil
	}
	// One query for each settled object that no ref names: those are few, for they die soon.
	if err := w.intent(ctx, key, &s); err != nil {
		return s, err
	}
	for _, duty := range watchers {
		ok, err := w.hasMarker(ctx, duty, key)
		if err != nil {
			return s, err
		}
		if ok {
			s.watched = duty
			break
		}
	}
	return s, nil
}

// watchers are the duties whose marker sees to an object that no ref names, in the order
// in which they come: gc arms the reap-check before it resolves. A tail-fill's marker is
// none, though its id is a key: it moves live rows, and resolves where there are none. The
// marker of a pack-merge names no object at all.
var watchers = []catalog.Duty{catalog.DutyGC, catalog.DutyReapCheck}

func (w *walk) intent(ctx context.Context, key string, s *standing) error {
	intent, err := w.cat.Intent(ctx, key)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	s.intent, s.young = &intent, w.now.Before(intent.Deadline)
	return nil
}

func (w *walk) hasMarker(ctx context.Context, duty catalog.Duty, id string) (bool, error) {
	_, err := w.cat.Marker(ctx, duty, id)
	if errors.Is(err, catalog.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
