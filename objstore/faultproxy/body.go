package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
)

// CutBody ends the answer's body after some bytes, and the connection with it.
type CutBody struct {
	After int64
	// Chunked: the answer says no length. Otherwise it says the whole body's.
	Chunked bool
}

func (f CutBody) strike(x *exchange) {
	resp, err := x.send(x.r.Context(), x.r.Body)
	if err != nil {
		x.sever()
		return
	}
	if f.Chunked {
		resp.Header.Del("Content-Length")
	}
	x.head(resp.StatusCode, resp.Header)
	_, _ = io.CopyN(x.w, resp.Body, f.After) // a shorter body is cut at its end
	_ = resp.Body.Close()                    // what is left of it is not wanted
	x.cut()
}

// CutRequest sends the server the first bytes of the request's body under the whole
// length and then ends that connection, and the client's.
type CutRequest struct {
	After int64
}

var errCut = errors.New("cut by the fault")

func (f CutRequest) strike(x *exchange) {
	body, err := x.hold()
	if err == nil && len(body) > 0 {
		part := bytes.NewReader(body[:min(f.After, int64(len(body)-1))])
		resp, err := x.send(x.p.ctx, io.MultiReader(part, failing{errCut}))
		if err == nil {
			_ = resp.Body.Close() // the server refused before the cut
		}
	}
	x.sever()
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Spot finds the byte of a body to damage; -1: none.
type Spot func(body []byte) int

// Byte is the n-th, from 0, counted around the end of a shorter body.
func Byte(n int) Spot {
	return func(body []byte) int {
		if len(body) == 0 {
			return -1
		}
		return n % len(body)
	}
}

// EndOf is the last byte of a text's first occurrence.
func EndOf(text string) Spot {
	return func(body []byte) int {
		i := bytes.Index(body, []byte(text))
		if i < 0 {
			return -1
		}
		return i + len(text) - 1
	}
}

// FlipBody flips the lowest bit of one byte of the answer's body.
type FlipBody struct {
	At Spot
}

func (f FlipBody) strike(x *exchange) {
	held, err := x.hold()
	if err != nil {
		x.sever()
		return
	}
	answer, err := x.apply(held)
	if err != nil {
		x.sever()
		return
	}
	flip(answer.body, f.At)
	x.answer(answer)
}

// FlipRequest flips the lowest bit of one byte of the request's body.
type FlipRequest struct {
	At Spot
}

func (f FlipRequest) strike(x *exchange) {
	body, err := x.hold()
	if err != nil {
		x.sever()
		return
	}
	flip(body, f.At)
	resp, err := x.send(x.p.ctx, bytes.NewReader(body))
	if err != nil {
		x.sever()
		return
	}
	x.relay(resp)
}

func flip(body []byte, at Spot) {
	if i := at(body); i >= 0 {
		body[i] ^= 1
	}
}

// Trickle passes Bytes of the answer's body for each Tick. A closed Tick lets the rest
// through.
type Trickle struct {
	Bytes int64
	Tick  <-chan struct{}
}

func (f Trickle) strike(x *exchange) {
	resp, err := x.send(x.r.Context(), x.r.Body)
	if err != nil {
		x.sever()
		return
	}
	resp.Body = &trickling{ReadCloser: resp.Body, f: f, x: x}
	x.relay(resp)
}

// trickling reads a body by ticks and flushes what the tick before brought.
type trickling struct {
	io.ReadCloser
	f    Trickle
	x    *exchange
	left int64 // of this tick
}

func (t *trickling) Read(p []byte) (int, error) {
	if t.left == 0 {
		if err := http.NewResponseController(t.x.w).Flush(); err != nil {
			return 0, err
		}
		if !t.x.await(t.f.Tick) {
			return 0, context.Canceled
		}
		t.left = t.f.Bytes
	}
	n, err := t.ReadCloser.Read(p[:min(t.left, int64(len(p)))])
	t.left -= int64(n)
	return n, err
}
