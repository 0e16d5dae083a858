//go:build unix

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/segment"
)

// consumer is a durable consumer of a shard: it pulls, and acknowledges what came.
type consumer struct {
	*run
	shard  segment.Shard
	caller *client.Client

	mu   sync.Mutex
	seen []row // in the order in which they came
}

const (
	consumerName = "projector"
	pullLimit    = 500
)

// consume pulls until ctx ends.
func (c *consumer) consume(ctx context.Context) error {
	for ctx.Err() == nil {
		if n, err := c.round(ctx); err != nil || n == 0 {
			child.Pause(ctx, 100*time.Millisecond)
		}
	}
	return nil
}

// round pulls once and acknowledges what came. An error is gone on from: what was not
// acknowledged comes again.
func (c *consumer) round(ctx context.Context) (rows int, err error) {
	var last client.Row
	for r, err := range c.caller.Pull(ctx, segment.Chain{Shard: c.shard}, consumerName, pullLimit) {
		if err != nil {
			return rows, err
		}
		if r.Seq <= last.Seq {
			c.ledger.complain("disorder: a pull of shard %d shows seq %d behind %d", c.shard, r.Seq, last.Seq)
		}
		last = r
		rows++
		c.note(r)
	}
	if rows == 0 {
		return 0, nil
	}
	got, err := c.caller.Ack(ctx, segment.Chain{Shard: c.shard}, consumerName, last.Position())
	if err == nil && got.Cursor < last.Seq {
		c.ledger.complain("I6: shard %d: seq %d is acknowledged, the cursor is %d", c.shard, last.Seq, got.Cursor)
	}
	return rows, err
}

func (c *consumer) note(r client.Row) {
	if strings.HasPrefix(r.Stream, "~") {
		return // an audit record
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, row{r.Stream, r.Seq, string(r.Payload)})
}

// saw says how far it came.
func (c *consumer) saw(stream string, seq segment.Seq) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.seen) - 1; i >= 0; i-- {
		if r := c.seen[i]; r.stream == stream && r.seq == seq {
			return true
		}
	}
	return false
}

// judgeConsumer holds what a consumer saw against all rows of its chain: each at least once;
// where the disk was never lost, exactly once and in order.
func judgeConsumer(shard segment.Shard, seen, chain []row, lost bool) (faults []string) {
	if !lost {
		return same(fmt.Sprintf("the consumer of shard %d", shard), "the shard", seen, chain)
	}
	met := make(map[row]bool, len(seen))
	for _, r := range seen {
		met[r] = true
	}
	for _, r := range chain {
		if !met[r] {
			faults = append(faults, fmt.Sprintf("loss: the consumer of shard %d never saw seq %d of %s", shard, r.seq, r.stream))
		}
	}
	return faults
}
