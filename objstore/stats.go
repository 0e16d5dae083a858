package objstore

import "sync/atomic"

// Op names a driver call.
type Op string

// The driver calls, as they are counted and as faults are aimed at them.
const (
	OpPut          Op = "put"
	OpGet          Op = "get"
	OpHead         Op = "head"
	OpList         Op = "list"
	OpDelete       Op = "delete"
	OpCreateUpload Op = "create-upload"
	OpUploadPart   Op = "upload-part"
	OpCopyPart     Op = "copy-part"
	OpComplete     Op = "complete"
	OpAbort        Op = "abort"
	OpListUploads  Op = "list-uploads"
)

// Mutation says whether the call changes the bucket.
func (o Op) Mutation() bool {
	switch o {
	case OpGet, OpHead, OpList, OpListUploads:
		return false
	}
	return true
}

// Counters counts attempts, not calls of the Store: what the bill counts.
type Counters struct {
	Requests map[Op]int64
	Errors   map[Op]int64 // attempts that ended in an error, of any kind
	// BytesIn were read from the store, BytesOut sent in attempts that succeeded,
	// BytesCopied moved within it.
	BytesIn, BytesOut, BytesCopied int64
	// Throttled attempts were refused for the store's load, per-key refusals of a bulk
	// delete counted as one. Held attempts waited for the brake, or were not sent for it.
	Throttled, Held int64
}

// Sub is what happened between d and c.
func (c Counters) Sub(d Counters) Counters {
	out := Counters{
		Requests: make(map[Op]int64, len(c.Requests)), Errors: make(map[Op]int64, len(c.Errors)),
		BytesIn: c.BytesIn - d.BytesIn, BytesOut: c.BytesOut - d.BytesOut, BytesCopied: c.BytesCopied - d.BytesCopied,
		Throttled: c.Throttled - d.Throttled, Held: c.Held - d.Held,
	}
	for op, n := range c.Requests {
		out.Requests[op] = n - d.Requests[op]
	}
	for op, n := range c.Errors {
		out.Errors[op] = n - d.Errors[op]
	}
	return out
}

// PutLike sums the requests that stores bill as PUT: puts, the steps of
// multipart uploads, and lists.
func (c Counters) PutLike() int64 {
	var n int64
	for _, op := range []Op{OpPut, OpCreateUpload, OpUploadPart, OpCopyPart, OpComplete, OpList, OpListUploads} {
		n += c.Requests[op]
	}
	return n
}

// Total sums all requests.
func (c Counters) Total() int64 {
	var n int64
	for _, v := range c.Requests {
		n += v
	}
	return n
}

// Counters is a snapshot of the counts since New.
func (s *Store) Counters() Counters { return s.stats.snapshot() }

// stats is shared by all calls of a Store; every field is atomic.
type stats struct {
	put, get, head, list, del, create, part, copied, complete, abort, uploads tally

	bytesIn, bytesOut, bytesCopied atomic.Int64
	throttled, held, retries       atomic.Int64
}

// ops are all driver calls.
func ops() []Op {
	return []Op{
		OpPut, OpGet, OpHead, OpList, OpDelete, OpCreateUpload, OpUploadPart, OpCopyPart, OpComplete, OpAbort, OpListUploads,
	}
}

func (s *stats) of(op Op) *tally {
	switch op {
	case OpPut:
		return &s.put
	case OpGet:
		return &s.get
	case OpHead:
		return &s.head
	case OpList:
		return &s.list
	case OpDelete:
		return &s.del
	case OpCreateUpload:
		return &s.create
	case OpUploadPart:
		return &s.part
	case OpCopyPart:
		return &s.copied
	case OpComplete:
		return &s.complete
	case OpAbort:
		return &s.abort
	default:
		return &s.uploads
	}
}

func (s *stats) snapshot() Counters {
	c := Counters{
		Requests: map[Op]int64{}, Errors: map[Op]int64{},
		BytesIn: s.bytesIn.Load(), BytesOut: s.bytesOut.Load(), BytesCopied: s.bytesCopied.Load(),
		Throttled: s.throttled.Load(), Held: s.held.Load(),
	}
	for _, op := range ops() {
		t := s.of(op)
		c.Requests[op], c.Errors[op] = t.requests.Load(), t.errors.Load()
	}
	return c
}
