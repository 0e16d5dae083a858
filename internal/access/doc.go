// Package access decides who may do what: bearer tokens with scopes, for HTTP and gRPC.
//
//	token file --parse--> set --decide--> granted | refused (unauthenticated, forbidden)
//	     ^                 ^
//	  filewatch ---------- swapped whole, when the new file is sound
//
//	token.go   what a token looks like, and its hash
//	file.go    the file of hashes, read whole or refused with line numbers
//	tokens.go  the set in force, its reload; which token a request bears
//	guard.go   HTTP: 401, 403, and the end of long answers when their token is revoked
//	grpc.go    the same for gRPC
//	refusal.go what is answered and logged, without a secret in it
//	source.go  the other side: the token that this process presents
//
// Contract. A token lists its scopes, and none implies another: admin alone reads no row.
// Only hashes are in the file (decision 0011 says why a plain SHA-256 is right for random
// tokens). A presented token is compared with every hash there is, in constant time. A new
// file that is broken leaves the old one in force and is complained about until it is
// mended. A token that is gone from the file, or lost the scope, ends the answers that it
// still has running, within filewatch.Every and a second.
//
// It does not know streams: a token reads or appends all of them. It keeps no session, and
// it takes no token from a URL, where proxies and browsers would write it down.
package access
