package faultproxy

import (
	"net"
	"net/http"
)

// sever resets the client's connection: what was not delivered yet is lost, and the
// client sees "connection reset by peer".
func (x *exchange) sever() { x.end(true) }

// cut ends the client's connection after what was written: the client sees the body
// end early.
func (x *exchange) cut() {
	// An error means that the client is gone; then there is nothing to deliver.
	_ = http.NewResponseController(x.w).Flush()
	x.end(false)
}

func (x *exchange) end(reset bool) {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // net/http's own way to drop a connection
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0) // fails only on a connection that is closed already
	}
	_ = conn.Close() // an error means that it is closed already
}
