package faultproxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
)

// maxHeld bounds a body that a fault keeps in memory.
const maxHeld = 256 << 20

// exchange is one request of a client, used by the goroutine that handles it.
type exchange struct {
	p    *Proxy
	w    http.ResponseWriter
	r    *http.Request
	call Call
}

// pass forwards the request and its answer as they come.
func (x *exchange) pass() {
	resp, err := x.send(x.r.Context(), x.r.Body)
	if err != nil {
		x.sever()
		return
	}
	x.relay(resp)
}

// send makes the request upstream with this body, which has the length that the
// client announced. A server that answers before it read the body is heard.
func (x *exchange) send(ctx context.Context, body io.Reader) (*http.Response, error) {
	return x.p.transport.RoundTrip(x.outgoing(ctx, body))
}

func (x *exchange) outgoing(ctx context.Context, body io.Reader) *http.Request {
	to := *x.r.URL
	to.Scheme, to.Host = x.p.upstream.Scheme, x.p.upstream.Host
	out := &http.Request{
		Method: x.r.Method, URL: &to, Host: x.r.Host, ContentLength: x.r.ContentLength,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: maps.Clone(x.r.Header), Body: io.NopCloser(body),
	}
	out.Header.Del("Connection") // of the client's hop; none of ours is signed
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil // net/http must not add its own
	}
	if x.r.ContentLength == 0 {
		out.Body = http.NoBody
	}
	return out.WithContext(ctx)
}

// taken is an answer that is in memory as a whole.
type taken struct {
	status int
	header http.Header
	body   []byte
}

// apply sends a whole body upstream on the proxy's own account, whatever becomes of
// the client, and takes the answer in.
func (x *exchange) apply(body []byte) (*taken, error) {
	resp, err := x.send(x.p.ctx, bytes.NewReader(body)) //nolint:bodyclose // take does
	if err != nil {
		return nil, err
	}
	answer, err := take(resp.Body)
	if err != nil {
		return nil, err
	}
	return &taken{resp.StatusCode, resp.Header, answer}, nil
}

// hold takes the client's body into memory.
func (x *exchange) hold() ([]byte, error) { return take(x.r.Body) }

func take(body io.ReadCloser) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(body, maxHeld+1))
	if cerr := body.Close(); err == nil {
		err = cerr
	}
	if err == nil && len(b) > maxHeld {
		err = fmt.Errorf("a body of more than %d bytes: a fault holds no larger one", maxHeld)
	}
	return b, err
}

// relay gives the client the server's answer. One that breaks off, breaks off there too.
func (x *exchange) relay(resp *http.Response) {
	x.head(resp.StatusCode, resp.Header)
	_, err := io.Copy(x.w, resp.Body)
	if cerr := resp.Body.Close(); err != nil || cerr != nil {
		x.sever()
	}
}

// answer gives the client a taken answer.
func (x *exchange) answer(t *taken) {
	x.head(t.status, t.header)
	_, _ = x.w.Write(t.body) // a client that is gone needs no answer
}

func (x *exchange) head(status int, header http.Header) {
	h := x.w.Header()
	for name, values := range header {
		if name != "Connection" && name != "Keep-Alive" {
			h[name] = values
		}
	}
	x.w.WriteHeader(status)
}
