// Package auditor runs the duties: it takes due markers under leases, runs each
// duty's one step over them, and puts back what failed with a growing pause.
//
//	absorb-check  chains whose lease ended: what stands at absorbed_end on
//	settle        chains with standing slots, batch by batch until idle
//	pack-merge    packs of one generation into one of the next
//	tail-fill     what follows a stream's tail object into that
//	gc            live rows out of objects that are mostly dead
//	reclaim       chains without an owner: what their retention gives up; and of every
//	              chain, the refs below a raised watermark
//	trim-check    slots: condemn, and a grace later delete
//	reap-check    settled objects: probe, confirm, and a grace later delete
//	orphan        intents older than the orphan grace
//	teardown      refs below a raised live_from
//	sweep         daily: uploads and keys that nothing watches, strays below trimmed
//
// Any number of auditors may run: a marker's lease shares the work, and every
// duty is safe to run twice at once. One that dies loses nothing, because what is
// owed stands in the catalog (K18).
//
// One failing marker or duty never stalls the others (K11). Deletes stop for one
// grace when a clock stepped or is skewed (clock.go), and on a catalog that was
// rolled back (gate.go), and over a bucket that is not ours any more (stamps.go).
// An object that is missing under a live ref is told of once (alarm.go).
//
// What the movers of all auditors send and ask for stays within the deployment's
// budget (budget.go).
//
//	auditor.go   Deps, New
//	config.go    Config
//	run.go       Run: the schedule
//	once.go      Once: until nothing is due
//	dryrun.go    what the deleting duties would do
//	pass.go      one duty once: guard, take, run, put back
//	duties.go    each duty's step
//	sweeping.go  the daily looks, and those that are asked for
//	settling.go  settle's: by chain, not by marker
//	rewriting.go pack-merge's, tail-fill's and gc's: by marker
//	retaining.go  retention of chains without an owner, and every chain's reclaim
//	clock.go     the clock rule, pure
//	gate.go      may anything move on or go: the chains' heads; gatedverbs.go: of the catalog
//	guard.go     may deletes go on: the clocks' state
//	stamps.go    may deletes go on: whose the buckets are
//	alarm.go     lost objects
//	budget.go    the share of one auditor
//	summary.go   what was done and what was kept; watched.go: why deletes are held, known garbage
//
// What this package does not do: decide anything about an object.
package auditor
