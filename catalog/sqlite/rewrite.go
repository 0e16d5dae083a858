package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Window is a batch's worth of slots that owe a settle, and the live refs that name
// them.
func (d *DB) Window(ctx context.Context, c segment.Chain, maxBytes int64) (w catalog.Window, err error) {
	err = d.read(ctx, "Window", func(t *tx) (err error) {
		w, err = t.window(c, maxBytes)
		return err
	})
	return w, err
}

// windowSlots bounds a window of empty slots, which no bytes bound.
const windowSlots = 10_000

func (t *tx) window(c segment.Chain, maxBytes int64) (w catalog.Window, err error) {
	w.Now, w.LiveFrom = t.now, map[int64]segment.Pos{}
	if w.Chain, err = t.chain(c); err != nil {
		return w, err
	}
	var bytes int64
	err = t.query("SELECT "+slotCols+`, m.version, m.due, m.class, m.lease_owner, m.lease_end, m.attempts, m.last_error
 FROM slot s CROSS JOIN marker m ON m.duty = 'settle' AND m.id = printf('%08x.%08x.%016x', s.epoch, s.shard, s.id)
 WHERE s.epoch = ? AND s.shard = ? AND s.owed = 1 AND m.due <= ? ORDER BY s.id`, func(scan scanFunc) error {
		var m catalog.Marker
		var due, lease int64
		s, err := scanSlot(scan, &m.Version, &due, (*string)(&m.Class), &m.LeaseOwner, &lease, &m.Attempts, &m.LastError)
		if err != nil {
			return err
		}
		n := len(w.Slots)
		if n == windowSlots || n > 0 && (s.ID != w.Slots[n-1].ID+1 || bytes+s.Bytes > maxBytes) {
			return errStop
		}
		bytes += s.Bytes
		m.Duty, m.ID, m.Due, m.LeaseEnd = catalog.DutySettle, catalog.SettleID(c, s.ID), at(due), at(lease)
		w.Slots = append(w.Slots, catalog.StandingSlot{SlotRow: s, Marker: m})
		return nil
	}, c.Epoch, c.Shard, nanos(t.now))
	if err != nil || len(w.Slots) == 0 {
		return w, err
	}
	return w, t.windowRefs(&w)
}

// windowRefs reads the refs that name the window's slots, in one query.
func (t *tx) windowRefs(w *catalog.Window) error {
	c := w.Chain.Chain
	// Slots before objects before refs: each step by its index.
	err := t.query("SELECT "+refCols+` FROM slot w CROSS JOIN object o ON o.key = w.key CROSS JOIN ref r ON r.object = o.id
 LEFT JOIN stream s ON s.id = r.stream LEFT JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard
 WHERE w.epoch = ? AND w.shard = ? AND w.id BETWEEN ? AND ?`, func(scan scanFunc) error {
		l, err := scanRef(scan)
		if err != nil || l.Dead(l.LiveFrom) {
			return err
		}
		w.Refs = append(w.Refs, l.Ref)
		w.LiveFrom[l.StreamID] = l.LiveFrom
		return nil
	}, c.Epoch, c.Shard, int64(w.Slots[0].ID), int64(w.Slots[len(w.Slots)-1].ID))
	slices.SortFunc(w.Refs, func(a, b catalog.Ref) int {
		if a.StreamID != b.StreamID {
			return int(min(max(a.StreamID-b.StreamID, -1), 1))
		}
		return a.FirstPos().Compare(b.FirstPos())
	})
	return err
}

// CommitRewrite makes an output visible (03 §4 step 5): all runs, or none.
func (d *DB) CommitRewrite(ctx context.Context, r catalog.Rewrite) (out catalog.Rewritten, err error) {
	if err := catalog.ValidateRewrite(&r); err != nil {
		return out, err
	}
	err = d.write(ctx, "CommitRewrite", func(t *tx) error {
		out, err = t.commitRewrite(&r)
		return err
	})
	return out, err
}

func (t *tx) commitRewrite(r *catalog.Rewrite) (out catalog.Rewritten, err error) {
	if err := t.checkKinds("CommitRewrite"); err != nil {
		return out, err
	}
	in, err := t.intent(r.Key)
	if err != nil {
		return out, err
	}
	if out.Committed, err = t.committedBefore(r); err != nil {
		return out, err
	}
	if len(out.Committed) > 0 {
		out.Already = true
		return out, t.settleIntent(in, r, true)
	}
	if err := catalog.CheckIntent("CommitRewrite", in, r.Key, r.Nonce); err != nil {
		return out, err
	}
	swaps, err := t.planSwaps(r)
	if err != nil {
		return out, err
	}
	if err := t.applySwaps(swaps, &out); err != nil {
		return out, err
	}
	out.Nothing = len(out.Committed) == 0
	return out, t.settleIntent(in, r, !out.Nothing)
}

// committedBefore: the answer of an earlier commit was lost. Commits are all or
// none, so one ref that names the key says that all of it happened; a trim may have
// taken others since.
func (t *tx) committedBefore(r *catalog.Rewrite) ([]catalog.Ref, error) {
	live, err := t.refs("SELECT "+refCols+` FROM object o CROSS JOIN ref r ON r.object = o.id LEFT JOIN stream s ON s.id = r.stream
 LEFT JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard WHERE o.key = ? ORDER BY r.stream, r.epoch, r.first`, r.Key)
	return plainRefs(live), err
}

// settleIntent drops ended uploads; an intent whose object a ref names, and that has
// no upload left, is done. Otherwise it stays for the judge.
func (t *tx) settleIntent(in *catalog.Intent, r *catalog.Rewrite, named bool) error {
	if in == nil || in.State != catalog.IntentStanding || in.Nonce != r.Nonce {
		return nil
	}
	in.Uploads = without(in.Uploads, r.UploadsGone)
	if named && len(in.Uploads) == 0 {
		return t.dropIntent(in.Key)
	}
	return t.putIntent(in)
}

// planSwaps validates every run against what stands, before anything is written.
func (t *tx) planSwaps(r *catalog.Rewrite) ([]catalog.Swap, error) {
	var expect []catalog.Ref
	for i := range r.Runs {
		expect = append(expect, r.Runs[i].Expect...)
	}
	have, err := t.standing(expect)
	if err != nil {
		return nil, err
	}
	live, err := t.liveFroms(r)
	if err != nil {
		return nil, err
	}
	swaps := make([]catalog.Swap, len(r.Runs))
	for i := range r.Runs {
		run := &r.Runs[i]
		swaps[i], err = catalog.PlanSwap(run, live[i], func(p segment.Pos) *catalog.Ref {
			if l, ok := have[refID{run.New.StreamID, int64(p.Epoch), int64(p.Seq)}]; ok {
				return &l.Ref
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return swaps, nil
}

// liveFroms are the effective live_from of the runs, in order, in one query.
func (t *tx) liveFroms(r *catalog.Rewrite) ([]segment.Pos, error) {
	rows := make([][3]int64, len(r.Runs))
	for i := range r.Runs {
		n := &r.Runs[i].New
		rows[i] = [3]int64{n.StreamID, int64(n.Epoch), int64(n.Shard)}
	}
	set, err := jsonArg(rows)
	if err != nil {
		return nil, err
	}
	out := make([]segment.Pos, len(r.Runs))
	found := 0
	err = t.query(`SELECT j.key, s.live_epoch, s.live_seq, c.watermark_seq FROM json_each(?) j CROSS JOIN stream s ON s.id = j.value ->> 0
 CROSS JOIN chain c ON c.epoch = j.value ->> 1 AND c.shard = j.value ->> 2`, func(scan scanFunc) error {
		var i int
		var p segment.Pos
		var watermark segment.Seq
		if err := scan(&i, &p.Epoch, &p.Seq, &watermark); err != nil {
			return err
		}
		found++
		out[i] = catalog.EffectiveLiveFrom(p, r.Runs[i].New.Chain, watermark)
		return nil
	}, set)
	if err == nil && found != len(out) {
		err = catalog.Conflict("CommitRewrite", "streams and chains", len(out), found)
	}
	return out, err
}

// applySwaps writes what the runs' swaps say: retired rows out, committed ones and
// remainders in, watchers armed, in this order and as sets.
func (t *tx) applySwaps(swaps []catalog.Swap, out *catalog.Rewritten) error {
	var gone, come []catalog.Ref
	for i := range swaps {
		sw := &swaps[i]
		gone = append(gone, sw.Sources()...)
		out.Retired += len(sw.Retired)
		if sw.Committed != nil {
			come = append(come, *sw.Committed)
			out.Committed = append(out.Committed, *sw.Committed)
		}
		if sw.Remainder != nil {
			come = append(come, *sw.Remainder)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	objects, err := t.objects(come)
	if err != nil {
		return err
	}
	if err := t.deleteRefs(gone); err != nil {
		return err
	}
	slices.SortFunc(come, func(a, b catalog.Ref) int {
		if a.StreamID != b.StreamID {
			return int(min(max(a.StreamID-b.StreamID, -1), 1))
		}
		return a.FirstPos().Compare(b.FirstPos())
	})
	if err := t.insertRefs(come, func(r *catalog.Ref) int64 { return objects[r.Key] }); err != nil {
		return err
	}
	if err := t.dropObjects(gone); err != nil {
		return err
	}
	return t.watchSettled(gone)
}

// objects are the numbers of the keys that refs to come name.
func (t *tx) objects(refs []catalog.Ref) (map[string]int64, error) {
	out := map[string]int64{}
	for i := range refs {
		if _, ok := out[refs[i].Key]; ok {
			continue
		}
		id, err := t.object(&refs[i])
		if err != nil {
			return nil, err
		}
		out[refs[i].Key] = id
	}
	return out, nil
}

// watchSettled arms the reap-checks of the settled objects among the refs, one read
// grace out. Slots have their settle markers.
func (t *tx) watchSettled(refs []catalog.Ref) error {
	var ms []armed
	seen := map[string]bool{}
	for i := range refs {
		if r := &refs[i]; r.Kind.Settled() && !seen[r.Key] {
			seen[r.Key] = true
			ms = append(ms, armed{r.Key, r.Class})
		}
	}
	grace, err := t.grace()
	if err != nil {
		return err
	}
	return t.armAll(catalog.DutyReapCheck, ms, time.Duration(grace))
}

// ResolveSettled ends the debts of slots that no ref names any more.
func (d *DB) ResolveSettled(ctx context.Context, c segment.Chain, markers []catalog.MarkerRef) (resolved int, err error) {
	err = d.write(ctx, "ResolveSettled", func(t *tx) error {
		resolved, err = t.resolveSettled(c, markers)
		return err
	})
	return resolved, err
}

func (t *tx) resolveSettled(c segment.Chain, markers []catalog.MarkerRef) (int, error) {
	row, err := t.chain(c)
	if err != nil {
		return 0, err
	}
	rows, err := settledArgs(c, markers)
	if err != nil {
		return 0, err
	}
	done, bytes, err := t.settled(c, rows)
	if err != nil {
		return 0, err
	}
	if err := t.settleDone(c, rows, done); err != nil || len(done) == 0 {
		return 0, err
	}
	row.TransitBytes -= bytes
	var since int64
	if _, err := t.one("SELECT sealed FROM slot WHERE epoch = ? AND shard = ? AND owed = 1 ORDER BY id LIMIT 1", []any{c.Epoch, c.Shard}, &since); err != nil {
		return 0, err
	}
	row.TransitSince = at(since)
	grace, err := t.grace()
	if err != nil {
		return 0, err
	}
	if err := t.arm(catalog.DutyTrimCheck, catalog.ChainID(c), "", time.Duration(grace)); err != nil {
		return 0, err
	}
	return len(done), t.putChain(&row)
}

// settledArg is a settle marker with its slot's position.
type settledArg struct {
	ID      string
	Slot    int64
	Version int64
}

func settledArgs(c segment.Chain, markers []catalog.MarkerRef) ([]settledArg, error) {
	out := make([]settledArg, len(markers))
	for i, m := range markers {
		chain, id, err := catalog.ParseSettleID(m.ID)
		if err != nil {
			return nil, err
		}
		if chain != c || m.Duty != catalog.DutySettle {
			return nil, catalog.Invalid("ResolveSettled", "marker %s %s is not one of chain %s", m.Duty, m.ID, c)
		}
		out[i] = settledArg{m.ID, int64(id), m.Version}
	}
	return out, nil
}

// settled picks those whose marker stands at its version, whose slot owes (a void
// one's parked marker never goes this way), and that no ref names.
func (t *tx) settled(c segment.Chain, rows []settledArg) (done []settledArg, bytes int64, err error) {
	set, err := jsonArg(rows)
	if err != nil {
		return nil, 0, err
	}
	err = t.query(`SELECT j.value ->> 'ID', s.id, s.bytes FROM json_each(?) j
 CROSS JOIN slot s ON s.epoch = ? AND s.shard = ? AND s.id = j.value ->> 'Slot'
 CROSS JOIN marker m ON m.duty = 'settle' AND m.id = j.value ->> 'ID' AND m.version = j.value ->> 'Version'
 WHERE s.owed = 1 AND NOT EXISTS (SELECT 1 FROM object o JOIN ref r ON r.object = o.id WHERE o.key = s.key)`, func(scan scanFunc) error {
		var a settledArg
		var n int64
		err := scan(&a.ID, &a.Slot, &n)
		done, bytes = append(done, a), bytes+n
		return err
	}, set, c.Epoch, c.Shard)
	return done, bytes, err
}

// settleDone deletes the markers of done, and gives the leases of the others back
// where they were armed meanwhile.
func (t *tx) settleDone(c segment.Chain, all, done []settledArg) error {
	gone, err := jsonArg(done)
	if err != nil || len(done) == 0 && len(all) == 0 {
		return err
	}
	if len(done) > 0 {
		if err := t.exec("DELETE FROM marker WHERE duty = 'settle' AND id IN (SELECT j.value ->> 'ID' FROM json_each(?) j)", gone); err != nil {
			return err
		}
		if err := t.exec("UPDATE slot SET owed = 0 WHERE epoch = ? AND shard = ? AND id IN (SELECT j.value ->> 'Slot' FROM json_each(?) j)", c.Epoch, c.Shard, gone); err != nil {
			return err
		}
	}
	set, err := jsonArg(all)
	if err != nil {
		return err
	}
	return t.exec(`UPDATE marker SET lease_owner = '', lease_end = 0
 WHERE duty = 'settle' AND id IN (SELECT j.value ->> 'ID' FROM json_each(?) j) AND lease_version <> version`, set)
}
