// Package postgres is the catalog in a PostgreSQL database, shared by any number of
// machines.
//
//	verb ──> queue of statements ──one round trip──> BEGIN, locks, reads, clock
//	         decide (package catalog)
//	         queue of statements ──one round trip──> writes, COMMIT
//
// # Isolation
//
// Reading verbs run on one snapshot: REPEATABLE READ, READ ONLY. Nobody sees half a commit.
//
// Writing verbs run READ COMMITTED, with row locks that stand for the guards. SERIALIZABLE
// would need no argument, but an absorb reads and writes thousands of rows in the same
// index pages as its neighbours, and would be run again for each of them that commits. The
// argument is written at each lock; it is of one form. A statement sees all that was
// committed before it began. So a verb that locks a row first, and reads behind the lock
// in later statements, sees all that the lock's former holders did; and nobody who needs
// the lock comes in between. What is read without a lock is either such that it only moves
// one way (live_from, a slot that no ref names), or is written back under the condition
// that it still is as it was read; if it is not, the verb is run again.
//
//	chain row    acquire, renew, absorb, trim-check, watermark, resolve   rows.go
//	intent row   announce, commit, condemn, burn, forget; the key itself
//	             where no row stands                                      intent.go
//	object row   whoever adds or removes a ref that names it              refs.go
//	marker row   its version: who changes it names it                     markers.go
//	stream row   trims, and the absorb that moves its tip                 absorb.go
//	ref row      is deleted as it was read                                refs.go
//
// Locks are taken in the order of this list (streams behind the chain), and within a kind
// in the order of the keys, so that verbs seldom meet crosswise; where they do, PostgreSQL
// ends one of them (40P01), and it is run again.
//
// # Failure
//
// A verb that certainly did not commit is run again, with jitter, as long as its context
// lives: after a conflict (40001, 40P01, a unique key, a row that moved) some 20 times,
// after a lost or demoted server for 10 seconds. Then it is ErrUnavailable. An answer to
// COMMIT that did not come is ErrAmbiguous; so is one that came with a warning, by which
// PostgreSQL says that it did not wait for its synchronous standby. Durability on return is
// therefore that of synchronous_commit = on, which every new connection is asked for, and
// keeps for itself, whatever the server's configuration says later.
//
// Times are the database's clock, read once a transaction behind its first locks. With it
// goes a look at the schema's version: under one that a newer build brought up while this
// process runs, the server ends the transaction, and the verb is catalog.ErrNewer.
//
// # What this package does not do
//
// Decide: the guards stand in package catalog. Keep a transaction open while anything else
// than the database is waited for. Notice a catalog that lost commits: auditor does. It
// uses no advisory lock (but while the schema is being brought up), no LISTEN, no types of
// PostgreSQL alone, so that CockroachDB and YugabyteDB may take its statements; they are
// not tested here. A pooler between must keep sessions (PgBouncer: pool_mode = session).
//
//	db.go         options, pool, what a connection is asked for and told
//	pool.go       how many connections there are, for those who watch
//	schema.go     migrations, forward only; migrations/*.sql
//	standing.go   a schema that has to be there already
//	newer.go      a schema that a newer build brought up while this one runs
//	session.go    which server a connection leads to
//	tx.go         the queue of statements, and the transaction around it
//	retry.go      run again, commit, give up; errors.go: kinds; notices.go: warnings
//	rows.go refs.go   rows to values and back (with catalog/internal/column), locks; insert.go refs by COPY
//	settings.go topology.go ownership.go   deployment, epochs, owners
//	absorb.go     slot to refs
//	window.go packwindow.go commit.go next.go resolve.go lease.go   the one mover
//	intent.go judge.go forget.go   intents and what condemns them
//	markers.go    due-dates
//	trim.go slotrows.go watermark.go across.go teardown.go loss.go   what goes
//	reader.go plan.go inspect.go   what only reads
package postgres
