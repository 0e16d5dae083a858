// Package catalog is the only authority on what is live: refs say which object
// serves a span of a stream, chains say how far each shard got, markers say which
// duty owes a look at what, intents say which objects are being made.
//
//	catalog          the model, the verbs, the pure rules shared by implementations
//	catalog/sqlite   one file, several processes of one machine
//	catalog/postgres a PostgreSQL database, any number of machines
//	catalog/memory   one process, nothing durable: for tests and the simulator
//	internal/column  how both databases have the rows in columns
//	catalogtest      the conformance suite of every implementation, and the twin: two of
//	                 them through the same verbs, held against each other
//	catalog/bare     the same rows without verbs: what a benchmark compares with
//
// The verbs, a group of them a file, are catalog.go, ownership.go, absorb.go, rewrite.go,
// judge.go, trim.go, markers.go, reader.go and inspect.go; the rows are model.go, retention.go,
// id.go and errors.go. What verbs decide is pure, and stands beside them once for all
// implementations:
//
//	who may            guard.go, topologyrules.go, margin.go
//	absorb, consumers  absorbrules.go, consumers.go
//	rewrite            swap.go, policyrules.go (what a commit arms, and a loss)
//	judge              judgerules.go, forgetrules.go
//	trim, retention    trimrules.go, retentionrules.go, teardownrules.go
//	markers            markerrules.go
//	read               planrules.go, live.go, reflist.go, tokenrules.go
//	after a rollback   head.go, session.go
//	a pool's counters  pool.go
//
// Every verb is one transaction. A verb either happened as a whole, or it
// returned an error and nothing happened, or the error is ErrAmbiguous: the
// commit's answer was lost, and calling the verb again finds out. Guards are
// arguments; a guard that fails is a *ConflictError with what stood instead.
//
// All ages and due times are judged by the database's clock (Now), never by the
// caller's. No verb is held open across a call to the bucket.
//
// What this package does not do: touch objects, decide policies, retry.
package catalog
