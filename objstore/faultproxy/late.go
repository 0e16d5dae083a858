package faultproxy

import (
	"context"
	"fmt"
	"sync"
)

// ApplyLate takes the request, gives the client a reset, and sends the request
// upstream only at Release: after the client has tried again, given up, or lost to
// another. Use it by pointer.
type ApplyLate struct {
	// Silent: the client gets no reset and waits until its own deadline.
	Silent bool

	mu   sync.Mutex // held
	held []late
}

type late struct {
	x    *exchange
	body []byte
}

func (f *ApplyLate) strike(x *exchange) {
	if body, err := x.hold(); err == nil {
		f.mu.Lock()
		f.held = append(f.held, late{x, body})
		f.mu.Unlock()
		if f.Silent {
			x.await(nil)
		}
	}
	x.sever()
}

// Held is how many requests wait.
func (f *ApplyLate) Held() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.held)
}

// Landed is what became of a request that was held.
type Landed struct {
	Call   Call
	Status int // the server's, which nobody but the test hears
}

// Release sends all that is held, in the order it came, and says how each ended.
func (f *ApplyLate) Release() ([]Landed, error) {
	f.mu.Lock()
	held := f.held
	f.held = nil
	f.mu.Unlock()
	out := make([]Landed, len(held))
	for i, l := range held {
		answer, err := l.x.apply(l.body)
		if err != nil {
			return out[:i], fmt.Errorf("a late %s of %s: %w", l.x.call.Op, l.x.call.Key, err)
		}
		out[i] = Landed{Call: l.x.call, Status: answer.status}
	}
	return out, nil
}

// BlackHole takes requests and says nothing until Release, when those whose clients
// still wait go their way. Make it with NewBlackHole.
type BlackHole struct {
	applied  bool
	once     sync.Once
	released chan struct{}
	fell     chan struct{}
}

// NewBlackHole makes one. applied: the request is applied at once, and only its answer
// is held back.
func NewBlackHole(applied bool) *BlackHole {
	return &BlackHole{applied: applied, released: make(chan struct{}), fell: make(chan struct{}, maxFell)}
}

// maxFell is how many arrivals are told apart before Await is called.
const maxFell = 1024

// Await returns when one more request is in the hole (and was applied, if it is to be).
func (f *BlackHole) Await(ctx context.Context) error {
	select {
	case <-f.fell:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release lets everything through, also what comes later.
func (f *BlackHole) Release() { f.once.Do(func() { close(f.released) }) }

func (f *BlackHole) strike(x *exchange) {
	// With the body read, net/http watches the connection: a client that leaves ends
	// the request's context.
	body, err := x.hold()
	if err != nil {
		x.sever()
		return
	}
	var answer *taken
	if f.applied {
		answer, err = x.apply(body)
	}
	select {
	case f.fell <- struct{}{}:
	default:
	}
	if !x.await(f.released) {
		x.sever()
		return
	}
	if !f.applied {
		answer, err = x.apply(body)
	}
	if err != nil {
		x.sever()
		return
	}
	x.answer(answer)
}

// await waits for the gate; it is false if the client left or the proxy closed before.
func (x *exchange) await(gate <-chan struct{}) bool {
	select {
	case <-gate:
		return true
	case <-x.r.Context().Done():
	case <-x.p.ctx.Done():
	}
	return false
}
