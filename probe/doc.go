// Package probe judges one settled object: does anything still want its bytes?
//
//	one suffix GET   the object's own footer says what it holds
//	one query        the refs that name its key say what is wanted
//
//	stand      some chunk is live, and not much is dead
//	gc-worthy  some chunk is live, and the dead bytes reach max(64 MiB, half)
//	reapable   every chunk is dead, or the object is no object and no ref names it
//	gone       no object stands under the key
//
// A chunk is live iff a ref that names the key overlaps it at or above the
// stream's effective live_from. The ref at the chunk's first seq alone would not
// do: after a commit that was truncated, or a trim into the middle, a half-live
// chunk has no ref there.
//
// A read that failed, came short or would not decode for want of bytes is an
// error and never a verdict. A fault in the refs themselves (unreadable, of an
// unknown kind) is a *RefsError: whoever deletes ends its whole pass on it.
//
// What this package does not do: change anything.
package probe
