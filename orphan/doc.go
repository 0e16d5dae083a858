// Package orphan holds the one way in which a settled key dies, and the judge of
// intents, which is one of its two users; the two-phase reap is the other.
//
//	Condemn   one transaction: nothing names the key, and nothing ever will
//	Delete    from every bucket of the class, with the fate of each key
//	Burn      the key is never used again; a last look is due a day later
//
// Each act takes what only the act before it makes: a Right is made by a condemn,
// a Dead by a delete that the store confirmed. There is no other way to the
// Deleter for a settled key. A condemned key is never named again, so a Right
// does not age: a delete that lands late hits nothing.
//
// The judge (Judge.RunOnce) takes one due orphan marker through the steps of the
// protocol, one file a step:
//
//	condemn.go  1  the intent stands unchanged and no ref names its key
//	uploads.go  2  abort all uploads until none is left
//	look.go     2  HEAD and tail: no object, partial, intact; a fault is no finding
//	delete.go   3  delete
//	burn.go     4  burn; after BurnDelay the last look, then the row goes
//
// deleter.go is the way itself, judge.go the judge's steps in their order.
//
// Sweep (sweep.go, watched.go) is the net under it: uploads and keys that nothing watches
// at all.
//
// What this package does not do: decide that an object is dead (package probe),
// delete slots (package reap), take or postpone markers (package auditor).
package orphan
