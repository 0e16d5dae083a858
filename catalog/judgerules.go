package catalog

import (
	"fmt"
	"time"

	"github.com/strandline/strandline/segment"
)

// CheckAnnounce holds an announcement against the intent that stands, nil if none
// does (03 §4 step 1). takeover: it stands, and is this holder's.
func CheckAnnounce(a *Announce, standing *Intent, named, leased bool) (takeover bool, err error) {
	const verb = "Announce"
	switch {
	case !leased:
		return false, Conflict(verb, "lease", fmt.Sprintf("%s held by %s", Serves(a.Holder), a.Holder.Owner), "not held, or over")
	case named:
		return false, Conflict(verb, "ref", "no ref that names "+a.Key, "a ref does: derive the next revision")
	case standing == nil:
		return false, nil
	case standing.State != IntentStanding:
		return false, Conflict(verb, "state", "a key never used", fmt.Sprintf("%s is %s: derive the next revision", a.Key, standing.State))
	case standing.Serves != Serves(a.Holder):
		return false, Conflict(verb, "holder", Serves(a.Holder), standing.Serves+": derive the next revision")
	case standing.Class != a.Class:
		return false, Conflict(verb, "class", a.Class, standing.Class)
	}
	return true, nil
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

// CheckCondemnKey: what a confirmed reap-check needs before its key is condemned
// (03 §6). ripe is when its read grace is over.
func CheckCondemnKey(m MarkerRef, stands *Marker, ripe, now time.Time, named int, in *Intent) error {
	const verb = "CondemnKey"
	switch {
	case m.Duty != DutyReapCheck:
		return Invalid(verb, "marker of duty %q", m.Duty)
	case stands == nil:
		return Conflict(verb, "marker", fmt.Sprintf("%s at version %d", m.ID, m.Version), "none")
	case stands.Version != m.Version:
		return Conflict(verb, "marker", fmt.Sprintf("version %d", m.Version), fmt.Sprintf("version %d", stands.Version))
	case !stands.Confirmed:
		return Conflict(verb, "marker", "confirmed", "unconfirmed: armed since")
	case now.Before(ripe):
		return Conflict(verb, "grace", ripe.Format(time.RFC3339Nano), now.Format(time.RFC3339Nano))
	case named > 0:
		return Conflict(verb, "refs", "none names "+m.ID, fmt.Sprintf("%d do", named))
	case in != nil && in.State == IntentStanding:
		return Conflict(verb, "intent", "none standing", "one under nonce "+in.Nonce)
	}
	return nil
}

// StreamKeyDerivable says whether a job could derive a burned stream key again
// (03 §8 step 4). at is the ref that begins at the key's first row, nil if none does.
// No mover touches a lost one.
func StreamKeyDerivable(k segment.Key, at *Ref, liveFrom segment.Pos) bool {
	return at != nil && at.Kind != RefLost && !at.Dead(liveFrom) && at.Revision < int32(k.Revision)
}

// PackKeyDerivable says the same of a pack key. others are the packs that refs name
// and that begin in the key's range: a merge of any of them may derive it.
func PackKeyDerivable(k segment.Key, row *ChainRow, others []segment.Key) bool {
	if row.Trimmed <= k.LastID {
		return true
	}
	for _, o := range others {
		if o.Kind == segment.KeyPack && o.Chain == k.Chain && o.ID >= k.ID && o.LastID <= k.LastID && o.Revision < k.Revision {
			return true
		}
	}
	return false
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
