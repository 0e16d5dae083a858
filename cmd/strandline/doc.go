// Command strandline is a shared log tier on object storage: one binary, a
// subcommand per file. It only wires: flags in, rooms called, results out.
//
//	root.go      global flags, environment, exit codes
//	backend.go   a deployment from flags: catalog, stores, the embedded layout of --dir
//	output.go    tables for people, JSON for machines, progress on a terminal
//
// The other files are a subcommand each, of their name. What several share, beside those:
//
//	settings.go        flags, variables and the file (internal/settings); config.go shows them
//	openstore.go       --store; opencatalog.go --catalog; founding.go, proving.go, away.go, waiting.go: what a start waits for
//	throughcache.go    stores with the object cache in between
//	service.go         a process that owns shards: up.go, writer.go, owner.go, nextepoch.go
//	rewriteroom.go     what an auditor writes to a disk that is nearly full
//	leftshards.go      rows on its disk of shards that it was not started with
//	listen.go          HTTP, and the order of the way out, which wayout.go bounds; ready.go, pulse.go: /readyz
//	ports.go           is anybody listening there already?
//	access.go          who may call us; accesscaller.go who we are to others
//	otlp.go            logs in, and on to the owner of their shard
//	telemetry.go       what metrics and traces look at
//	auditorflags.go    the duties' knobs; auditorserve.go an auditor's routes
//	client.go          commands through a server; owners.go who answers for a shard
//	appendrows.go, catrows.go   rows in, rows out
//	alarms.go, statuslocal.go, unread.go, untaken.go   what status says; doctorprint.go: what doctor says
//	exit.go, help.go   exit codes, help
package main
