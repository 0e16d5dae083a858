package client

import "errors"

// The kinds of errors that a server's problem stands for; use errors.Is. A *Problem whose code is
// of none of them is told by its Code.
var (
	// ErrNotOwner: another server owns the shard, and none could be found that serves it.
	ErrNotOwner = errors.New("not the owner")
	// ErrTrimmed: the rows asked for were given up; Problem.From is where to go on.
	ErrTrimmed = errors.New("trimmed")
	// ErrDeleted: the stream was deleted, and nothing was appended to it again; Problem.From is
	// where that would stand.
	ErrDeleted = errors.New("stream deleted")
	// ErrForked: history went on without the position asked for; Problem.Forked is the first
	// seq that is other than the reader knew it.
	ErrForked = errors.New("history forked")
	// ErrChainEnded: a follow of a closed epoch's chain has given all of it; go on in the next epoch.
	ErrChainEnded = errors.New("chain ended")
	// ErrNoStream: no row of the stream is known.
	ErrNoStream = errors.New("no such stream")
	// ErrNoConsumer: no consumer of this name.
	ErrNoConsumer = errors.New("no such consumer")
	// ErrSequence: not the producer's next sequence, which is Problem.Expect.
	ErrSequence = errors.New("out of sequence")
	// ErrKeyReused: other rows came under this Idempotency-Key before.
	ErrKeyReused = errors.New("idempotency key reused")
	// ErrInvalid: the server refuses the request as it is.
	ErrInvalid = errors.New("invalid request")
	// ErrTooLarge: more than one request may hold; send it in several.
	ErrTooLarge = errors.New("too large")
	// ErrBeyondTip: a trim to above the stream's last row.
	ErrBeyondTip = errors.New("beyond the tip")
	// ErrUnauthenticated: no token, or one that the server does not know.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrForbidden: the token has not the scope for this.
	ErrForbidden = errors.New("forbidden")
	// ErrFenced: the server lost the shard to another.
	ErrFenced = errors.New("fenced")
	// ErrDamage: rows that must be there are lost or corrupt. Run fsck; where an operator accepted
	// the loss, Problem.From is where to go on.
	ErrDamage = errors.New("rows are lost or corrupt")
	// ErrUnavailable: a fault that may pass: any 503, 429, and 507, which is a writer without room
	// on its disk (code disk-full).
	ErrUnavailable = errors.New("unavailable")
	// ErrPartial: of an append without key and producer the first Problem.Durable.Rows rows are
	// durable, and the others were refused for want of room. It is not repeated: append the others.
	ErrPartial = errors.New("a part of the append was taken")
)

// What the client finds itself.
var (
	// ErrUnreachable: no server answered.
	ErrUnreachable = errors.New("no server answers")
	// ErrUnknown: it was sent and may have been carried out, but no answer says so.
	ErrUnknown = errors.New("outcome unknown")
	// ErrCut: an answer ended before it was whole, again and again without a new row.
	ErrCut = errors.New("the answer was cut")
	// ErrOrder: a server sent a row that was delivered before, or belongs before one that was.
	ErrOrder = errors.New("row out of order")
	// ErrAnswer: an answer that is not what the routes give; is the URL a Strandline server's?
	ErrAnswer = errors.New("answer not understood")
	// ErrConfig: a Config or an argument that cannot work.
	ErrConfig = errors.New("invalid configuration")
	// ErrClosed: the Batcher was closed.
	ErrClosed = errors.New("batcher closed")
)

// NotSent marks an error of a RoundTripper of the caller's that refuses to send a request: it is
// returned at once, and nothing was carried out.
func NotSent(err error) error { return &notSentError{err} }

type notSentError struct{ err error }

func (e *notSentError) Error() string { return e.err.Error() }
func (e *notSentError) Unwrap() error { return e.err }

// kinds are the stable codes of the routes.
var kinds = map[string]error{
	"not-owner": ErrNotOwner, "trimmed": ErrTrimmed, "deleted": ErrDeleted, "forked": ErrForked, "chain-ended": ErrChainEnded,
	"no-such-stream": ErrNoStream, "no-such-consumer": ErrNoConsumer, "sequence": ErrSequence,
	"idempotency-key-reused": ErrKeyReused, "invalid-request": ErrInvalid, "invalid-name": ErrInvalid,
	"too-large": ErrTooLarge, "beyond-tip": ErrBeyondTip, "unauthenticated": ErrUnauthenticated,
	"forbidden": ErrForbidden, "fenced": ErrFenced, "lost": ErrDamage, "corrupt": ErrDamage,
}
