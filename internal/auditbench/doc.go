// Package auditbench measures what the auditor's duties cost on a store, beside what they
// should: the rooms themselves at work, on tiers that it founds for the purpose.
//
//	under meta/doctor/bench-auditor-<id>/   one directory a tier, a bucket within the bucket
//	under Options.Dir                       one SQLite catalog a tier
//
//	settle    one batch of zstd slots: rows a second, CPU, memory     settle.go
//	moves     what gc and tail-fill let the store move by itself      moves.go
//	streams   requests a GB of few and of many streams, with the
//	          rewrites that they arm                                  streams.go
//	reap      probe, confirm, condemn, delete, burn, beside the
//	          store's own bulk delete                                 reap.go, dead.go
//	debt      one debt among so many and ten times as many objects    debt.go
//
//	run.go       Run: the parts in order; sizes.go how much of each
//	tier.go      a tier, the catalog's verbs counted; under.go its bucket; slots.go what is settled there
//	measure.go   one measurement: clock.go the tiers' time, requests, verbs, CPU, memory
//	report.go    the figures; expected.go those that were aimed at
//
// Time within a tier is turned on, never waited for: graces are hours there. No other key
// of the bucket is read or written. All of it is deleted, as storebench does, on every way
// out; what a killed run left, the next doctor takes along.
//
// It measures and says which figures were reached. It changes no deployment, and judges
// no store.
package auditbench
