// Package doctor proves on the real bucket, with throw-away keys, what Strandline relies
// on, and says what a store cannot do and what that breaks.
//
//	doctor.go      Run: reach the store, sweep leftovers, one check after another, clean up
//	quick.go       Quick: the few checks that a start can afford, within 2 s
//	check.go       what a check is, and how its end becomes an outcome
//	trial.go       what a check works with
//	ledger.go      the driver between: counts requests, remembers what was made
//	permission.go  which action each request needs, and which were denied
//	cleanup.go     nothing stays behind, on any path
//	leftover.go    what a doctor that was killed left behind
//	report.go      the outcomes, and the capabilities that are left
//
//	createonce.go complete.go copy.go ranges.go integrity.go listing.go delete.go
//	settings.go clock.go   the checks, a file a group
//
// The probes go to the bare Driver: the Store's retries and read-back would hide what the
// store does. A check that the store lies about (it answers success and did otherwise) is
// required even where an honest refusal would only narrow the capabilities: planners
// believe success.
//
// Keys stand under PREFIX/UUID/, with a prefix that the caller names and a UUID a run. All
// of a run's objects and uploads are removed at its end, under a deadline of its own. What a
// killed run left is removed by the first run that finds it an hour old.
//
// What this package does not do: judge performance, durability of an acknowledged write
// (no client can see that), or what another client of the bucket may do.
package doctor
