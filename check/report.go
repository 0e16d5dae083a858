package check

import (
	"github.com/strandline/strandline/segment"
)

// Verdict of a walk.
type Verdict string

// The verdicts, from good to bad.
const (
	Clean   Verdict = "clean"
	Garbage Verdict = "garbage" // bytes that nothing live needs; no row is at risk
	Damage  Verdict = "damage"  // rows that cannot be read, or are not what they were
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

// DamageItem is a span of rows that is not what the catalog says.
type DamageItem struct {
	Stream string        `json:"stream,omitempty"`
	Epoch  segment.Epoch `json:"epoch"`
	First  segment.Seq   `json:"first"`
	Last   segment.Seq   `json:"last"`
	Key    string        `json:"key,omitempty"`
	Bucket string        `json:"bucket,omitempty"`
	Why    string        `json:"why"`
}

// Report is the result of a walk.
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
	Footers      int64 `json:"footers"`
	// GarbageTotal and DamageTotal count all findings; the lists are capped.
	GarbageTotal int64 `json:"garbage_total"`
	DamageTotal  int64 `json:"damage_total"`
	// Missing are copies that a bucket of a set does not have yet. They change no verdict:
	// the rows are in another bucket, and the auditor makes the copies.
	Missing      []MissingCopy `json:"missing_copies,omitempty"`
	MissingTotal int64         `json:"missing_copies_total,omitempty"`
}

func (r *Report) addMissing(limit int, m MissingCopy) {
	r.MissingTotal++
	if len(r.Missing) < limit {
		r.Missing = append(r.Missing, m)
	}
}

func (r *Report) addGarbage(limit int, g GarbageItem) {
	r.GarbageTotal++
	if len(r.Garbage) < limit {
		r.Garbage = append(r.Garbage, g)
	}
}

func (r *Report) addDamage(limit int, d DamageItem) {
	r.DamageTotal++
	if len(r.Damage) < limit {
		r.Damage = append(r.Damage, d)
	}
}

func (r *Report) judge() {
	switch {
	case r.DamageTotal > 0:
		r.Verdict = Damage
	case r.GarbageTotal > 0:
		r.Verdict = Garbage
	default:
		r.Verdict = Clean
	}
}
