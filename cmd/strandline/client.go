package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/localtier"
)

// client talks to a writer over HTTP.
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
	maxAnswer    = 16 << 20 // a shard's 10,000 consumers, many times over
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

// batch is one append call.
type batch struct {
	stream   string
	kind     string // content type; empty: text/plain
	rows     []byte
	producer localtier.Producer
}

// append posts one batch: all of it is acknowledged, or an error says why not.
func (c *client) append(ctx context.Context, b batch) (httpapi.Appended, error) {
	q := url.Values{}
	if c.ack != "" {
		q.Set("ack", c.ack)
	}
	if b.producer.ID != "" {
		q.Set("producer", b.producer.ID)
		q.Set("sequence", strconv.FormatUint(b.producer.Sequence, 10))
	}
	target := c.base + "/v1/streams/" + escapeSegment(b.stream) + "/rows?" + q.Encode()
	for try := 1; ; try++ {
		res, refused, err := c.post(ctx, target, b)
		if refused == nil || err == nil || try == refusedTries {
			return res, err
		}
		if try == 1 {
			fmt.Fprintf(c.log, "strandline: append to %q is refused for now, trying again: %v\n", b.stream, err)
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
	if err := c.call(ctx, request{method: http.MethodPost, path: "/v1/flush"}, nil); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// request is one call whose answer is a document.
type request struct {
	method, path string
	query        url.Values
	body         string
}

// call sends a request and decodes its answer into out (nil: it is dropped).
func (c *client) call(ctx context.Context, r request, out any) error {
	resp, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return &exitError{code: exitUnavailable, err: fmt.Errorf("the answer was cut: %w", err)}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("the answer of %s is no JSON: %w", c.base, err)
	}
	return nil
}

// open sends a request and returns an answer that is no refusal, its body unread.
func (c *client) open(ctx context.Context, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path+"?"+r.query.Encode(), strings.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, &exitError{code: exitUnavailable, err: fmt.Errorf("%w; is strandline up or writer running there?", err)}
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }() // it is a refusal already
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, &exitError{code: exitUnavailable, err: fmt.Errorf("the answer was cut: %w", err)}
	}
	return nil, problemError(resp.StatusCode, body)
}

// escapeSegment keeps a name within one path segment, dots included.
func escapeSegment(name string) string {
	return strings.ReplaceAll(url.PathEscape(name), ".", "%2E")
}

// post sends once. refused is set if the answer says that nothing was written and
// when to come back.
func (c *client) post(ctx context.Context, target string, b batch) (res httpapi.Appended, refused *time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(b.rows))
	if err != nil {
		return res, nil, err
	}
	kind := b.kind
	if kind == "" {
		kind = "text/plain"
	}
	req.Header.Set("Content-Type", kind)
	resp, err := c.http.Do(req)
	if err != nil {
		return res, nil, &exitError{code: exitUnavailable, err: noAnswer(err)}
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or given up
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
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

// noAnswer tells an append that never left from one whose answer is lost.
func noAnswer(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return fmt.Errorf("%w; is strandline up running there?", err)
	}
	return fmt.Errorf("no answer: %w; the rows may have been appended: look with cat, or say it again with the same --producer and --sequence", err)
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
	"epoch-over": exitUnavailable,
}

// problemOf is a refusal as it was sent.
type problemOf struct {
	Code, Title, Detail, Owner string
	Expect                     *uint64
}

func (p *problemOf) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	if p.Owner != "" && !strings.Contains(text, p.Owner) {
		text += "; its owner is " + p.Owner
	}
	return fmt.Sprintf("%s (%s)", text, p.Code)
}

func problemError(status int, body []byte) error {
	p := &problemOf{}
	if json.Unmarshal(body, p) != nil || p.Code == "" {
		return fmt.Errorf("the server answered %d: %.200q", status, body)
	}
	code, ok := exitOfCode[p.Code]
	if !ok {
		code = exitFailed
	}
	return &exitError{code: code, err: p}
}

// asSequence gives a producer's refusal the type that localtier's callers know.
func asSequence(err error, p localtier.Producer) error {
	var said *problemOf
	if errors.As(err, &said) && said.Code == "sequence" && said.Expect != nil {
		return errors.Join(&localtier.SequenceError{Producer: p.ID, Sequence: p.Sequence, Expect: *said.Expect}, err)
	}
	return err
}
