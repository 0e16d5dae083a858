package faultproxy

import "io"

// Reset resets the client's connection and sends nothing upstream.
type Reset struct {
	// After is how many bytes of the request's body are taken first.
	After int64
}

func (f Reset) strike(x *exchange) {
	_, _ = io.CopyN(io.Discard, x.r.Body, f.After) // a shorter body is reset at its end
	x.sever()
}

// DropAnswer applies the request and resets the client's connection: the answer,
// whatever it was, is lost.
type DropAnswer struct{}

func (DropAnswer) strike(x *exchange) {
	if body, err := x.hold(); err == nil {
		_, _ = x.apply(body) // lost is lost
	}
	x.sever()
}

// Duplicate sends the request upstream twice, one after the other, as a proxy does
// that repeats what it takes for failed. The client gets the second answer.
type Duplicate struct {
	KeepFirst bool // the client gets the first answer
}

func (f Duplicate) strike(x *exchange) {
	body, err := x.hold()
	if err != nil {
		x.sever()
		return
	}
	first, err1 := x.apply(body)
	second, err2 := x.apply(body)
	switch {
	case f.KeepFirst && err1 == nil:
		x.answer(first)
	case !f.KeepFirst && err2 == nil:
		x.answer(second)
	default:
		x.sever()
	}
}
