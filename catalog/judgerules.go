package catalog

import (
	"fmt"
	"slices"
	"time"
)

// Announcing is what an announcement is held against.
type Announcing struct {
	Standing *Intent // of the key; nil: none stands
	Named    bool    // a ref names the key
	Leased   bool    // the holder has the lease of its duty, or of that marker
}

// AnnounceIntent is the intent that an announcement leaves (03 §4 step 1). One that stands,
// and is this holder's, is taken over with its uploads.
func AnnounceIntent(a *Announce, look Announcing, now time.Time) (Intent, error) {
	const verb = "Announce"
	in := Intent{Key: a.Key, Class: a.Class, Serves: Serves(a.Holder), State: IntentStanding}
	standing := look.Standing
	switch {
	case !look.Leased:
		return Intent{}, Conflict(verb, "lease", fmt.Sprintf("%s held by %s", Serves(a.Holder), a.Holder.Owner), "not held, or over")
	case look.Named:
		return Intent{}, Conflict(verb, "ref", "no ref that names "+a.Key, "a ref does: derive the next revision")
	case standing == nil:
	case standing.State != IntentStanding:
		return Intent{}, Conflict(verb, "state", "a key never used", fmt.Sprintf("%s is %s: derive the next revision", a.Key, standing.State))
	case standing.Serves != in.Serves:
		return Intent{}, Conflict(verb, "holder", in.Serves, standing.Serves+": derive the next revision")
	case standing.Class != a.Class:
		return Intent{}, Conflict(verb, "class", a.Class, standing.Class)
	default:
		in = *standing
	}
	in.Nonce, in.Announced, in.Deadline, in.Changed = a.Nonce, now, now.Add(a.Deadline), now
	return in, nil
}

// ValidateAnnounce checks what does not depend on what stands.
func ValidateAnnounce(a *Announce) error {
	switch {
	case a.Key == "" || a.Nonce == "" || a.Class == "":
		return Invalid("Announce", "key %q, nonce %q, class %q: one is empty", a.Key, a.Nonce, a.Class)
	case a.Deadline <= 0:
		return Invalid("Announce", "deadline %v from now", a.Deadline)
	}
	return nil
}

// Serves is how an intent names the duty that may take it over.
func Serves(h Holder) string { return string(h.Duty) + ":" + h.ID }

// JudgeAt is when an intent may be judged: older than the orphan grace, and past
// its job's deadline, after which the job sends nothing.
func JudgeAt(in *Intent, grace time.Duration) time.Time {
	at := in.Announced.Add(grace)
	if in.Deadline.After(at) {
		return in.Deadline
	}
	return at
}

// CheckIntent: a job's commit, and its uploads, need its own intent.
func CheckIntent(verb string, in *Intent, key, nonce string) error {
	switch {
	case in == nil:
		return Conflict(verb, "intent", fmt.Sprintf("%s under nonce %s", key, nonce), "none")
	case in.State != IntentStanding || in.Nonce != nonce:
		return Conflict(verb, "intent", fmt.Sprintf("%s standing under nonce %s", key, nonce), fmt.Sprintf("%s under nonce %s", in.State, in.Nonce))
	}
	return nil
}

// AddUpload notes an upload's id, once.
func (in *Intent) AddUpload(id string) {
	if !slices.Contains(in.Uploads, id) {
		in.Uploads = append(in.Uploads, id)
	}
}

// DropUploads forgets uploads that ended.
func (in *Intent) DropUploads(gone ...string) {
	in.Uploads = slices.DeleteFunc(slices.Clone(in.Uploads), func(id string) bool { return slices.Contains(gone, id) })
}

// SettleIntent is what a commit leaves of its job's intent, without the uploads that ended.
// done: it goes, for a ref names its object and it has no upload left; otherwise it stays
// for the judge. Nil: it is not, or no longer, the job's.
func SettleIntent(in *Intent, r *Rewrite, named bool) (left *Intent, done bool) {
	if in == nil || in.State != IntentStanding || in.Nonce != r.Nonce {
		return nil, false
	}
	out := *in
	out.DropUploads(r.UploadsGone...)
	return &out, named && len(out.Uploads) == 0
}

// Judging is what the judge, and a confirmed reap-check, look at before they condemn a key.
type Judging struct {
	Intent    *Intent // nil: none stands
	Stands    *Marker // the judge's, or the reap-check; nil: none stands
	Confirmed time.Time
	Named     int  // refs that name the key
	Watched   bool // a reap-check stands for it
	Grace     time.Duration
}

// Judgement is what becomes of an intent.
type Judgement struct {
	Verdict Verdict
	Intent  Intent
	// Condemn: the verdict is Condemned as of now, and Intent is to be written.
	Condemn bool
	Wait    time.Duration // of NotYet
}

// JudgeIntent is the judge's verdict (03 §8 step 1). Gone: its marker is to be resolved.
// Named: the intent goes, for the normal lifecycle owns the object. NotYet: its marker
// waits.
func JudgeIntent(m MarkerRef, look Judging, now time.Time) (j Judgement, err error) {
	in := look.Intent
	if in == nil {
		return Judgement{Verdict: Gone}, nil
	}
	j.Intent = *in
	when := JudgeAt(in, look.Grace)
	switch {
	case in.State != IntentStanding:
		j.Verdict = Condemned
	case look.Stands == nil || look.Stands.Version != m.Version:
		return Judgement{}, MovedOn("CondemnIntent", m, look.Stands) // announced again meanwhile
	case look.Named > 0 || look.Watched:
		j.Verdict = Named
	case now.Before(when):
		j.Verdict, j.Wait = NotYet, when.Sub(now)
	default:
		j.Verdict, j.Condemn = Condemned, true
		j.Intent.State, j.Intent.Changed = IntentCondemned, now
	}
	return j, nil
}

// MovedOn is the conflict of a marker that is not at its version; nil: none stands.
func MovedOn(verb string, m MarkerRef, stands *Marker) error {
	have := "none"
	if stands != nil {
		have = fmt.Sprintf("version %d", stands.Version)
	}
	return Conflict(verb, fmt.Sprintf("marker %s %s", m.Duty, m.ID), fmt.Sprintf("version %d", m.Version), have)
}

// CondemnKey is what a confirmed reap-check writes for its key (03 §6); nil: it was
// condemned or burned before.
func CondemnKey(m MarkerRef, look Judging, now time.Time) (*Intent, error) {
	const verb = "CondemnKey"
	stands, in := look.Stands, look.Intent
	ripe := look.Confirmed.Add(look.Grace)
	switch {
	case m.Duty != DutyReapCheck:
		return nil, Invalid(verb, "marker of duty %q", m.Duty)
	case stands == nil:
		return nil, Conflict(verb, "marker", fmt.Sprintf("%s at version %d", m.ID, m.Version), "none")
	case stands.Version != m.Version:
		return nil, Conflict(verb, "marker", fmt.Sprintf("version %d", m.Version), fmt.Sprintf("version %d", stands.Version))
	case !stands.Confirmed:
		return nil, Conflict(verb, "marker", "confirmed", "unconfirmed: armed since")
	case now.Before(ripe):
		return nil, Conflict(verb, "grace", ripe.Format(time.RFC3339Nano), now.Format(time.RFC3339Nano))
	case look.Named > 0:
		return nil, Conflict(verb, "refs", "none names "+m.ID, fmt.Sprintf("%d do", look.Named))
	case in != nil && in.State == IntentStanding:
		return nil, Conflict(verb, "intent", "none standing", "one under nonce "+in.Nonce)
	case in != nil:
		return nil, nil
	}
	return &Intent{
		Key: m.ID, Class: stands.Class, Serves: Serves(Holder{Duty: m.Duty, ID: m.ID}),
		Announced: now, Deadline: now, State: IntentCondemned, Changed: now,
	}, nil
}

// CheckBurn: every key is condemned, or burned already (a lost answer). state has those
// that have an intent.
func CheckBurn(keys []string, state map[string]IntentState) error {
	for _, k := range keys {
		if s := state[k]; s != IntentCondemned && s != IntentBurned {
			if s == "" {
				s = "no intent"
			}
			return Conflict("BurnKey", "state of "+k, IntentCondemned, s)
		}
	}
	return nil
}
