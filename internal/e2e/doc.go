// Package e2e runs a whole deployment of real processes on a real MinIO and a real
// PostgreSQL server, breaks it under load, and holds what is there in the end against what
// was acknowledged.
//
//	producers, OTLP senders --> 3 writers (4 shards each) --Gate--> MinIO
//	consumers, followers    <-- writers, 2 readers        --Gate--> PostgreSQL
//	                            2 auditors
//
// The faults, in this order, each once everybody went on after the one before: a writer is
// killed and its disk deleted, and a new writer takes its shards over after the lease; an
// auditor is killed; the bucket is cut off, first silent, then refusing; the catalog is.
//
//	gate.go      the TCP proxy that is silent or refuses
//	process.go   programs as child processes (package child)
//	site.go      servers, proxies, the built command
//	fleet.go     writers, auditors, readers and their flags
//	ledger.go    what was acknowledged, and what may be missing
//	produce.go   producers: the client package, rows of package payload, local and shared
//	             acknowledgements
//	consume.go   durable consumers, one a shard
//	follow.go    followers through readers and writers
//	otlp.go      telemetrygen
//	faults.go    the faults, and that all goes on after each
//	finish.go    the end: stop, run dry, read everything
//	judge.go     rows against the ledger
//	logs.go      no process logs an error that it should not
//	e2e.go       Options, Run
//	figures/     a command that measures the deployment, on a quiet machine
//
// What must hold: every row that was acknowledged as shared, and every row that was
// acknowledged as local whose disk was not deleted, is read once and in order per stream
// from the bucket. Rows that the lost disk acknowledged as local are at most missing, an end
// of what it wrote, never doubled and never out of order. Consumers saw each row of the
// chain, and followers each row once. A fault that was not met fails the run.
package e2e
