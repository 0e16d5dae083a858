package httpapi

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// consumers are a shard's durable consumers in memory: shard 0, with the rows 1 to last.
type consumers struct {
	cursors map[string]segment.Seq
	last    segment.Seq
	local   segment.Seq // the first local row
}

func (c *consumers) served(shard segment.Shard) error {
	if shard != 0 {
		return &localtier.NotOwnerError{Shard: shard, Owner: "host:1"}
	}
	return nil
}

func (c *consumers) status(name string) localtier.ConsumerStatus {
	return localtier.ConsumerStatus{Name: name, Cursor: c.cursors[name], Lag: uint64(c.last - c.cursors[name])}
}

func (c *consumers) CreateConsumer(_ context.Context, shard segment.Shard, name string, after segment.Seq) (localtier.ConsumerStatus, error) {
	if err := c.served(shard); err != nil {
		return localtier.ConsumerStatus{}, err
	}
	if err := segment.CheckConsumer(name); err != nil {
		return localtier.ConsumerStatus{}, err
	}
	if _, ok := c.cursors[name]; !ok {
		if c.cursors == nil {
			c.cursors = map[string]segment.Seq{}
		}
		c.cursors[name] = min(after, c.last)
	}
	return c.status(name), nil
}

func (c *consumers) Ack(_ context.Context, shard segment.Shard, name string, seq segment.Seq) (localtier.ConsumerStatus, error) {
	if err := c.served(shard); err != nil {
		return localtier.ConsumerStatus{}, err
	}
	if _, ok := c.cursors[name]; !ok {
		return localtier.ConsumerStatus{}, fmt.Errorf("%w: %q", localtier.ErrNoConsumer, name)
	}
	if seq > c.last {
		return localtier.ConsumerStatus{}, fmt.Errorf("%w: seq %d", localtier.ErrInvalid, seq)
	}
	c.cursors[name] = max(c.cursors[name], seq)
	return c.status(name), nil
}

func (c *consumers) RemoveConsumer(_ context.Context, shard segment.Shard, name string) error {
	if err := c.served(shard); err != nil {
		return err
	}
	if _, ok := c.cursors[name]; !ok {
		return fmt.Errorf("%w: %q", localtier.ErrNoConsumer, name)
	}
	delete(c.cursors, name)
	return nil
}

func (c *consumers) Consumers(_ context.Context, shard segment.Shard) (out []localtier.ConsumerStatus, err error) {
	if err := c.served(shard); err != nil {
		return nil, err
	}
	for name := range c.cursors {
		out = append(out, c.status(name))
	}
	return out, nil
}

func (c *consumers) Pull(ctx context.Context, shard segment.Shard, name string, limit int) (out []localtier.ShardRow, err error) {
	st, err := c.CreateConsumer(ctx, shard, name, 0)
	if err != nil {
		return nil, err
	}
	if st.Cursor+1 < c.local {
		return nil, &localtier.NotLocalError{First: c.local}
	}
	for s := st.Cursor + 1; s <= c.last && len(out) < limit; s++ {
		out = append(out, localtier.ShardRow{Stream: "s", Row: segment.Row{Seq: s, Payload: fmt.Appendf(nil, "row %d", s)}})
	}
	return out, nil
}

func (c *consumers) Status() []localtier.ShardStatus {
	return []localtier.ShardStatus{{Chain: segment.Chain{Epoch: 1}, Term: 5}}
}
