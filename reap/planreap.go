package reap

import "github.com/strandline/strandline/probe"

// action is what a reap-check does next.
type action int

const (
	doResolve action = iota
	doGC
	doConfirm
	doCondemn
	doBury
)

// planReap is the decision of the two-phase reap. It is pure; reason is what a dry
// run prints. Only a confirmed marker's all-dead verdict deletes: the first
// all-dead look made it confirmed, a grace ago.
func planReap(v probe.Verdict, confirmed bool) (action, string) {
	switch {
	case v == probe.Gone:
		return doBury, "no object stands there"
	case v == probe.Reapable && confirmed:
		return doCondemn, "all dead, and was a grace ago"
	case v == probe.Reapable:
		return doConfirm, "all dead; seen so for the first time, a grace has to pass"
	case v == probe.GCWorthy:
		return doGC, "live spans stand; enough is dead for a rewrite"
	}
	return doResolve, "live spans stand"
}
