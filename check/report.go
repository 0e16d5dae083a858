package check

import (
	"cmp"
	"slices"

	"github.com/strandline/strandline/segment"
)

// Verdict of a walk.
type Verdict string

// The verdicts, from good to bad.
const (
	Clean     Verdict = "clean"
	Unsettled Verdict = "unsettled" // Config.Settled: something waits that should not
	// Unreadable is no verdict on what it names: reads do not complete, while the bucket answers.
	Unreadable Verdict = "unreadable"
	Garbage    Verdict = "garbage" // bytes that nothing live needs; no row is at risk
	Rotten     Verdict = "rotten"  // an object is not what was put there; every live row is served from elsewhere
	Damage     Verdict = "damage"  // rows that cannot be read, or are not what they were
)

// State of garbage.
type State string

// The states of garbage.
const (
	Pending State = "pending" // a marker or an intent sees to it after its grace
	Leaked  State = "leaked"  // one of our keys that nothing watches; auditor --sweep reclaims it
	Unknown State = "unknown" // no key of ours, or of what this catalog knows; never touched
)

// GarbageItem is an object, or an unfinished upload, that nothing live needs.
type GarbageItem struct {
	Key    string `json:"key"`
	Bucket string `json:"bucket"`
	Bytes  int64  `json:"bytes"`
	State  State  `json:"state"`
	Upload string `json:"upload,omitempty"`
	Why    string `json:"why"`
}

// DamageItem is a span of rows that is not what the catalog says. Without a stream it is a
// chain's, or no rows' at all.
type DamageItem struct {
	Stream string        `json:"stream,omitempty"`
	Epoch  segment.Epoch `json:"epoch"`
	First  segment.Seq   `json:"first"`
	Last   segment.Seq   `json:"last"`
	Key    string        `json:"key,omitempty"`
	Bucket string        `json:"bucket,omitempty"`
	Why    string        `json:"why"`
}

// RottenItem is an object, or a copy of one, that is not what was put there, or is gone,
// while no live row is at risk.
type RottenItem struct {
	Key    string `json:"key"`
	Bucket string `json:"bucket"`
	Why    string `json:"why"`
	// SoundIn is the bucket that serves its rows; empty: settled objects do.
	SoundIn string `json:"sound_in,omitempty"`
}

// OwedItem is what still waits where nothing should (Config.Settled).
type OwedItem struct {
	What   string `json:"what"` // "object", "upload", "intent" or a duty
	ID     string `json:"id"`
	Bucket string `json:"bucket,omitempty"`
	Why    string `json:"why"`
}

// Report is the result of a walk. Lists are capped (Config.MaxFindings), totals are not.
type Report struct {
	Verdict Verdict       `json:"verdict"`
	Objects int64         `json:"objects"`
	Bytes   int64         `json:"bytes"`
	Garbage []GarbageItem `json:"garbage"`
	Damage  []DamageItem  `json:"damage"`
	// Waiting counts what stands by design although no ref names it: slots until
	// their trim, objects of jobs under way, slots not yet absorbed.
	Waiting      int64 `json:"waiting"`
	WaitingBytes int64 `json:"waiting_bytes"`
	Refs         int64 `json:"refs"`
	Streams      int64 `json:"streams"`
	// Footers were read, and of a deep walk so many chunks besides. Skipped are named objects
	// that a sample left out.
	Footers    int64 `json:"footers"`
	Chunks     int64 `json:"chunks,omitempty"`
	ChunkBytes int64 `json:"chunk_bytes,omitempty"`
	Skipped    int64 `json:"skipped,omitempty"`

	GarbageTotal int64 `json:"garbage_total"`
	// PendingTotal, LeakedTotal and UnknownTotal are GarbageTotal by state.
	PendingTotal int64 `json:"pending_total"`
	LeakedTotal  int64 `json:"leaked_total"`
	UnknownTotal int64 `json:"unknown_total"`
	DamageTotal  int64 `json:"damage_total"`
	// Rotten changes the verdict, and is no damage: see RottenItem.
	Rotten      []RottenItem `json:"rotten,omitempty"`
	RottenTotal int64        `json:"rotten_total"`
	// Unreadable are objects that could not be looked into. What else is said stands.
	Unreadable      []UnreadableItem `json:"unreadable,omitempty"`
	UnreadableTotal int64            `json:"unreadable_total"`
	// Lost are spans that an operator accepted as lost. They change no verdict.
	Lost      []DamageItem `json:"accepted_lost,omitempty"`
	LostTotal int64        `json:"accepted_lost_total"`
	// Missing are copies that a bucket of a set does not have yet. They change no verdict:
	// the rows are in another bucket, and the auditor makes the copies.
	Missing      []MissingCopy `json:"missing_copies,omitempty"`
	MissingTotal int64         `json:"missing_copies_total,omitempty"`
	// Owed is what waits, if nothing should (Config.Settled).
	Owed      []OwedItem `json:"owed,omitempty"`
	OwedTotal int64      `json:"owed_total,omitempty"`
}

func (r *Report) addDamage(limit int, d DamageItem) { add(&r.Damage, &r.DamageTotal, limit, d) }

func add[T any](list *[]T, total *int64, limit int, item T) {
	*total++
	if len(*list) < limit {
		*list = append(*list, item)
	}
}

// add changes the report; looks run beside each other.
func (w *walk) add(change func(r *Report)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w.report)
}

func (w *walk) garbage(g GarbageItem) {
	w.add(func(r *Report) {
		add(&r.Garbage, &r.GarbageTotal, w.cfg.MaxFindings, g)
		switch g.State {
		case Pending:
			r.PendingTotal++
		case Leaked:
			r.LeakedTotal++
		case Unknown:
			r.UnknownTotal++
		}
	})
}

// damage reports a fault, but for rows below live_from, which nobody misses.
func (w *walk) damage(at place, bad fault) {
	first := bad.first
	if ref := bad.ref; ref.LiveFrom.Epoch == ref.Epoch {
		first = max(first, ref.LiveFrom.Seq)
	}
	if first > bad.last {
		return
	}
	w.add(func(r *Report) {
		r.addDamage(w.cfg.MaxFindings, DamageItem{
			Stream: bad.ref.Stream, Epoch: bad.ref.Epoch, First: first, Last: bad.last,
			Key: bad.ref.Key, Bucket: at.store.Name(), Why: bad.why,
		})
	})
}

func (w *walk) rotten(item RottenItem) {
	w.add(func(r *Report) { add(&r.Rotten, &r.RottenTotal, w.cfg.MaxFindings, item) })
}

// owe notes what waits, if nothing should.
func (w *walk) owe(item OwedItem) {
	if w.cfg.Settled {
		w.add(func(r *Report) { add(&r.Owed, &r.OwedTotal, w.cfg.MaxFindings, item) })
	}
}

// judge gives the verdict and puts the findings in an order that does not depend on which
// look ended first.
func (r *Report) judge() {
	slices.SortStableFunc(r.Damage, func(a, b DamageItem) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.First, b.First))
	})
	slices.SortStableFunc(r.Garbage, func(a, b GarbageItem) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Key, b.Key))
	})
	slices.SortStableFunc(r.Rotten, func(a, b RottenItem) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Key, b.Key))
	})
	slices.SortStableFunc(r.Unreadable, func(a, b UnreadableItem) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Key, b.Key))
	})
	switch {
	case r.DamageTotal > 0:
		r.Verdict = Damage
	case r.RottenTotal > 0:
		r.Verdict = Rotten
	case r.UnreadableTotal > 0:
		r.Verdict = Unreadable
	case r.GarbageTotal > 0:
		r.Verdict = Garbage
	case r.OwedTotal > 0:
		r.Verdict = Unsettled
	default:
		r.Verdict = Clean
	}
}
