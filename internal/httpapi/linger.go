package httpapi

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Bounds of what is read of a body behind an answer that did not wait for its end.
const (
	// lingerBytes holds the rest of whatever body would have been taken.
	lingerBytes = MaxBodyBytes
	// lingerTime is what a sender has to come to its answer: by then it has read it, unless
	// it reads nothing before it has sent everything, and sends slowly.
	lingerTime = 10 * time.Second
)

// linger sends the answer on its way and throws the rest of the body away, within bounds. A
// connection that is closed on bytes nobody read is reset, and a sender that is still
// writing finds the reset where its 503 should be.
func (b *pacedBody) linger(places chan struct{}) {
	if b.over || b.left() == 0 || b.unasked {
		return // nothing comes: of what was never asked for (Expect), neither
	}
	cut := false
	take(places, func() { // without a place it is cut by net/http: whoever floods had many answers
		// Else net/http reads 256 KiB itself before it writes a header, then closes.
		if b.control.EnableFullDuplex() != nil || b.control.Flush() != nil {
			return // a test's recorder; or nobody listens any more
		}
		b.end = time.Now().Add(lingerTime)
		_, err := io.CopyN(io.Discard, b, min(b.left(), lingerBytes))
		switch {
		case errors.Is(err, io.EOF): // chunks say themselves where they end
		case errors.Is(err, http.ErrBodyReadAfterClose): // net/http read it before it wrote a header, or closes
		default:
			cut = err != nil || b.left() > 0
		}
	})
	if cut {
		// The connection ends here, so that nothing of the body is taken for the next request:
		// net/http decides that by what it read itself.
		panic(http.ErrAbortHandler)
	}
}

// left is what is still to come of the body; more than lingerBytes if that is not known.
func (b *pacedBody) left() int64 {
	switch {
	case b.length >= 0:
		return b.length - b.n
	case b.over:
		return 0
	}
	return lingerBytes + 1
}

// Close leaves the body to linger; net/http closes it after the handler.
func (b *pacedBody) Close() error { return nil }
