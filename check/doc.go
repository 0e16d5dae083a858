// Package check reads the invariants from outside: what the bucket holds against
// what the catalog says, without trusting either.
//
//	stamp.go      which bucket, which catalog (03 §0), at the start of every process
//	epoch.go      an epoch's record in every bucket of its class
//	order.go      and which bucket of a set decides
//
//	fsck.go       the walk and its steps
//	heads.go      a catalog that was rolled back gives no verdict
//	chains.go     what a chain's row may not say: cursors, watermark, consumers
//	bucket.go     listing, refs and slot rows merged by key
//	footers.go    what a named object holds, against its refs (I2); damage, or a rotten copy
//	coverage.go   a footer against a ref
//	deep.go       and every chunk, read and decoded
//	unreadable.go what cannot be read while its bucket answers: told apart, and passed
//	slots.go      absorbed slots against their rows: whose they are, and that they stand
//	copies.go     copies that a bucket of a set lacks
//	objects.go    what a key without a ref is: waiting, garbage, or nobody's (I3)
//	uploads.go    unfinished uploads likewise
//	streams.go    every stream's refs linked without a hole (I1, I7)
//	reclaims.go   refs that a watermark gave up, until they are retired
//	settled.go    I5: after duties ran dry, nothing waits
//	report.go     findings and verdict
//	census.go     objects and bytes by kind
//
//	explain.go         what an explanation is, and its words for situations
//	explainkey.go      facts of a key, gathered; explainmore.go those of its chain and slot
//	explainsettled.go  facts of settled objects into sentences, purely; explainintent.go those
//	                   under an intent, explainrecord.go records and what is not ours
//	explainslot.go     of slots likewise
//	explainrow.go      facts of a row; explainread.go its chunk, explainway.go its way
//	explainrowtext.go  into sentences
//	words.go           times as people say them
//
//	loss.go, lossread.go  the proof that rows are lost, before they are given up
//	lossunread.go         or that nobody can read them, on an operator's word
//
// Nothing here writes, but for the stamp of a bucket that has none. A read that
// could not be completed is an error of the check, or told as unreadable if the rest of
// the bucket answers; it is never damage. Since writers and
// auditors go on meanwhile, every finding is looked at again, by itself, before it is reported.
//
// Memory is bounded by pages, by the refs of looks under way, and by the findings kept
// (Config.MaxFindings).
package check
