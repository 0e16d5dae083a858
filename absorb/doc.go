// Package absorb takes a published slot into the catalog: its footer becomes refs,
// a settle marker and the chain's cursors, in one transaction (AbsorbSlot).
//
//	tail.go     the slot's footer: one suffix GET, a second if it is larger
//	footer.go   footer -> catalog.Absorb, pure; used by an owner who just built it
//	guards.go   what can be told from the chain row before the transaction tells it
//	copy.go     the other buckets of the set get what stands in the first
//	owed.go     the copies that could not be made at once, made later by the owner
//	mend.go     the copies that nobody remembers, made by the auditor's absorb-check
//	slot.go     Slot: all of the above for one position
//	void.go     Void: a slot that cannot pass the guards moves only absorbed_end
//	all.go      All: every slot that stands from absorbed_end on
//	check.go    Checker: the auditor's absorb-check over chains without a living lease
//	errors.go   what a slot may be that is none, and a guard that failed
//
// Anyone may absorb: the owner, a successor, the auditor after the lease's end. The
// guards of AbsorbSlot make it the same act. Every function may be run again after
// any error; an absorb that has happened answers Already.
//
// Three outcomes of reading a position are told apart and never traded: nothing
// stands there (objstore.ErrNotFound, believed from a GET's answer), what stands
// there is not a valid slot of this position (*Finding, after a second read), and a
// read that failed (any other error; it says nothing about the slot).
//
// What this package does not do: publish, decide who owns a chain, delete.
package absorb
