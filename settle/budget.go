package settle

import (
	"context"
	"time"
)

// Budget keeps a deployment's movers within its bounds. What a mover reads counts when
// it is asked for, what it sends when it is handed to the output.
type Budget interface {
	// Spend waits until so many bytes through this process and so many requests more
	// are within the budget. Only the end of ctx is an error.
	Spend(ctx context.Context, bytes int64, requests int) error
}

// Pacer is a Budget that says how large a batch it lets through within a time; 0: no
// bound.
type Pacer interface {
	BytesWithin(d time.Duration) int64
}

// spend waits for the budget, if there is one.
func spend(ctx context.Context, b Budget, bytes int64, requests int) error {
	if b == nil || bytes == 0 && requests == 0 {
		return nil
	}
	return b.Spend(ctx, bytes, requests)
}

// bound is the size of a batch that is done within a job's deadline: a short orphan
// grace or a small budget makes small batches, not jobs that give up.
func (s *Settler) bound(deadline time.Duration) int64 {
	n := min(s.cfg.BatchMax, max(1, int64(deadline.Seconds()*batchRate)))
	if p, ok := s.Budget.(Pacer); ok {
		if within := p.BytesWithin(deadline); within > 0 {
			n = min(n, within)
		}
	}
	return n
}
