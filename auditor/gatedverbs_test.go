package auditor

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/verbs"
)

// Why a verb may go round the gate. On a catalog that was rolled back each of these either
// changes nothing that a head is held against, or what it changes goes with that catalog when
// the newest copy comes back.
const (
	gatedVerb = ""
	reads     = "changes nothing"
	ours      = "a row of the auditors' own: leases, markers, what people are told"
	operators = "no duty calls it: an operator's, or a start's"
	owners    = "no duty calls it: a chain's owner, which looks at its head when it takes the chain"
	rewrites  = "what it commits is created once, and deletes nothing (decision 0008)"
	condemns  = "nothing goes by it alone: the delete has the gate before it"
	wentFirst = "follows a delete or a head that came through the gate"
	streams   = "a stream's live_from: no head has it"
)

var verbsGates = map[string]string{
	"AbsorbSlot": gatedVerb, "RaiseWatermark": gatedVerb, "CondemnSlots": gatedVerb,

	"Now": reads, "Session": reads, "Settings": reads, "Topologies": reads, "Chain": reads, "Chains": reads, "Terms": reads,
	"Window": reads, "PackWindow": reads, "Liveness": reads, "Intent": reads, "DeadRefs": reads, "StraddlingRefs": reads, "DueSlots": reads,
	"WalkStream": reads, "Marker": reads, "NextDue": reads, "Stream": reads, "Streams": reads, "Plan": reads, "Slots": reads, "ChainRefs": reads,
	"RefsAcross": reads, "Status": reads, "Debts": reads, "RefsByKey": reads, "MarkersOf": reads, "Intents": reads, "AuditRows": reads,

	"RegisterAuditor": ours, "Audit": ours, "LeaseDuty": ours, "ReleaseDuty": ours,
	"TakeDue": ours, "Arm": ours, "Resolve": ours, "Postpone": ours, "ArmWatchers": ours,

	"Init": operators, "SeedReadGrace": operators, "SeedOrphanGrace": operators, "SetReadGrace": operators, "SetOrphanGrace": operators,
	"EnsureTopology": operators, "SetTopologyState": operators, "SetRetention": operators, "AcceptLoss": operators,
	"TrimStream": operators, "DeleteStream": operators,

	"AcquireChain": owners, "RenewChain": owners, "ReleaseChain": owners, "AckClosed": owners,

	"Announce": rewrites, "AddUpload": rewrites, "DropUpload": rewrites, "CommitRewrite": rewrites, "ResolveSettled": rewrites,
	"AdvanceRewritten": rewrites, // as far as settle markers are resolved, in the same rows

	"Confirm": condemns, "CondemnKey": condemns, "CondemnIntent": condemns,
	"BurnKey": wentFirst, "BurnIntent": wentFirst, "AdvanceTrim": wentFirst, "AdvanceJournal": wentFirst,
	"RemoveIntent": wentFirst, // the delete was a day ago
	"RetireRefs":   streams,   // or of a watermark, whose head is written first
}

// TestEveryVerbHasItsGate: each verb of the catalog is known here, and goes through the gate or
// not, as it says here.
func TestEveryVerbHasItsGate(t *testing.T) {
	all := reflect.TypeFor[catalog.Catalog]()
	for i := range all.NumMethod() {
		name := all.Method(i).Name
		if name == "Close" {
			continue
		}
		why, known := verbsGates[name]
		if !known {
			t.Errorf("nobody has said whether %s goes through the gate: if it moves a cursor that catalog.CheckHead looks at, give it a method of gated; else say here why not", name)
			continue
		}
		asked, made := 0, 0
		within := false
		cat := verbs.Around(nil, func(ctx context.Context, _ verbs.Verb, _ func(context.Context) error) error {
			made++
			within = catalog.CheckSession(ctx, name, func() catalog.Session { return "another" }) != nil
			return nil
		})
		open := func(ctx context.Context, act func(context.Context) error) error {
			asked++
			return act(catalog.Within(ctx, "looked at"))
		}
		callVerb(gated{cat, open}, name)
		if want := why == gatedVerb; made != 1 || (asked == 1) != want || within != want {
			t.Errorf("%s: the gate was asked %d times, the verb made %d times, bound to the session looked at: %t; want the gate before it: %t", name, asked, made, within, want)
		}
		if why != gatedVerb {
			continue
		}
		made = 0
		shut := func(context.Context, func(context.Context) error) error { return catalog.ErrRolledBack }
		if err := callVerb(gated{cat, shut}, name); made != 0 || !errors.Is(err, catalog.ErrRolledBack) {
			t.Errorf("%s with the gate shut: made %d times, %v", name, made, err)
		}
	}
	if len(verbsGates) != all.NumMethod()-1 {
		t.Errorf("%d verbs are listed, the catalog has %d", len(verbsGates), all.NumMethod()-1)
	}
}

func callVerb(c catalog.Catalog, name string) error {
	m := reflect.ValueOf(c).MethodByName(name)
	args := make([]reflect.Value, m.Type().NumIn())
	for j := range args {
		args[j] = reflect.Zero(m.Type().In(j))
	}
	args[0] = reflect.ValueOf(context.Background())
	out := m.Call(args)
	err, _ := out[len(out)-1].Interface().(error)
	return err
}

// TestNothingGoesOnWhereHeadsAreUnread: the one that was not read may tell of a rollback.
func TestNothingGoesOnWhereHeadsAreUnread(t *testing.T) {
	unread := errors.New("unread")
	for _, name := range []string{"AbsorbSlot", "RaiseWatermark", "CondemnSlots"} {
		made := 0
		cat := verbs.Around(nil, func(context.Context, verbs.Verb, func(context.Context) error) error {
			made++
			return nil
		})
		err := callVerb(gated{cat, func(context.Context, func(context.Context) error) error { return unread }}, name)
		if made != 0 || !errors.Is(err, unread) {
			t.Errorf("%s: made %d times, %v", name, made, err)
		}
	}
}
