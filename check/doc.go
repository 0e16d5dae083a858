// Package check reads the invariants from outside: what the bucket holds against
// what the catalog says, without trusting either.
//
//	stamp.go      which bucket, which catalog (03 §0), at the start of every process
//	epoch.go      an epoch's record in every bucket of its class
//	order.go      and which bucket of a set decides
//	fsck.go       the walk: listing, refs, markers and intents merged by key
//	heads.go      a catalog that was rolled back gives no verdict
//	objects.go    what a key without a ref is: waiting, garbage, or nobody's
//	footers.go    what a named object holds, against its refs (I2)
//	streams.go    every stream's refs linked without a hole (I1, I7)
//	reclaims.go   refs that a watermark gave up, until they are retired
//	report.go     the verdict
//	census.go     objects and bytes by kind
//
// Nothing here writes, but for the stamp of a bucket that has none. A read that
// could not be completed is an error of the check, never a finding. Since writers and
// auditors go on meanwhile, every finding is looked at again, by itself, before it is reported.
//
// Memory is bounded by pages, and by the findings kept (Config.MaxFindings).
package check
