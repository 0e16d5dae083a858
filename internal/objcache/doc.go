// Package objcache is the client side of the object cache: a driver around a driver.
// The cache's own side is in instance, what they say to each other in wire.
//
//	coldload ──> objstore.Store ──> Driver ──GET──> instance of the key ──miss──> store
//	reap     ──> objstore.Store ──> Driver ──POST─> evict, then delete  ─────────> store
//	                                   └─ anything else, and whatever fails ─────> store
//
//	driver.go      Wrap: who is asked for which key
//	rendezvous.go  key -> instance
//	read.go        Get through an instance; body.go: and what if it dies in the middle
//	delete.go      Delete through instances
//	evict.go       keys that an instance has yet to forget
//	breaker.go     an instance that failed is left alone for a while
//	call.go        a request to an instance; config.go
//
// What a cache may change: nothing but speed and the number of requests. Only bytes come
// from it, checked frame by frame; "not there", "changed" and every other refusal is
// asked of the store again and is the store's own word. Cacheable keys are created once
// and never used again, so a cached byte cannot be wrong, only outlive its object.
//
// That is what deletes are about: they go to the key's instance, which forgets the
// key's ranges first and deletes then. If the instance is away, the store is asked
// directly and the key waits here for its instance to come back; meanwhile this process
// does not ask that instance for that key. This list is in memory and bounded. What is
// lost of it (the process ends, the list is full), or was deleted by a process that was
// not told of the cache, stays readable through the instance for at most its max-age (1 h
// by default). So do the ranges that a changed list of instances leaves elsewhere: their
// keys are another instance's now, and nobody asks for them there.
//
// Judgements never rest on a cache: whoever probes, judges or checks wraps with Reads
// false and gets every byte from the store.
//
// Memory: a frame (256 KiB) per body that is read in small pieces, and at most
// Config.QueueKeys keys (about 250 bytes each) per instance.
//
// Instances may ask for a token and speak TLS: Config.Token and Config.Transport. The token
// needs the scope read, and admin for whoever deletes. An instance that refuses it is left
// alone like one that failed, and said so of: the store is asked directly.
package objcache
