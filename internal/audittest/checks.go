package audittest

import (
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
)

// refKeys are the keys that refs name.
func (x *Tier) refKeys() (map[string]bool, error) {
	named := map[string]bool{}
	var after *catalog.Ref
	for {
		page, err := x.DB.RefsByKey(x.Ctx(), after, 1000)
		if err != nil || len(page) == 0 {
			return named, err
		}
		for i := range page {
			named[page[i].Key] = true
		}
		after = &page[len(page)-1].Ref
	}
}

// lookAtRefs notes what refs name now: a ref that dies, dies at the time of the
// last such look, because time moves only between two looks.
func (x *Tier) lookAtRefs() {
	named, err := x.refKeys()
	if err != nil {
		x.T.Errorf("look at refs: %v", err)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for key := range named {
		x.lastNamed[key] = x.Clock.Now()
	}
}

// checkDelete is the referee's question before each delete (I2, I4).
func (x *Tier) checkDelete(key string) error {
	refs, err := x.DB.Liveness(x.Ctx(), key)
	if err != nil {
		return err
	}
	if len(refs) > 0 {
		return fmt.Errorf("I2: a ref of stream %q names it", refs[0].Stream)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if died, ok := x.lastNamed[key]; ok && x.Clock.Now().Sub(died) < ReadGrace {
		return fmt.Errorf("I4: its last ref died %v ago", x.Clock.Now().Sub(died))
	}
	return nil
}

// check is what holds at the end of every test.
func (x *Tier) check() {
	x.T.Helper()
	if v := x.Mem.Violations(); len(v) > 0 {
		x.T.Errorf("the referee: %v", v)
	}
	if x.Damaged || x.T.Failed() {
		return
	}
	x.T.Log("fsck")
	if err := x.Fsck(false); err != nil {
		x.T.Error(err)
	}
}

// Fsck finds damage and leaks; with clean, also garbage that only waits.
func (x *Tier) Fsck(clean bool) error {
	rep, err := check.Fsck(x.Ctx(), x.DB, x.Classes, check.Config{})
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range rep.Damage {
		errs = append(errs, fmt.Errorf("fsck: damage: %+v", d))
	}
	for _, r := range rep.Rotten {
		errs = append(errs, fmt.Errorf("fsck: rotten: %+v", r))
	}
	for _, g := range rep.Garbage {
		if clean || g.State == check.Leaked {
			errs = append(errs, fmt.Errorf("fsck: garbage: %+v", g))
		}
	}
	if clean && rep.Waiting > 0 {
		errs = append(errs, fmt.Errorf("fsck: %d objects wait although nothing is owed", rep.Waiting))
	}
	return errors.Join(errs...)
}

// MustBeClean is I5: what refs name and the records stand, nothing else.
func (x *Tier) MustBeClean() {
	x.T.Helper()
	x.Must(x.Fsck(true))
	for _, d := range []catalog.Duty{catalog.DutySettle, catalog.DutyPackMerge, catalog.DutyTailFill, catalog.DutyGC, catalog.DutyTrimCheck, catalog.DutyReapCheck, catalog.DutyTeardown, catalog.DutyReclaim} {
		if ms := x.Markers(d); len(ms) > 0 {
			x.T.Errorf("I5: a %s marker waits on nothing: %+v", d, ms[0])
		}
	}
	for _, in := range x.Intents() {
		if in.State != catalog.IntentBurned {
			x.T.Errorf("I5: a standing intent: %+v", in)
		}
	}
}
