package s3wire

import (
	"context"
	"net"
)

// DialThrough makes every connection by dial instead of by the name that the client
// asks for. It is for tests of addresses that cannot be had here (a directory bucket's
// host name on loopback), and must be called before the first request.
func (t *Transport) DialThrough(dial func(ctx context.Context, network, addr string) (net.Conn, error)) {
	t.http.DialContext = dial
}
