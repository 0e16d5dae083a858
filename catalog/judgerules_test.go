package catalog

import (
	"errors"
	"testing"
	"time"
)

// TestJudgeIntent: what the judge sees, and what becomes of the intent.
func TestJudgeIntent(t *testing.T) {
	const grace = time.Hour
	m := MarkerRef{Duty: DutyOrphan, ID: "k", Version: 7}
	standing := Intent{Key: "k", State: IntentStanding, Announced: t0, Deadline: t0.Add(time.Minute), Changed: t0}
	in := func(s IntentState) *Intent { i := standing; i.State = s; return &i }
	at := func(v int64) *Marker { return &Marker{MarkerRef: MarkerRef{Duty: m.Duty, ID: m.ID, Version: v}} }
	ripe := t0.Add(grace)
	for name, x := range map[string]struct {
		look    Judging
		now     time.Time
		want    Verdict // "": a conflict
		condemn bool
		wait    time.Duration
	}{
		"none stands":        {Judging{Stands: at(7)}, ripe, Gone, false, 0},
		"condemned before":   {Judging{Intent: in(IntentCondemned), Named: 1}, ripe, Condemned, false, 0},
		"burned before":      {Judging{Intent: in(IntentBurned)}, t0, Condemned, false, 0},
		"announced again":    {Judging{Intent: in(IntentStanding), Stands: at(8)}, ripe, "", false, 0},
		"marker went away":   {Judging{Intent: in(IntentStanding)}, ripe, "", false, 0},
		"a ref names it":     {Judging{Intent: in(IntentStanding), Stands: at(7), Named: 1}, ripe, Named, false, 0},
		"a reap-check does":  {Judging{Intent: in(IntentStanding), Stands: at(7), Watched: true}, t0, Named, false, 0},
		"within its grace":   {Judging{Intent: in(IntentStanding), Stands: at(7)}, ripe.Add(-1), NotYet, false, 1},
		"within its job":     {Judging{Intent: in(IntentStanding), Stands: at(7), Grace: -grace}, t0, NotYet, false, time.Minute},
		"an orphan":          {Judging{Intent: in(IntentStanding), Stands: at(7)}, ripe, Condemned, true, 0},
		"an orphan for long": {Judging{Intent: in(IntentStanding), Stands: at(7)}, ripe.Add(grace), Condemned, true, 0},
	} {
		x.look.Grace += grace
		j, err := JudgeIntent(m, x.look, x.now)
		if errors.Is(err, ErrConflict) != (x.want == "") || j.Verdict != x.want || j.Condemn != x.condemn || j.Wait != x.wait {
			t.Errorf("%s: %+v, %v; want %q", name, j, err, x.want)
		}
		if x.condemn && (j.Intent.State != IntentCondemned || !j.Intent.Changed.Equal(x.now) || x.look.Intent.State != IntentStanding) {
			t.Errorf("%s: writes %+v, looked at %+v", name, j.Intent, *x.look.Intent)
		}
	}
}

// TestCondemnKey: a reap-check condemns at its second look, a whole grace after the first,
// what no ref and no job needs.
func TestCondemnKey(t *testing.T) {
	const grace = time.Hour
	m := MarkerRef{Duty: DutyReapCheck, ID: "k", Version: 7}
	sound := func() Judging {
		return Judging{Stands: &Marker{MarkerRef: m, Class: "c", Confirmed: true}, Confirmed: t0, Grace: grace}
	}
	ripe := t0.Add(grace)
	put, err := CondemnKey(m, sound(), ripe)
	want := Intent{Key: "k", Class: "c", Serves: "reap-check:k", Announced: ripe, Deadline: ripe, State: IntentCondemned, Changed: ripe}
	if err != nil || put == nil || put.Key != want.Key || put.Class != want.Class || put.Serves != want.Serves || put.State != want.State || !put.Changed.Equal(ripe) {
		t.Fatalf("writes %+v: %v", put, err)
	}
	for name, change := range map[string]func(*Judging, *time.Time, *MarkerRef){
		"no marker":      func(l *Judging, _ *time.Time, _ *MarkerRef) { l.Stands = nil },
		"armed since":    func(l *Judging, _ *time.Time, _ *MarkerRef) { l.Stands.Version++ },
		"unconfirmed":    func(l *Judging, _ *time.Time, _ *MarkerRef) { l.Stands.Confirmed = false },
		"within a grace": func(_ *Judging, now *time.Time, _ *MarkerRef) { *now = now.Add(-1) },
		"a ref names it": func(l *Judging, _ *time.Time, _ *MarkerRef) { l.Named = 1 },
		"a job makes it": func(l *Judging, _ *time.Time, _ *MarkerRef) { l.Intent = &Intent{State: IntentStanding} },
		"another duty":   func(_ *Judging, _ *time.Time, m *MarkerRef) { m.Duty = DutyOrphan },
	} {
		look, now, m := sound(), ripe, m
		change(&look, &now, &m)
		if put, err := CondemnKey(m, look, now); put != nil || !errors.Is(err, ErrConflict) && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: writes %+v: %v", name, put, err)
		}
	}
	for _, s := range []IntentState{IntentCondemned, IntentBurned} {
		look := sound()
		look.Intent = &Intent{State: s}
		if put, err := CondemnKey(m, look, ripe); put != nil || err != nil {
			t.Errorf("%s before: writes %+v: %v", s, put, err)
		}
	}
}

// TestAnnounceIntent: what stands of a key, and what an announcement makes of it.
func TestAnnounceIntent(t *testing.T) {
	a := Announce{Key: "k", Class: "c", Nonce: "new", Holder: Holder{Duty: DutySettle, ID: "s"}, Deadline: time.Minute}
	standing := func(change func(*Intent)) *Intent {
		in := Intent{Key: "k", Class: "c", Serves: "settle:s", Nonce: "old", Uploads: []string{"u"}, Announced: t0, State: IntentStanding}
		change(&in)
		return &in
	}
	for name, x := range map[string]struct {
		look    Announcing
		want    bool
		uploads int
	}{
		"a fresh key":     {Announcing{Leased: true}, true, 0},
		"taken over":      {Announcing{Leased: true, Standing: standing(func(*Intent) {})}, true, 1},
		"no lease":        {Announcing{}, false, 0},
		"a ref names it":  {Announcing{Leased: true, Named: true}, false, 0},
		"another's":       {Announcing{Leased: true, Standing: standing(func(in *Intent) { in.Serves = "gc:s" })}, false, 0},
		"of other class":  {Announcing{Leased: true, Standing: standing(func(in *Intent) { in.Class = "x" })}, false, 0},
		"condemned":       {Announcing{Leased: true, Standing: standing(func(in *Intent) { in.State = IntentCondemned })}, false, 0},
		"burned long ago": {Announcing{Leased: true, Standing: standing(func(in *Intent) { in.State = IntentBurned })}, false, 0},
	} {
		in, err := AnnounceIntent(&a, x.look, t0.Add(time.Hour))
		if !x.want {
			if !errors.Is(err, ErrConflict) {
				t.Errorf("%s: %+v, %v", name, in, err)
			}
			continue
		}
		if err != nil || in.Key != "k" || in.Class != "c" || in.Serves != "settle:s" || in.Nonce != "new" || in.State != IntentStanding || len(in.Uploads) != x.uploads ||
			!in.Announced.Equal(t0.Add(time.Hour)) || !in.Deadline.Equal(t0.Add(time.Hour+time.Minute)) {
			t.Errorf("%s: %+v, %v", name, in, err)
		}
	}
}

// TestSettleIntent: an intent goes with the commit that made a ref name its object, once
// no upload is left in it.
func TestSettleIntent(t *testing.T) {
	for name, x := range map[string]struct {
		nonce string
		state IntentState
		gone  []string
		named bool
		left  int // uploads; -1: not the job's
		done  bool
	}{
		"all ended":       {"n", IntentStanding, []string{"u", "v"}, true, 0, true},
		"one is left":     {"n", IntentStanding, []string{"u"}, true, 1, false},
		"no ref names it": {"n", IntentStanding, []string{"u", "v"}, false, 0, false},
		"taken over":      {"x", IntentStanding, []string{"u", "v"}, true, -1, false},
		"condemned":       {"n", IntentCondemned, []string{"u", "v"}, true, -1, false},
	} {
		in := &Intent{Key: "k", Nonce: x.nonce, State: x.state, Uploads: []string{"u", "v"}}
		left, done := SettleIntent(in, &Rewrite{Key: "k", Nonce: "n", UploadsGone: x.gone}, x.named)
		if done != x.done || (left == nil) != (x.left < 0) || left != nil && len(left.Uploads) != x.left {
			t.Errorf("%s: %+v, done %v", name, left, done)
		}
		if len(in.Uploads) != 2 || in.Uploads[0] != "u" {
			t.Errorf("%s: it changed what it was given: %v", name, in.Uploads)
		}
	}
	if left, done := SettleIntent(nil, &Rewrite{}, true); left != nil || done {
		t.Error("no intent, and one is left")
	}
}
