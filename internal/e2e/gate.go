//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// gateState is what a Gate does with what comes.
type gateState int

const (
	gateOpen gateState = iota
	gateSilent
	gateRefusing
)

// Gate is a TCP proxy before a server. Silence has what is sent vanish, as a network that
// was cut does; Refuse resets connections, as a server that is down. It is safe for
// concurrent use.
type Gate struct {
	upstream string
	listener net.Listener
	wait     sync.WaitGroup

	mu      sync.Mutex // all below
	state   gateState
	changed chan struct{} // closed when the state changes
	conns   map[*net.TCPConn]struct{}
	closed  bool
	hits    map[gateState]int
}

// OpenGate listens on a free port of 127.0.0.1 until Close.
func OpenGate(upstream string) (*Gate, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for a proxy's clients: %w", err)
	}
	g := &Gate{
		upstream: upstream, listener: l, changed: make(chan struct{}),
		conns: map[*net.TCPConn]struct{}{}, hits: map[gateState]int{},
	}
	g.wait.Go(g.accept)
	return g, nil
}

// Address is where clients connect to.
func (g *Gate) Address() string { return g.listener.Addr().String() }

// Silence delivers nothing any more, either way, and takes new connections without an answer.
func (g *Gate) Silence() { g.become(gateSilent) }

// Refuse resets all connections, those that were silent, too, and the new ones.
func (g *Gate) Refuse() { g.become(gateRefusing) }

// Open serves again. What was sent meanwhile is lost with its connection.
func (g *Gate) Open() { g.become(gateOpen) }

// Hits says how often what a client sent, a connection or bytes of it, met silence, and
// how often a reset.
func (g *Gate) Hits() (silent, refused int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hits[gateSilent], g.hits[gateRefusing]
}

func (g *Gate) become(s gateState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state = s
	close(g.changed)
	g.changed = make(chan struct{})
	if s == gateRefusing {
		for c := range g.conns {
			reset(c)
		}
	}
}

// Close ends all connections and waits until nothing of the proxy runs.
func (g *Gate) Close() error {
	err := g.listener.Close()
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.become(gateRefusing)
	g.wait.Wait()
	return err
}

func (g *Gate) accept() {
	for {
		c, err := g.listener.Accept()
		if err != nil {
			return // Close; nothing else ends a listener
		}
		g.wait.Go(func() { g.serve(c.(*net.TCPConn)) })
	}
}

// serve carries one connection. Its two ends are closed together.
func (g *Gate) serve(client *net.TCPConn) {
	if !g.enter(client) {
		reset(client)
		return
	}
	defer g.leave(client)
	if !g.pass(true) {
		reset(client)
		return
	}
	up, err := net.Dial("tcp", g.upstream)
	if err != nil {
		reset(client)
		return
	}
	server := up.(*net.TCPConn)
	if !g.enter(server) {
		reset(client)
		reset(server)
		return
	}
	defer g.leave(server)
	g.wait.Go(func() { g.carry(client, server, false) })
	g.carry(server, client, true)
}

// enter makes a connection one of those that Refuse and Close end.
func (g *Gate) enter(c *net.TCPConn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == gateRefusing || g.closed {
		g.hits[gateRefusing]++
		return false
	}
	g.conns[c] = struct{}{}
	return true
}

func (g *Gate) leave(c *net.TCPConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
}

// carry copies one direction until either end closes.
func (g *Gate) carry(to, from *net.TCPConn, fromClient bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if !g.pass(fromClient && n > 0) {
			break
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				break
			}
		}
		if errors.Is(err, io.EOF) { // an orderly end: what was sent before it arrives
			_ = to.Close()   // an error means that it is closed already
			_ = from.Close() // likewise
			return
		}
		if err != nil {
			break
		}
	}
	reset(to)
	reset(from)
}

// pass says whether something may go on, an end of a connection, too. In a silence it waits
// until that is over, and says no: it is lost, and the connection with it. counts: a client's
// bytes, which the fault is for.
func (g *Gate) pass(counts bool) bool {
	silent := false
	for {
		g.mu.Lock()
		state, changed := g.state, g.changed
		if counts && state != gateOpen && (state != gateSilent || !silent) {
			g.hits[state]++
		}
		g.mu.Unlock()
		switch state {
		case gateRefusing:
			return false
		case gateOpen:
			return !silent
		case gateSilent:
		}
		silent = true
		<-changed
	}
}

// reset ends a connection so that its other end sees that something went wrong.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0) // fails only on a connection that is closed already
	_ = c.Close()      // likewise
}
