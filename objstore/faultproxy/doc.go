// Package faultproxy stands between a client and a real S3 server and does to single
// requests what networks, load balancers and stores under load do: answers lost after
// success, requests that land late or twice, cut and damaged bodies, refusals, silence.
//
//	client --> Proxy --> server
//	             |
//	           Rule   which requests (operation, key, n-th, share) meet which Fault
//
//	proxy.go      Start, Add, Unhit, Close: one request from accept to answer
//	operation.go  which call of objstore.Driver a request is
//	rule.go       which requests a fault strikes
//	forward.go    the way upstream and the way back, unchanged
//	sever.go      the end of a client's connection without an answer
//	lost.go       Reset DropAnswer Duplicate
//	status.go     Status: answers that are not the server's, before or after applying
//	body.go       CutBody CutRequest FlipBody FlipRequest Trickle
//	late.go       ApplyLate BlackHole: what waits until the test releases it
//	count.go      requests by operation
//
// Method, path, query, headers and Host go on as they came, so that the client's
// signature, made for the proxy's address, holds at the server. Clients speak plain
// HTTP/1.1 to the proxy; buckets are paths. Faults hold a request's body in memory.
//
// A test must see that its fault was met: Unhit names the rules that never struck.
package faultproxy
