package objcache

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/strandline/strandline/internal/objcache/wire"
)

// problemBytes is the most that is read of an answer which is only logged.
const problemBytes = 4 << 10

// refusal is an instance's answer that it will not: it lives, and the store is asked.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the instance answered %d: %s", r.status, r.text)
}

// otherBucket: the instance serves another bucket than ours, and holds nothing of ours.
func otherBucket(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == http.StatusMisdirectedRequest
}

// notLetIn: the instance does not take our token, or misses one.
func notLetIn(err error) bool {
	var r *refusal
	return errors.As(err, &r) && (r.status == http.StatusUnauthorized || r.status == http.StatusForbidden)
}

// call is one request to an instance, under a watch that ends it if it stands still.
type call struct {
	*http.Response
	sent  bool // a connection was had: the instance may have acted
	watch *time.Timer
	idle  time.Duration
	end   context.CancelCauseFunc
}

// moved gives the instance as much time again.
func (c *call) moved() { c.watch.Reset(c.idle) }

func (c *call) close() {
	c.watch.Stop()
	if c.Response != nil {
		_ = c.Body.Close() // only read from
	}
	c.end(nil)
}

// do sends a request and waits for the head of a 200. The caller closes the call,
// whatever the error.
func (d *Driver) do(ctx context.Context, req *http.Request, idle time.Duration) (*call, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &call{idle: idle, end: cancel, watch: time.AfterFunc(idle, func() { cancel(errSlow) })}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { c.sent = true }})
	req.Header.Set(wire.HeaderBucket, *d.bucket.Load()) // of chose the instance by it
	if d.cfg.Token != nil {
		token, err := d.cfg.Token(ctx)
		if err != nil {
			return c, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	// Not through a Client: no redirects, no cookies.
	resp, err := d.transport.RoundTrip(req.WithContext(ctx)) //nolint:bodyclose // call.close does
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return c, err
	}
	c.Response = resp
	c.moved()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, problemBytes)) // as much of it as came
		return c, &refusal{resp.StatusCode, string(bytes.TrimSpace(text))}
	}
	return c, nil
}

// judge notes what the end of a call showed about the instance.
func (d *Driver) judge(ctx context.Context, in *instance, err error) {
	var r *refusal
	switch {
	case err == nil:
		d.well(in)
	case otherBucket(err), notLetIn(err):
		d.broken(in, err) // it will not learn better soon: leave it alone
	case errors.As(err, &r):
		d.well(in)
	case ctx.Err() != nil:
		in.abandoned() // the caller left
	default:
		d.broken(in, err)
	}
}

// post sends keys and decodes the answer into out.
func (d *Driver) post(ctx context.Context, in *instance, path string, keys []string, out any) (sent bool, err error) {
	body, err := json.Marshal(wire.Keys{Keys: keys})
	if err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, in.addr+path, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	c, err := d.do(ctx, req, d.cfg.DeleteTimeout)
	defer c.close()
	if err != nil {
		return c.sent, err
	}
	if err := json.NewDecoder(c.Body).Decode(out); err != nil {
		return true, fmt.Errorf("the instance's answer: %w", wire.NoEOF(err))
	}
	return true, nil
}
