//go:build unix

package e2e

import (
	"context"
	"fmt"
	"sync"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/segment"
)

// follower reads a stream as it grows.
type follower struct {
	who     string
	stream  string
	caller  *client.Client
	options client.ReadOptions

	mu   sync.Mutex
	seen []row
}

// follow reads until ctx ends; no other end is allowed.
func (f *follower) follow(ctx context.Context) error {
	f.options.Follow = true
	for r, err := range f.caller.Rows(ctx, f.stream, f.options) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s of %s ended: %w", f.who, f.stream, err)
		}
		f.mu.Lock()
		f.seen = append(f.seen, row{r.Stream, r.Seq, string(r.Payload)})
		f.mu.Unlock()
	}
	if ctx.Err() == nil {
		return fmt.Errorf("%s of %s ended without an error", f.who, f.stream)
	}
	return nil
}

// last is how far it came.
func (f *follower) last() segment.Seq {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.seen) == 0 {
		return 0
	}
	return f.seen[len(f.seen)-1].seq
}
