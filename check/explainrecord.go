package check

import "github.com/strandline/strandline/segment"

// recordIs explains the records of 02.
func (f *KeyFacts) recordIs(e *Explanation) {
	if !f.exists() {
		return
	}
	switch k := f.key; k.Kind {
	case segment.KeyStamp:
		e.is(IsRecord, "the bucket's stamp: whose it is, and which class it serves")
	case segment.KeyTopology:
		e.is(IsRecord, "the record of epoch %d: shards, class, buckets", k.Chain.Epoch)
	case segment.KeyHead:
		e.is(IsRecord, "the head of chain %s: what a rebuild begins with, and how a rolled-back catalog is known", k.Chain)
	case segment.KeyTrim:
		e.is(IsRecord, "trim record %d of chain %s: what a rebuild needs of trims", k.N, k.Chain)
		e.next("the daily sweep folds old records into a snapshot and deletes them one read grace (%s) later", spanText(f.ReadGrace))
	}
	if k := f.key.Kind; (k == segment.KeyHead || k == segment.KeyTrim) && f.Chain == nil {
		e.why("the catalog has no such chain: was it rolled back? Nothing is deleted")
	}
	if f.key.Kind != segment.KeyTrim {
		e.next("nothing: records are never deleted")
	}
}

func (f *KeyFacts) otherIs(e *Explanation) {
	switch {
	case !f.exists() && f.Uploads == 0:
	case f.key.Kind == segment.KeyDoctor:
		e.is(DeadWaiting, "a throw-away key of a doctor or a bench")
		e.next("its run removes it; what a killed one left, the next strandline doctor does")
	default:
		e.is(NotOurs, "not a key that Strandline forms: it is never touched")
		e.next("if nobody else keeps it here, remove it with the store's own client")
	}
}
