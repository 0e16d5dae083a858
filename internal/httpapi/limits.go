package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Limits of a request. Each bounds memory or time that a client can take.
const (
	// MaxBodyBytes holds one append call, unpacked; larger batches go in several.
	MaxBodyBytes = 32 << 20
	// MaxBodiesBytes of all appends under way in a process: their bodies, with what unpacking and
	// splitting them takes, and their frames until they are written. As many small ones as there
	// may be requests, but no more than three of the largest. The heap may be twice
	// as large before it is collected.
	MaxBodiesBytes = 256 << 20
	// MaxRows of one append call: an empty row takes no byte of a body, but 64 in memory.
	MaxRows = 1 << 18
	// MaxRequests under way at once, reads and followers apart; more are told to come back.
	MaxRequests = 512
	// MaxReads under way at once. Each may hold what its reader fetches ahead.
	MaxReads = 128
	// MaxFollowers at once: they stay, so they have places of their own and take none from
	// those who append.
	MaxFollowers = 256
	// maxCatchUps is how many followers read from the bucket at once; the others wait.
	maxCatchUps = 8

	maxHeaderBytes    = 64 << 10
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	// bodyGrace and bodyRate: a body has to come at this rate after a while. One that
	// trickles holds a place, and memory, that others wait for.
	bodyGrace = 10 * time.Second
	bodyRate  = 256 << 10 // bytes a second
	// unaryTime is what an answer that is one document may take. An append whose
	// time ran out may still become durable, as any that ends in an error.
	unaryTime = 2 * time.Minute
	// writeTime is what a client may take to take what it was sent.
	writeTime = 30 * time.Second
)

// places are the requests that may be under way, by what they do to a process.
type places struct {
	unary, reads, follows, catchUps, lingers chan struct{}
}

func newPlaces() places {
	return places{
		unary: make(chan struct{}, MaxRequests), reads: make(chan struct{}, MaxReads), follows: make(chan struct{}, MaxFollowers),
		catchUps: make(chan struct{}, maxCatchUps), lingers: make(chan struct{}, MaxRequests),
	}
}

// take takes a place for as long as f runs; false: there is none.
func take(places chan struct{}, f func()) bool {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		f()
		return true
	default:
		return false
	}
}

// unary bounds those under way, and their time.
func (s *server) unary(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !take(s.places.unary, func() {
			ctx, cancel := context.WithTimeout(r.Context(), unaryTime)
			defer cancel()
			writeWithin(w, unaryTime+writeTime)
			next(w, r.WithContext(ctx))
		}) {
			busy(w)
		}
	})
}

// reading bounds those under way; their time is the client's, as long as it takes rows.
func (s *server) reading(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !take(s.places.reads, func() { next(w, r) }) {
			busy(w)
		}
	})
}

func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	writeProblem(w, problem{Status: http.StatusServiceUnavailable, Code: "busy", Title: "too many requests under way"})
}

// writeWithin bounds the writes of an answer from now on. What cannot be bounded is a
// test's recorder. The bound of a request before on the same connection is overwritten.
func writeWithin(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d)) // best effort, by its nature
}

// paced makes every body come at bodyRate at least, and lets its sender come to an answer
// that did not wait for all of it.
func (s *server) paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		// Also of a handler that never reads: what the server throws away then is bounded.
		b := &pacedBody{
			ReadCloser: r.Body, control: http.NewResponseController(w), began: time.Now(),
			length: r.ContentLength, unasked: r.Header.Get("Expect") != "",
		}
		b.until(b.began.Add(bodyGrace))
		// The server's own request keeps its body: by its kind it knows what was asked for.
		r = r.WithContext(r.Context())
		r.Body = b
		next.ServeHTTP(w, r)
		b.linger(s.places.lingers)
	})
}

// pacedBody is a body with a deadline that moves with what came.
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	began   time.Time
	n       int64
	length  int64     // as announced; -1: not
	end     time.Time // of linger; zero before it
	over    bool      // a read ended in an error, or in the end
	unasked bool      // the client waits for 100 Continue, which the first read sends
}

// errBodyTime: the body came too slowly.
var errBodyTime = errors.New("the body came too slowly")

func (b *pacedBody) until(t time.Time) { _ = b.control.SetReadDeadline(t) } // a test's recorder has none

func (b *pacedBody) Read(p []byte) (int, error) {
	by := b.began.Add(bodyGrace + time.Duration(b.n)*time.Second/bodyRate)
	if !b.end.IsZero() && b.end.Before(by) {
		by = b.end
	}
	b.until(by)
	b.unasked = false
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	b.over = b.over || err != nil
	var late interface{ Timeout() bool }
	switch {
	case errors.As(err, &late) && late.Timeout():
		return n, fmt.Errorf("%w: %d bytes in %v; send at least %d a second: %w", errBodyTime, b.n, time.Since(b.began).Round(time.Second), bodyRate, err)
	case err != nil:
		// The server reads on to notice a client that goes away, and that has no deadline:
		// HTTP/1 clears it itself before it does.
		b.until(time.Time{})
	}
	return n, err
}
