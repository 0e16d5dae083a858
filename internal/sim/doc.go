// Package sim runs the real code of writers, auditors and readers against a bucket, a
// catalog and disks in memory, in virtual time, from one seed; and holds the world to the
// invariants I1 to I8 after every step, and, in the seeds of Calm, in which nothing goes
// wrong, to I9 at the end.
//
//	seed ──> scheduler: which call of which process goes next, and what becomes of it
//	           │   applied, refused, throttled, answer lost, applied late, 409, short body,
//	           │   truncated listing, a delete of which some keys fail, crash before or after
//	           ├─ bucket   objstore.Store ──> step ──> memstore
//	           ├─ catalog  every verb     ──> step ──> catalog/memory
//	           └─ disk     the committer's fdatasync ──> step ──> powercut
//	         events: objects and copies lost, crashes, stalls, power cuts, lost and full disks, failed fsyncs, outages,
//	           steps of clocks; an operator who trims, removes, sets retention, reshards
//
// A step is one call of a process. It parks, the scheduler waits until every goroutine of
// the bubble is at rest (testing/synctest), takes one of the parked calls by the seed, lets
// it have its fate, checks the rules, and lets the process go on to its next call. Where
// nothing is parked, time passes to the next timer or event. When the faults are over, the
// rest of the run goes the same way, one call after the other, with nothing that befalls it.
//
// One seed is one run: the order of the parked calls is by what they are (process, verb, key,
// functions on the stack), never by when they came, and all pauses are drawn from the seed.
// What two goroutines do in one moment, before both are at rest, comes to the same in either
// order: calls that nothing tells apart have one fate; a call whose ctx ended before all was
// at rest was not made; a process that came by the crash point at which it dies is held
// there, and dies when all is at rest; what a dead process came by is not counted; and no
// goroutine waits for a turn that another one of its process may take. What differs between
// two runs of a seed are the bytes of some UUIDs, and nothing depends on them.
// TestOneSeedOneRun holds it to that, trace and coverage.
//
//	config.go        Config, Default, Hooks
//	sim.go           Run: build, start, schedule, stop, settle
//	sched.go         park, schedule, perform; rest.go what is parked once all is at rest
//	stack.go         who calls
//	fate.go          what becomes of a call
//	buckets.go       the set of one bucket or two; storestep.go their requests as steps
//	catalogstep.go   the catalog's verbs as steps
//	disk.go          the writers' disks; diskfault.go what befalls them
//	process.go       lives of processes; kill; kind.go their errors by kind
//	client.go        what is appended, acknowledged, consumed
//	audit.go         auditors; reader.go readers and I7; operator.go the operator
//	follower.go      clients that follow a stream over HTTP, with pauses
//	event.go         what befalls the world; loss.go what is lost, and given up
//	rollback.go      a catalog that lost its last commits; rebase.go what is known of it then;
//	                 mendcatalog.go what the operator does in the end
//	model.go         what clients know, and the one history of each chain and stream
//	content.go       what an object holds
//	check.go         the rules: checkchain.go I6 I8, checkrefs.go I1 I2, checkobjects.go I3 I4,
//	                 checkslots.go what a slot, a burned key and a seq have to pass
//	burned.go        keys that must not come again
//	end.go           faults over, all reopened, duties run dry: I5; endread.go all rows read back
//	cost.go          Calm, and I9: what auditors asked of the bucket, and what they have for it
//	cover.go         what was hit; trace.go what happened
//
// # Planting a fault
//
// A run that finds nothing proves something only if it would have. Config.Hooks wraps, by
// the process's role, what a process works on:
//
//	Store    the bucket's driver, below the steps: cfg.Hooks.Store = func(name string, d
//	         objstore.Driver) objstore.Driver
//	Requests the bucket's driver, above the steps: it makes of injected errors what it likes
//	Catalog  the catalog, below the steps; Above, above them (what it swallows is no step)
//	Disk     a writer's wal.FS, below the fdatasync steps
//	Skip     guards that catalog/memory does not ask
//
// and Run says in Result.Findings what it noticed, each with the rule's name before a colon.
// Roles are w1 w2 … a1 a2 … r1 … f1 … op1 op2 …, and "end" for whoever runs after the faults. The
// checks look at the real bucket and catalog behind the hooks. Run needs a bubble, and
// Prepare before the first one of a process:
//
//	sim.Prepare() // in TestMain
//	cfg := sim.Default(seed)
//	cfg.Hooks.Skip = map[memory.Guard]bool{memory.Named: true}
//	synctest.Test(t, func(*testing.T) { r = sim.Run(cfg) })
//
// Plants (plant.go; plantcatalog.go, plantstore.go, plantloss.go, plantback.go, plantdisk.go) are the bugs that it is
// known to notice, each with the rules that may say so. TestPlants holds it to them, and
// prints how many seeds each took; a new rule, or a new way to go wrong, belongs there.
//
// What it does not do. Two loops of one process that wait for one mutex, or for each
// other's turn, are in the Go scheduler's hands; so an auditor does one thing at a time
// here, and two auditors do to each other what its loops could. Bytes do not rot by
// themselves. The catalog is rolled back once in a run at most.
package sim
