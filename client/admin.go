package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Status decodes GET /v1/status of a server into out: the whole deployment's.
func (c *Client) Status(ctx context.Context, out any) error {
	return c.get(ctx, "status", "/v1/status", nil, out)
}

// Shards decodes GET /v1/shards of a server into out: the shards that it serves itself.
func (c *Client) Shards(ctx context.Context, out any) error {
	return c.get(ctx, "list shards", "/v1/shards", nil, out)
}

// Question is what Explain asks: Key, or Stream and Pos (first, last, a seq, EPOCH.SEQ or a token).
type Question struct {
	Key, Stream, Pos string
	Read             bool // read the row's chunk, too
}

// Explain decodes into out why an object stands or is dead, or where a row lives.
func (c *Client) Explain(ctx context.Context, about Question, out any) error {
	q := url.Values{}
	for name, v := range map[string]string{"key": about.Key, "stream": about.Stream, "pos": about.Pos} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if about.Read {
		q.Set("read", "true")
	}
	return c.get(ctx, "explain", "/v1/explain", q, out)
}

func (c *Client) get(ctx context.Context, op, path string, query url.Values, out any) error {
	a, err := c.do(ctx, &call{op: op, method: http.MethodGet, path: path, query: query, place: anywhere, repeat: true})
	if err != nil {
		return err
	}
	if err := a.into(out); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// Flush returns when every row that servers acknowledged to this Client is in the bucket and
// absorbed; a Client without appends asks the first URL that answers. An error names the servers
// that could not say so: their rows may be on their disks only.
func (c *Client) Flush(ctx context.Context) error {
	servers := c.takers()
	if len(servers) == 0 {
		_, err := c.do(ctx, flushCall(anywhere))
		return err
	}
	var errs []error
	for _, s := range servers {
		// Only this very server can say so.
		one := &Client{cfg: c.cfg, urls: []string{s}, http: c.http, log: c.log, owners: map[place]string{}}
		one.reached.Store(true)
		if _, err := one.do(ctx, flushCall(anywhere)); err != nil {
			c.tookRows(s) // still owed
			errs = append(errs, fmt.Errorf("%s: %w", s, err))
		}
	}
	return errors.Join(errs...)
}

func flushCall(at place) *call {
	return &call{op: "flush", method: http.MethodPost, path: "/v1/flush", place: at, repeat: true}
}
