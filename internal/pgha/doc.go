// Package pgha is the test of the catalog's fail-over with real processes: PostgreSQL with
// a standby, writer, auditor and reader, all on loopback.
//
//	writer, auditor, reader --multi-host URL--> primary --streams--> standby
//	                                            SIGKILL              promoted
//
// TestFailOver: the standby is synchronous. The primary is killed with SIGKILL under load
// and the standby promoted. No row that was acknowledged as shared is lost, and every
// process goes on by itself, within a bounded time and without a restart.
//
// TestLostCommits: the standby is asynchronous and was away for a while; what is promoted
// has lost commits. That is noticed (03 §0), by whoever would append and by whoever would
// delete; deletes stop, the log and `status` say so and what to do, and nothing that stands
// in the bucket goes, however long it has been due.
//
// The package has no code but its tests.
//
//	process_test.go   the command's processes
//	site_test.go      bucket, servers, and what the processes are told of them
//	load_test.go      clients, and the ledger of what was acknowledged
//	failover_test.go  TestFailOver
//	lost_test.go      TestLostCommits
package pgha
