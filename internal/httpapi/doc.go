// Package httpapi serves rows over HTTP: append to the shards of this process, read and
// follow any stream, trim, delete, consumers, health. Every error is a problem+json
// with a stable code (problem.go has the table); docs/http.md is the interface in words,
// openapi.yaml for machines, and decision 0010 has the reasons.
//
//	routes.go      the table of routes: methods, paths, scopes, parameters; the mux
//	server.go      Deps, Handler, what is around all routes
//	limits.go      bounds on memory, time and how many are under way; room.go memory of bodies
//	linger.go      what is read of a body behind its refusal
//	requestid.go, media.go, unambiguous.go   ids; types accepted; requests with two ends
//	problem.go     errors on the wire
//	openapi.go     the document; logsform.go refusals of /v1/logs in OTLP's form
//
//	append.go      POST /v1/streams/{stream}/rows
//	body.go        a body, unpacked, in bounds; rowlines.go its rows, plainline.go nearly all of them
//	idempotency.go a key is a producer of one append
//	readonly.go    a process without a writer, or without rows
//
//	read.go        GET  /v1/streams/{stream}/rows
//	shards.go      routes of a shard, and GET /v1/shards/{shard}/rows
//	shardrows.go   a shard's rows: local first, then the bucket
//	position.go    from, after, to: seqs and tokens
//	appendline.go  a row as a line
//	streams.go     list, trim, delete
//	consumers.go   durable consumers: list, make, acknowledge, remove; pull.go pulls
//
//	follow.go      a follower's rounds, and where its position rests; followlog.go on a
//	               local log, followbucket.go on the bucket
//	followsource.go what is followed: a stream, or a chain
//	tail.go        the writer that followers find here
//	tips.go        looks at the catalog, shared by all who follow a stream
//	outlet.go      NDJSON and server-sent events
//
//	ready.go       /healthz and /readyz
//	explain.go     GET /v1/explain: why an object stands or is dead, where a row lives
//
// It holds nothing: an acknowledgement is the writer's, a row the reader's.
package httpapi
