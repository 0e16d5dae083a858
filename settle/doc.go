// Package settle moves rows out of transit slots into settled objects, and settled
// objects into better ones: the one mover (the rewrite commit protocol, 03 §4) and the
// policies that feed it.
//
//	a policy's plan, pure: which streams get objects of their own, which share a pack
//	      settle      standing slots             policy.go      RunOnce (settler.go): a chain
//	      gc          a mostly dead object       gc.go          RunMarker (marker.go): a marker
//	      tail-fill   a small tail, its window   tailfill.go          "
//	      pack-merge  eight packs                packmerge.go         "
//	      |
//	  1 announce   the output's intent   announce.go
//	  2 read       the live spans        read.go, fetch.go (each source once), spool.go
//	  3 assemble   one upload            assemble.go, encode.go, output.go
//	  4 publish    create-once           publish.go, describe.go (what is durable)
//	  5 commit     swap the refs         commit.go; arms what is owed next
//	  6 resolve    the duty's markers    resolve.go, marker.go
//
// A batch runs under the lease of its chain or marker (lease.go); mover.go runs its jobs
// side by side, each through the steps above, a step a line; trace.go tells who watches.
//
// A job (job.go) is one output object with its members (streams) and their runs of refs.
// The mover knows nothing of the policy that made it, nor whether its sources are
// slots or settled objects.
//
// Contract. Every step may be cut and run again: keys are derived, objects are
// created once, the commit validates or abandons. A member that fails is left out
// with its reason and a back-off, the others commit. Nothing that a read did not
// complete is ever committed, and nothing is deleted here.
//
// Memory is bounded by Config (config.go): FetchBytes of fetched sources and Fetches x 16 MiB on
// their way (what is beyond goes to an unlinked temporary file), about 3 x WorkBytes
// of rows being encoded, and for each of Outputs the store's (Concurrency+1) x
// PartSize at most.
//
// Outputs go to the first bucket of the class standard.
//
// What this package does not do: decide when it runs (auditor), delete (reap, orphan),
// know what a deployment may spend: it asks a Budget (budget.go) before it reads and
// before it sends.
package settle
