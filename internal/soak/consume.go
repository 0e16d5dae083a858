//go:build unix

package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/segment"
)

// consumerLog is what is known of a durable consumer.
type consumerLog struct {
	shard segment.Shard
	asked segment.Seq // the highest acknowledgement that was sent
	acked segment.Seq // the highest that was answered
	era   int         // how many losses the shard had then
	// held: its making is absorbed. Until then it is known on its owner's disk only, and a
	// taker's retention does not wait for it.
	held bool
}

// consumer pulls a shard's rows and acknowledges them.
type consumer struct {
	*run
	name string
	log  *consumerLog
	rng  *rand.Rand
	who  caller
}

func consumerPath(s segment.Shard, name string) string {
	return fmt.Sprintf("/v1/shards/%d/consumers/%s", s, name)
}

// createConsumer makes one and enters it: from then on it holds back what goes.
func (r *run) createConsumer(ctx context.Context, s segment.Shard, name string) error {
	who := caller{http: newClient(), shard: s}
	defer who.http.CloseIdleConnections()
	var got httpapi.MadeConsumer
	err := child.Poll(ctx, startTimeout, "create a consumer", func() (bool, error) {
		err := r.fleet.ask(ctx, who, http.MethodPut, consumerPath(s, name), "", &got)
		return err == nil, err
	})
	if err != nil {
		return err
	}
	l := r.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.consumers[fmt.Sprint(s, "/", name)] = &consumerLog{shard: s, asked: got.Cursor, acked: got.Cursor, era: len(l.losses[s])}
	return nil
}

func (r *run) newConsumer(actor uint64, s segment.Shard, name string) *consumer {
	l := r.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	return &consumer{
		run: r, name: name, log: l.consumers[fmt.Sprint(s, "/", name)], rng: r.rng(actor),
		who: caller{http: newClient(), shard: s},
	}
}

func (c *consumer) consume(ctx context.Context) error {
	defer c.who.http.CloseIdleConnections()
	longest := 600 * time.Millisecond
	if strings.HasPrefix(c.name, "slow") {
		longest = 3 * time.Second
	}
	for child.Pause(ctx, time.Duration(c.rng.Int64N(int64(longest)))) {
		if _, err := c.round(ctx, c.rng.IntN(6) == 0); err != nil && ctx.Err() == nil {
			var p *problem
			if errors.As(err, &p) && !p.passing() {
				c.complain("consumer %s of shard %d: %v", c.name, c.log.shard, err)
			}
		}
	}
	return nil
}

// round pulls once and acknowledges what came, or forgets to: then the same comes again.
func (c *consumer) round(ctx context.Context, forget bool) (rows int, err error) {
	base := c.fleet.route(c.who.shard)
	era := c.ledger.era(c.log.shard)
	demands := c.ledger.pullDemands(c.log.shard)
	ctx2, cancel := context.WithTimeout(ctx, callTimeout)
	text, err := fetch(ctx2, c.who.http, http.MethodPost, base+consumerPath(c.log.shard, c.name)+"/pull?limit=400", "")
	cancel()
	c.fleet.learn(c.who.shard, base, err)
	if err != nil {
		return 0, err
	}
	pulled, err := decodeLines(bytes.NewReader(text))
	if err != nil || len(pulled) == 0 {
		return 0, err
	}
	if era < 0 || era != c.ledger.era(c.log.shard) {
		// Perhaps an owner that has not heard of its taker: it shows rows of its own, which are
		// of no history, where the taker's stand. Their token tells them apart.
		demands = nil
	}
	c.compare(pulled, demands)
	if forget {
		return len(pulled), nil
	}
	return len(pulled), c.ack(ctx, pulled[len(pulled)-1])
}

// decodeLines reads NDJSON; a last line that is an error is that error.
func decodeLines(r io.Reader) (out []httpapi.Line, err error) {
	d := json.NewDecoder(r)
	for {
		var line struct {
			httpapi.Line
			Error *problem `json:"error"`
		}
		err := d.Decode(&line)
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return out, err
		case line.Error != nil:
			return out, line.Error
		}
		out = append(out, line.Line)
	}
}

func textOf(l httpapi.Line) string {
	if l.Payload != nil {
		return *l.Payload
	}
	return string(l.Base64)
}

// compare holds what was pulled against the ledger: in order, nothing between left out, and never
// again what was acknowledged, unless a taker began with an older cursor.
func (c *consumer) compare(pulled []httpapi.Line, demands map[string]demand) {
	seen := map[string][]sighting{}
	last := segment.Seq(0)
	for _, row := range pulled {
		if row.Seq <= last {
			c.complain("disorder: consumer %s of shard %d pulled seq %d after %d", c.name, c.log.shard, row.Seq, last)
			return
		}
		last = row.Seq
		if strings.HasPrefix(row.Stream, "~") {
			continue
		}
		if n, ok := c.ledger.saw("a pull", row.Stream, row.Seq, textOf(row)); ok {
			seen[row.Stream] = append(seen[row.Stream], sighting{row.Seq, n})
		}
	}
	if c.ledger.wentBack(c.log, pulled[0].Seq) {
		c.complain("I6: consumer %s of shard %d acknowledged seq %d and pulled %d after it", c.name, c.log.shard, c.log.acked, pulled[0].Seq)
	}
	begins := min(pulled[0].Seq, c.ledger.askedBy(c.log)+1) // what lies between was skipped
	for stream, d := range demands {
		d.from = begins
		d.met("a pull of "+c.name, seen[stream], last)
	}
}

func (c *consumer) ack(ctx context.Context, last httpapi.Line) error {
	c.ledger.acking(c.log, last.Seq)
	era := c.ledger.era(c.log.shard)
	var got httpapi.ConsumerOut
	body := fmt.Sprintf(`{"token":%q}`, last.Token)
	if err := c.fleet.ask(ctx, c.who, http.MethodPost, consumerPath(c.log.shard, c.name)+"/ack", body, &got); err != nil {
		return err
	}
	if got.Cursor < last.Seq {
		c.complain("I6: consumer %s of shard %d acknowledged seq %d, its cursor is %d", c.name, c.log.shard, last.Seq, got.Cursor)
	}
	c.ledger.ackedTo(c.log, last.Seq, era)
	return nil
}
