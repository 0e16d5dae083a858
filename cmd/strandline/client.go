package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/strandline/strandline/internal/httpapi"
)

// client posts rows to a writer.
type client struct {
	base string
	ack  string
	http *http.Client
	log  io.Writer // is told why it waits
}

// Refusals that wrote nothing are tried again for a while; anything else is the
// caller's to decide, since the rows may be there.
const (
	refusedTries = 20
	maxPause     = 5 * time.Second
)

func newClient(server, ack string, log io.Writer) (*client, error) {
	u, err := url.Parse(server)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, usage("--server %q: give a URL like http://127.0.0.1:8420", server)
	}
	if ack != "" && ack != "local" && ack != "shared" {
		return nil, usage("--ack %q: give local or shared", ack)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = postsAtOnce
	return &client{base: strings.TrimSuffix(server, "/"), ack: ack, http: &http.Client{Transport: transport}, log: log}, nil
}

// append posts one batch: all of it is acknowledged, or an error says why not.
func (c *client) append(ctx context.Context, stream string, rows []byte) (httpapi.Appended, error) {
	target := c.base + "/v1/streams/" + escapeSegment(stream) + "/rows"
	if c.ack != "" {
		target += "?ack=" + c.ack
	}
	for try := 1; ; try++ {
		res, refused, err := c.post(ctx, target, rows)
		if refused == nil || err == nil || try == refusedTries {
			return res, err
		}
		if try == 1 {
			fmt.Fprintf(c.log, "strandline: append to %q is refused for now, trying again: %v\n", stream, err)
		}
		select {
		case <-time.After(min(*refused, maxPause)):
		case <-ctx.Done():
			return res, context.Cause(ctx)
		}
	}
}

// flush waits until all that the writer acknowledged is published and absorbed.
func (c *client) flush(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/flush", nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return &exitError{code: exitUnavailable, err: fmt.Errorf("flush: %w", err)}
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return &exitError{code: exitUnavailable, err: fmt.Errorf("flush: %w", err)}
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("flush: %w", problemError(resp.StatusCode, body))
	}
	return nil
}

// escapeSegment keeps a name within one path segment, dots included.
func escapeSegment(name string) string {
	return strings.ReplaceAll(url.PathEscape(name), ".", "%2E")
}

// post sends once. refused is set if the answer says that nothing was written and
// when to come back.
func (c *client) post(ctx context.Context, target string, rows []byte) (res httpapi.Appended, refused *time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(rows))
	if err != nil {
		return res, nil, err
	}
	req.Header.Set("Content-Type", "text/plain")
	resp, err := c.http.Do(req)
	if err != nil {
		return res, nil, &exitError{code: exitUnavailable, err: fmt.Errorf("%w; is strandline up running there?", err)}
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or given up
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return res, nil, &exitError{code: exitUnavailable, err: fmt.Errorf("the answer was cut; the rows may have been appended: %w", err)}
	}
	if resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(body, &res); err != nil {
			return res, nil, fmt.Errorf("the answer is no JSON; the rows may have been appended: %w", err)
		}
		return res, nil, nil
	}
	return res, pause(resp), problemError(resp.StatusCode, body)
}

// pause reads Retry-After of a 503: the server sends it only if nothing was written.
func pause(resp *http.Response) *time.Duration {
	if resp.StatusCode != http.StatusServiceUnavailable {
		return nil
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil {
		return nil
	}
	d := time.Duration(seconds) * time.Second
	return &d
}

// exitOfCode maps the stable problem codes to exit codes.
var exitOfCode = map[string]int{
	"invalid-name": exitUsage, "invalid-request": exitUsage, "not-owner": exitNotOwner,
	"fenced": exitFenced, "corrupt": exitDamage, "lost": exitDamage, "halted": exitDamage,
	"backpressure": exitUnavailable, "lease-lost": exitUnavailable, "closing": exitUnavailable, "busy": exitUnavailable,
	"poisoned": exitUnavailable, "catalog-unavailable": exitUnavailable, "store-unavailable": exitUnavailable,
}

func problemError(status int, body []byte) error {
	var p struct{ Code, Title, Detail, Owner string }
	if json.Unmarshal(body, &p) != nil || p.Code == "" {
		return fmt.Errorf("the server answered %d: %.200q", status, body)
	}
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	if p.Owner != "" {
		text += "; its owner is " + p.Owner
	}
	code, ok := exitOfCode[p.Code]
	if !ok {
		code = exitFailed
	}
	return &exitError{code: code, err: fmt.Errorf("%s (%s)", text, p.Code)}
}
