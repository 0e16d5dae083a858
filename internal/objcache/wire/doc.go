// Package wire is what a client and an instance of the object cache say to each other:
// paths, headers, the bodies of deletes and the frames of a read.
//
//	GET  /v1/objects/{key}?offset=&length=   If-Match   -> Strandline-Object, frames
//	POST /v1/delete   {"keys":[…]}                      -> {"fates":[…]}, one a key, in order
//	POST /v1/evict    {"keys":[…]}                      -> {}
//	GET  /v1/status, /healthz, /readyz
//
// All but the last line carry Strandline-Bucket, the bucket that the client means.
// Errors are problem+json; a client takes every one of them as "ask the store".
//
// A read's body is made of frames, little-endian:
//
//	| bytes | what                                                          |
//	| 4     | n, at most 256 KiB; frames end at its multiples in the object |
//	| 4     | CRC-32C over key, ETag, the frame's offset and its bytes      |
//	| n     | bytes of the object                                           |
//
// So bytes that were cut, changed, moved, or are another object's never pass, and no
// byte is handed on before it was checked.
package wire
