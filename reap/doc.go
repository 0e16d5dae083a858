// Package reap makes dead data disappear: settled objects by the two-phase reap,
// slots by the trim-check, refs of trimmed streams by the teardown walk, refs below
// a chain's watermark by the reclaim.
//
//	reapcheck.go  the pass: observe all, decide, act, spool, flush
//	planreap.go   the decision, pure
//	confirm.go    first phase: all dead, unconfirmed -> confirmed, due a grace later
//	spool.go      second phase: condemn -> spool -> batched delete -> burn
//
//	reclaim.go    what a watermark gave up: head, watchers, refs, in this order
//
//	trimcheck.go  the steps of the slots' check, in order
//	plantrim.go   its decisions, pure
//	place.go      where a chain's slots stand
//	head.go       the chain's head in rw/, the only object that is replaced
//	rollback.go   a row behind its head: the catalog was rolled back, no delete
//	strays.go     what stands below trimmed although it was deleted
//
//	teardown.go   the walk: arm every watcher of a page, then retire its refs
//	journal.go    trims/, the record of trims that a rebuild reads
//	fold.go       many records of it -> one snapshot
//
// Every decision to delete is a pure plan over what was read, then an execution
// that the catalog checks once more. Slots have no probe: a standing settle
// marker means that a rewrite is owed, and the cursors say the rest. No object
// goes sooner than a grace after its last ref died (I4): a confirmed reap-check
// is due one grace after the first all-dead look, a condemned slot goes one grace
// after it was condemned.
//
// Every function here is safe to run twice at once, and after a cut at any line.
//
// What this package does not do: take or postpone failed markers (package
// auditor), choose what to trim (retention), compact (gc).
package reap
