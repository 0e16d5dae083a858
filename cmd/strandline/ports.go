package main

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// port is an address that a process will listen on, and the flag that said so.
type port struct{ flag, address string }

// ports of a process that owns shards.
func (o *ownerFlags) ports() []port {
	return []port{{"--http", o.listen.http}, {"--otlp-grpc", o.otlp.grpc}}
}

// free says whether nobody listens on any of the ports: asked before a process founds,
// opens or takes anything. All are held at once, for a moment only: a listener that stands
// would let callers in before recovery is over, so the real one is opened then, and meets
// whoever came in between.
func free(ctx context.Context, ports ...port) (err error) {
	var lc net.ListenConfig
	for _, p := range ports {
		if p.address == "" {
			continue
		}
		held, lerr := lc.Listen(ctx, "tcp", p.address)
		if lerr != nil {
			return fmt.Errorf("%s %s: %w; nothing was opened or made: stop who listens there, or give another %s", p.flag, p.address, lerr, p.flag)
		}
		defer func() { err = errors.Join(err, held.Close()) }()
	}
	return nil
}
