package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/strandline/strandline/segment"
)

// Consumer is a durable consumer of a chain.
type Consumer struct {
	Shard  segment.Shard `json:"shard"`
	Name   string        `json:"name"`
	Cursor segment.Seq   `json:"cursor"` // the last seq that it acknowledged; 0: none
	Lag    uint64        `json:"lag"`    // rows behind the cursor
}

// MadeConsumer is what CreateConsumer finds or makes.
type MadeConsumer struct {
	Consumer
	// Stood: it was there before, and is as it was.
	Stood bool `json:"stood,omitempty"`
	// Clamped: it begins elsewhere than asked: there are no rows yet up to the position, or those
	// behind it were given up.
	Clamped bool `json:"clamped,omitempty"`
}

func consumerPath(c segment.Chain, name string) string {
	return shardPath(c) + "/consumers/" + segmentOf(name)
}

func consumerCall(method, what string, chain segment.Chain, name string) *call {
	return &call{
		op:     fmt.Sprintf("%s consumer %q of shard %d", what, name, chain.Shard),
		method: method, path: consumerPath(chain, name), query: epochOf(chain), place: chainPlace(chain), repeat: true,
	}
}

// CreateConsumer makes a durable consumer of a chain (epoch 0: the open one) that begins behind a
// position, or at the oldest row if after is empty. One that stands stays as it is. It is durable
// on the owner's disk, and with the next slot in the bucket.
func (c *Client) CreateConsumer(ctx context.Context, chain segment.Chain, name, after string) (MadeConsumer, error) {
	q := consumerCall(http.MethodPut, "create", chain, name)
	if after != "" {
		q.query.Set("after", after)
	}
	return document[MadeConsumer](ctx, c, q)
}

// Consumer is one consumer with its cursor. ErrNoConsumer: there is none of this name.
func (c *Client) Consumer(ctx context.Context, chain segment.Chain, name string) (Consumer, error) {
	return document[Consumer](ctx, c, consumerCall(http.MethodGet, "look up", chain, name))
}

// Consumers are all of a chain.
func (c *Client) Consumers(ctx context.Context, chain segment.Chain) ([]Consumer, error) {
	return document[[]Consumer](ctx, c, &call{
		op: fmt.Sprintf("list consumers of shard %d", chain.Shard), method: http.MethodGet,
		path: shardPath(chain) + "/consumers", query: epochOf(chain), place: chainPlace(chain), repeat: true,
	})
}

// Ack moves a consumer's cursor to a seq, or to a position as Row.Position gives it: a token is
// refused with ErrForked if history went on without the row. The cursor never goes back. It is durable
// when Ack returns.
func (c *Client) Ack(ctx context.Context, chain segment.Chain, name, position string) (Consumer, error) {
	q := consumerCall(http.MethodPost, "acknowledge", chain, name)
	q.path += "/ack"
	in := map[string]any{"token": position}
	seq := position
	if epoch, tail, ok := strings.Cut(position, "."); ok && !strings.HasPrefix(position, "e") {
		if chain.Epoch != 0 && epoch != strconv.FormatUint(uint64(chain.Epoch), 10) {
			return Consumer{}, fmt.Errorf("%s: %w: position %s is of another epoch than %d", q.op, ErrConfig, position, chain.Epoch)
		}
		q.query.Set("epoch", epoch)
		seq = tail
	}
	if n, err := strconv.ParseUint(seq, 10, 64); err == nil {
		in = map[string]any{"seq": n}
	}
	var err error
	if q.body, err = json.Marshal(in); err != nil {
		return Consumer{}, fmt.Errorf("%s: %w", q.op, err)
	}
	q.header = http.Header{"Content-Type": {"application/json"}}
	return document[Consumer](ctx, c, q)
}

// RemoveConsumer removes a consumer and forgets its cursor; what only it held back may be given up
// by the next run of retention. It is sent once: ErrUnknown if the answer is lost.
func (c *Client) RemoveConsumer(ctx context.Context, chain segment.Chain, name string) error {
	q := consumerCall(http.MethodDelete, "remove", chain, name)
	q.repeat = false // by then another may have made one of the name
	_, err := c.do(ctx, q)
	return err
}

// Pull yields up to limit rows behind a consumer's cursor (0: 1,000), which stays where it is
// until Ack. A consumer that does not stand is made, at the oldest row. An answer that is cut is
// asked for again; each row comes once.
func (c *Client) Pull(ctx context.Context, chain segment.Chain, name string, limit int) iter.Seq2[Row, error] {
	q := consumerCall(http.MethodPost, "pull for", chain, name)
	q.path += "/pull"
	q.streams = true
	if limit < 0 {
		return failing(fmt.Errorf("%s: %w: limit %d", q.op, ErrConfig, limit))
	}
	if limit > 0 {
		q.query.Set("limit", strconv.Itoa(limit))
	}
	return func(yield func(Row, error) bool) {
		r := &reading{Client: c, q: *q, limit: limit, pulls: true, yield: yield}
		if err := r.run(ctx); err != nil && !r.over {
			yield(Row{}, err)
		}
	}
}

// document makes a call whose answer is one.
func document[T any](ctx context.Context, c *Client, q *call) (out T, err error) {
	if q.query == nil {
		q.query = url.Values{}
	}
	a, err := c.do(ctx, q)
	if err != nil {
		return out, err
	}
	if err := a.into(&out); err != nil {
		return out, fmt.Errorf("%s: %w", q.op, err)
	}
	return out, nil
}
