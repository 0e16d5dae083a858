// Package sqlite is the catalog in one SQLite file on a local disk, shared by the
// processes of one machine.
//
//	verb ──closure──> committer ──> flock turnstile, flock writer ──> BEGIN IMMEDIATE
//	verb ──closure──>    (one)        closure, closure, …
//	verb ──closure──>                 COMMIT, one fsync for them all ──> answers
//
// Within a process all writing verbs go through one connection and are committed in
// groups; a verb that fails takes back only itself. (A closure may run twice: it reads
// all it decides by in its transaction, and sets its results anew.) Between processes an
// outer pair of file locks makes writers take turns: who waits for the writer lock
// holds the turnstile, so the one that just wrote queues behind it. SQLite's own
// busy handler polls, and starves. Readers have connections of their own, see a
// snapshot, and never take the outer locks.
//
// Durability on return: WAL with synchronous=FULL; a verb that returned nil is on
// disk. After a COMMIT that failed with an I/O error nothing more is written until
// a checkpoint has carried the whole log into the database file.
//
// An object's key, kind, class, revision and generation stand once in table object,
// and refs name it by number: so the rows of a slot enter both secondary indexes
// side by side, at their ends, however many streams it feeds.
//
// Each transaction begins with a look at the schema's version (newer.go): a newer build may
// bring it up while this one runs, and then nothing is read or changed here any more
// (catalog.ErrNewer).
//
// The file that was opened is a session (session.go): whoever rests on what was seen in it is
// refused once another one stands in its place.
//
// Files: db.go and pool.go (connections), schema.go, fs_*.go (which file systems), committer.go
// and flock.go (the picture above), tx.go and errors.go, rows.go and refs.go (what there is),
// next.go (what a commit arms). The other files are a group of verbs each.
//
// What this package does not do: network file systems (refused: their locks and
// shared memory lie), retries, decisions; the guards stand in package catalog.
package sqlite
