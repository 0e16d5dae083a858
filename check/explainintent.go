package check

import "github.com/strandline/strandline/catalog"

// intentIs explains what stands under an intent and no ref names.
func (f *KeyFacts) intentIs(e *Explanation) {
	in := f.Intent
	if in.State == string(catalog.IntentStanding) {
		e.why("its intent stands, for %s, announced %s, its job's deadline is %s", in.Serves, relative(f.Now, in.Announced), relative(f.Now, in.Deadline))
	} else {
		e.why("its intent is %s, for %s", in.State, in.Serves)
	}
	judge := f.marker(catalog.DutyOrphan)
	look := "the orphan judge looks at the earliest " + relative(f.Now, in.JudgedAt)
	if judge != nil {
		look += ": its marker is " + judge.when(f.Now)
	}
	switch catalog.IntentState(in.State) {
	case catalog.IntentStanding:
		if f.Now.Before(in.Deadline) {
			e.is(BeingMade, "a job is making it")
			e.next("the job commits refs to it, or gives up by its deadline, %s", relative(f.Now, in.Deadline))
		} else {
			e.is(Abandoned, "its job did not commit in time: the orphan judge deletes it, unless the job is taken up again")
		}
		e.next("%s (orphan grace %s)", look, spanText(f.OrphanGrace))
	case catalog.IntentCondemned:
		e.is(DeadWaiting, "its intent was condemned %s: it may be deleted at any moment, and nobody commits it any more", relative(f.Now, in.Changed))
		e.next("%s", look)
	case catalog.IntentBurned:
		f.burnedIs(e, judge)
	}
}

func (f *KeyFacts) burnedIs(e *Explanation, judge *MarkerFact) {
	if f.exists() {
		e.is(LandedLate, "its key was burned %s, so this landed after the delete; nobody reads it", relative(f.Now, f.Intent.Changed))
	} else {
		e.is(GoneBurned, "we deleted it %s; its key is never used again", relative(f.Now, f.Intent.Changed))
		e.why("the row of a burned key stands until no job can derive the key any more")
	}
	if judge != nil {
		e.next("a last look deletes whatever landed late: %s", judge.when(f.Now))
	}
}
