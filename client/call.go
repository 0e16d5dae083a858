package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// maxAnswer bounds an answer that is a document: 10,000 consumers, many times over.
const maxAnswer = 16 << 20

// call is one request, in as many attempts as it takes.
type call struct {
	op     string // for errors: append to "s"
	method string
	path   string
	query  url.Values
	header http.Header
	body   []byte
	plain  func() ([]byte, error) // the body as it is, if body is compressed; nil: it is not
	place  place
	// repeat: an attempt whose answer is lost may be made again.
	repeat bool
	// streams: the answer's body is read by the caller.
	streams bool
	told    bool // OnRetry was
}

// answer is one attempt's.
type answer struct {
	server string
	status int
	header http.Header
	body   []byte        // of a document, whole
	lines  io.ReadCloser // of a call that streams
	cut    context.CancelFunc
}

// close ends an answer that streams, for good.
func (a *answer) close() {
	if a.lines == nil {
		return
	}
	a.cut()
	_ = a.lines.Close() // it was read to its end, or given up
}

// into decodes a document.
func (a *answer) into(out any) error {
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(a.body, out); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrAnswer, a.server, err)
	}
	return nil
}

// attempt asks one server once. An error means that there is no whole answer.
func (c *Client) attempt(ctx context.Context, q *call, base string) (*answer, error) {
	req, err := c.request(ctx, q, base)
	if err != nil {
		return nil, err
	}
	ctx, cut := c.answerTime(ctx, q)
	resp, err := c.http.Do(req.WithContext(ctx))
	if err != nil {
		defer cut()
		return nil, attemptError(ctx, err)
	}
	c.reached.Store(true)
	a := &answer{server: base, status: resp.StatusCode, header: resp.Header}
	if q.streams && resp.StatusCode == http.StatusOK {
		a.lines, a.cut = resp.Body, cut
		return a, nil
	}
	defer cut()
	defer func() { _ = resp.Body.Close() }() // read to its end, or given up
	if a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1)); err != nil {
		return nil, attemptError(ctx, err)
	}
	if len(a.body) > maxAnswer {
		return nil, fmt.Errorf("%w: %s sent more than %d bytes", ErrAnswer, base, maxAnswer)
	}
	return a, nil
}

// answerTime is how long an attempt may take.
func (c *Client) answerTime(ctx context.Context, q *call) (context.Context, context.CancelFunc) {
	if q.repeat && !q.streams {
		return context.WithTimeoutCause(ctx, c.cfg.AnswerTime, errSlow)
	}
	return context.WithCancel(ctx)
}

// errSlow ends an attempt that took AnswerTime.
var errSlow = errors.New("no answer in time")

// errToken: the caller's Token failed; asking another server is no help.
var errToken = errors.New("token")

func (c *Client) request(ctx context.Context, q *call, base string) (*http.Request, error) {
	target := base + q.path
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, q.method, target, bytes.NewReader(q.body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errToken, err)
	}
	for name, v := range q.header {
		req.Header[name] = v
	}
	if c.cfg.Token == nil {
		return req, nil
	}
	token, err := c.cfg.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errToken, err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// lostError is an attempt without a whole answer. sent: it may have been carried out.
type lostError struct {
	sent bool
	err  error
}

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// attemptError tells an attempt that never left from one whose answer is lost.
func attemptError(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSlow) {
		err = fmt.Errorf("%w: %w", errSlow, err)
	}
	var held *notSentError
	if errors.As(err, &held) {
		return held.err
	}
	if refused := handshakeError(err); refused != nil {
		return &lostError{err: refused}
	}
	return &lostError{sent: !before(err), err: err}
}

// before says that err came before a byte of the request went out: there is no connection,
// or its handshake failed on this side.
func before(err error) bool {
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &cert) || errors.Is(err, http.ErrSchemeMismatch)
}

// segmentOf keeps a name within one path segment, dots included.
func segmentOf(name string) string {
	return strings.ReplaceAll(url.PathEscape(name), ".", "%2E")
}
