package check

import (
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// slotIs explains a slot by its chain's cursors.
func (f *KeyFacts) slotIs(e *Explanation) {
	c, id := f.Chain, f.key.ID
	if c == nil {
		if f.exists() {
			e.is(NotOurs, "a slot of chain %s, which the catalog does not have: was it rolled back, or is this another deployment's bucket?", f.key.Chain)
			e.next("it is never touched; hold the catalog against the bucket with strandline fsck")
		}
		return
	}
	e.why("chain %s: trimmed %d, condemned %d, rewritten %d, absorbed_end %d; this is position %d", c.Chain, c.Trimmed, c.Condemned, c.Rewritten, c.AbsorbedEnd, id)
	if s := f.Slot; s != nil {
		e.why("absorbed as segment %s, rows %s of the chain, written under term %d by owner %s, sealed %s", s.UUID, s.rows(), s.Term, s.Owner, relative(f.Now, s.Sealed))
	}
	switch {
	case id >= c.AbsorbedEnd:
		f.aheadIs(e)
	case id < c.Trimmed:
		f.trimmedIs(e)
	default:
		f.named(e)
		f.standingIs(e)
	}
}

func (s *SlotFact) rows() string {
	if s.Next <= s.First {
		return "none"
	}
	return fmt.Sprintf("%d to %d", s.First, s.Next-1)
}

// aheadIs explains a position that nobody absorbed yet.
func (f *KeyFacts) aheadIs(e *Explanation) {
	c := f.Chain
	switch {
	case c.Closed && f.exists():
		e.is(NotOurs, "it lies beyond the end of a closed chain: nobody absorbs it, and nothing deletes it")
		e.next("its rows were never acknowledged as shared; strandline salvage on its writer's directory has them")
		return
	case f.exists():
		e.is(NotAbsorbed, "published, and not absorbed yet: it is no history until then")
	case f.Uploads > 0:
		e.is(NotAbsorbed, "an owner is publishing it")
	default:
		e.is(NotAbsorbed, "not written yet: the chain's next position is %d", c.AbsorbedEnd)
	}
	if f.Now.Before(c.LeaseEnd) {
		e.next("its owner %s (term %d, %s) absorbs it; its lease ends %s", c.Owner, c.Term, firstText(c.Address, "no address"), relative(f.Now, c.LeaseEnd))
		return
	}
	e.next("no owner lives (the lease ended %s): the auditor's absorb-check absorbs what stands there, or the next owner", relative(f.Now, c.LeaseEnd))
}

// trimmedIs explains a position below trimmed.
func (f *KeyFacts) trimmedIs(e *Explanation) {
	if !f.exists() {
		e.is(IsTrimmed, "its rows were moved or given up, and it was deleted")
		e.next("nothing; where a row of it is now: strandline explain STREAM POS")
		return
	}
	e.is(IsLeaked, "a stray: its chain is trimmed beyond it, so it landed after the delete, and is of no history")
	e.next("the daily sweep of its chain deletes it once it is older than a read grace (%s); at once with strandline auditor --once --sweep", spanText(f.ReadGrace))
}

// standingIs explains a slot in [trimmed, absorbed_end).
func (f *KeyFacts) standingIs(e *Explanation) {
	c, id := f.Chain, f.key.ID
	settle, check := f.marker(catalog.DutySettle), f.marker(catalog.DutyTrimCheck)
	switch {
	case id < c.Condemned:
		f.condemnedIs(e, check)
	case f.damagedIs(e):
	case settle != nil && f.Slot != nil && f.Slot.Void:
		e.is(IsParked, "it was absorbed as void: it could not pass the chain's guards (%s), and it may hold rows, so it waits for a person", firstText(settle.LastError, "no reason recorded"))
		e.next("look at it with strandline inspect; strandline accept-loss %s lets it go. Until then this chain's slots from here on stay", f.Key)
	case settle != nil:
		e.is(OwesSettle, "its rows are to be moved into settled objects; until then it serves them")
		if at := settle.Due; f.Now.Before(at) || settle.LastError != "" {
			e.next("settle: %s; other streams' rows of it move meanwhile", settle.when(f.Now))
		} else {
			e.next("settle takes it once the chain's earliest slot is settle-age old (10m unless set otherwise) or enough transit stands: its marker is %s", settle.when(f.Now))
		}
		f.holders(e)
	case !f.exists():
		e.is(IsMissing, "it is gone, and its chain has not condemned it; no live row needs it, but something else deletes in this bucket")
		e.next("look for a lifecycle rule, or for who else has access to the bucket")
	case id < c.Rewritten:
		e.is(WaitsForTrim, "its rows are served by settled objects; nothing holds it any more")
		if c.Condemned > c.Trimmed {
			e.next("the slots condemned before it go first, at the earliest %s; then it is condemned, and deleted one read grace (%s) after that", relative(f.Now, c.CondemnedAt.Add(f.ReadGrace)), spanText(f.ReadGrace))
		}
		f.checkNext(e, check)
	default:
		e.is(WaitsForTrim, "no ref names it any more; it stands until its chain's trim has passed everything before it")
		f.holders(e)
		f.checkNext(e, check)
	}
}

func (f *KeyFacts) condemnedIs(e *Explanation, check *MarkerFact) {
	gone := f.Chain.CondemnedAt.Add(f.ReadGrace)
	if f.exists() {
		e.is(IsCondemned, "no ref names it, and its last grace runs since %s", relative(f.Now, f.Chain.CondemnedAt))
		e.next("deleted at the earliest %s (read grace %s after it was condemned), by any auditor's trim-check", relative(f.Now, gone), spanText(f.ReadGrace))
	} else {
		e.is(IsTrimmed, "condemned %s, and deleted; its chain's trimmed cursor passes it next", relative(f.Now, f.Chain.CondemnedAt))
	}
	if f.LiveRefs > 0 {
		e.next("but %s still name it: the trim-check refuses to go on; run strandline fsck", count(f.LiveRefs, "live ref"))
	}
	f.checkNext(e, check)
}

func (f *KeyFacts) checkNext(e *Explanation, check *MarkerFact) {
	if check != nil {
		e.next("the chain's trim-check: %s", check.when(f.Now))
	} else {
		e.next("no trim-check of its chain stands: the next settle, or a consumer that moves, arms it")
	}
}

// holders says what keeps the chain's rewritten cursor from passing the slot.
func (f *KeyFacts) holders(e *Explanation) {
	c, id := f.Chain, f.key.ID
	if c.Owes != 0 && c.Owes < id {
		e.next("slot %d of the chain owes a settle first: %s", c.Owes, c.OwesBy.when(f.Now))
	}
	if f.Slot == nil {
		return
	}
	var slowest *segment.Consumer
	for i := range c.Consumers {
		if s := &c.Consumers[i]; slowest == nil || s.Cursor < slowest.Cursor {
			slowest = s
		}
	}
	if slowest != nil && slowest.Cursor+1 < f.Slot.Next {
		e.next("durable consumer %q is at seq %d and holds it, at most consumer-hold-max bytes behind: it acknowledges, or strandline consumers rm removes it", slowest.Name, slowest.Cursor)
	}
	if !c.Settles && id > c.WatermarkID {
		e.next("its epoch does not settle (settle=off): it serves its rows until retention gives them up; the watermark is %d", c.Watermark)
	}
}

func firstText(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// count is a number of things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return commas(int64(n)) + " " + what + "s"
}

// commas is a number with its thousands apart.
func commas(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
