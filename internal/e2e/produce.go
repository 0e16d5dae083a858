//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/internal/payload"
	"github.com/strandline/strandline/segment"
)

// rowsSent are the rows that producers append.
func rowsSent() payload.Sizes {
	return payload.Sizes{Fat: "fat-", Least: 2 << 10, Spread: 4 << 10}
}

// producer appends numbered rows to one stream, through the client package. It goes on when
// an append is acknowledged, so that the stream's order is known.
type producer struct {
	*run
	stream string
	shard  segment.Shard
	rng    *rand.Rand
	caller *client.Client
}

// produce appends until ctx ends. The last append is waited for, as long as last lives.
func (p *producer) produce(ctx, last context.Context) error {
	for n := uint64(0); ctx.Err() == nil; {
		rows := make([]segment.Row, 1+p.rng.IntN(8))
		for i := range rows {
			rows[i].Payload = rowsSent().Row(p.stream, n+uint64(i))
		}
		ack := client.AckLocal
		if p.rng.IntN(6) == 0 {
			ack = client.AckShared
		}
		got, err := p.caller.Append(last, p.stream, rows, client.AppendOptions{Ack: ack})
		if err != nil {
			return fmt.Errorf("append to %s (shard %d): %w", p.stream, p.shard, err)
		}
		if got.Rows != len(rows) || got.Last-got.First+1 != segment.Seq(len(rows)) || got.Stream != p.stream || got.Shard != p.shard {
			p.ledger.complain("append of %d rows to %s is answered %+v", len(rows), p.stream, got)
		}
		p.ledger.ack(p.stream, batch{n: n, rows: len(rows), seq: got.First, term: got.Term, shared: ack == client.AckShared})
		n += uint64(len(rows))
		child.Pause(ctx, time.Duration(60+p.rng.IntN(120))*time.Millisecond)
	}
	return nil
}

// names gives each shard so many streams; one in six has large rows.
func names(perShard int) map[segment.Shard][]string {
	out := map[segment.Shard][]string{}
	for full, n := 0, 0; full < shards; n++ {
		name := fmt.Sprintf("row-%d", n)
		if n%6 == 0 {
			name = fmt.Sprintf("%s%d", rowsSent().Fat, n)
		}
		s := segment.ShardOf(name, shards)
		if len(out[s]) == perShard {
			continue
		}
		if out[s] = append(out[s], name); len(out[s]) == perShard {
			full++
		}
	}
	return out
}

// waits counts why calls of clients had to wait, by what the server said.
type waits struct {
	mu  sync.Mutex
	why map[string]int
}

func (w *waits) note(_ string, err error) {
	why := "no answer"
	var p *client.Problem
	if errors.As(err, &p) {
		why = p.Code
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.why == nil {
		w.why = map[string]int{}
	}
	w.why[why]++
}

// take gives what was counted since the last time.
func (w *waits) take() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.why
	w.why = nil
	return out
}
