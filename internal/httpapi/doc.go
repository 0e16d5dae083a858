// Package httpapi serves rows over HTTP: append to the shards of this process,
// read any stream, report health. JSON in and out; every error is a
// problem+json with a stable code (problem.go has the table).
//
//	append.go      POST /v1/streams/{stream}/rows
//	readonly.go    a process without a writer: who takes the rows; one without rows
//	read.go        GET  /v1/streams/{stream}/rows
//	shards.go      routes of a shard, and GET /v1/shards/{shard}/rows
//	consumers.go   its durable consumers: list, make, acknowledge, remove
//	pull.go        POST /v1/shards/{shard}/consumers/{name}/pull
//	shardrows.go   a shard's rows: local first, then the bucket
//	position.go    from, after, to: seqs and tokens
//	explain.go     GET /v1/explain: why an object stands or is dead, where a row lives
//	problem.go     errors on the wire
//	routes.go      the table of routes: methods, paths, scopes
//	server.go      routes, limits, health, who serves what
//
// It holds nothing: an acknowledgement is the writer's, a row the reader's.
package httpapi
