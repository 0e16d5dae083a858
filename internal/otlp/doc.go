// Package otlp takes OpenTelemetry logs: OTLP/HTTP (protobuf and JSON, gzip and zstd)
// and OTLP/gRPC (gzip), with the Collector's own data types.
//
//	body ── survey ── decode ── rows, by stream ── one append a stream ── answer
//	  counted before it is decoded      │                  │
//	  (survey.go)            a record is a row          all durable: success
//	                         (rows.go)                  one is not: the whole request is
//	                                                    to be sent again
//
//	receiver.go   New, take: the steps above, for HTTP and gRPC alike
//	http.go       POST /v1/logs; body.go reads and decompresses within bounds
//	inform.go     refusals by what stands around the route, in OTLP's form
//	grpc.go       LogsService/Export; health.go the health service
//	admit.go      how many calls may be under way, and how long a message may take to come
//	packed.go     messages of gRPC, unpacked within the bound on memory
//	survey.go     what a request will take in memory
//	memory.go     the bound on all requests under way
//	rows.go       records to rows: payload, time, stream
//	name.go       a stream's name out of an attribute
//	write.go      one append a stream, and the identity that makes a retry harmless
//	verdict.go    errors on the wire: what a sender may try again
//	counts.go     what was taken, for telemetry
//
// Contract. A row's payload is an ExportLogsServiceRequest in protobuf that holds just this
// record with its resource and scope, so every OTLP tool reads it. Success, also partial
// success, is said only when Append has returned for every record that is not counted as
// rejected: then they are as durable as Append makes them. Rejected are only records that
// could never be taken. Anything else is an error that says "send it again", and the sender
// sends all of it again: the parts that were written already are known by an identity made
// of their bytes (write.go), as long as their shard remembers it.
//
// It holds nothing between requests, and does not serve metrics or traces.
package otlp
