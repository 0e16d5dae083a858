// Package auditor runs the duties: it takes due markers under leases, runs each
// duty's one step over them, and puts back what failed with a growing pause.
//
//	absorb-check  chains whose lease ended: what stands at absorbed_end on
//	settle        chains with standing slots, batch by batch until idle
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
// rolled back (heads.go).
//
//	auditor.go  Deps, New           once.go     Once: until nothing is due
//	config.go   Config              run.go      Run: the schedule
//	pass.go     guard, take, run, put back      duties.go  each duty's step
//	clock.go    the clock rule, pure; guard.go  its state
//	backoff.go  pauses              summary.go  what was done and what was kept
//
// What this package does not do: decide anything about an object.
package auditor
