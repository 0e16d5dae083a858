package s3wire

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/objstore"
)

const (
	// DefaultConcurrency is how many connections to one store are kept ready. With
	// the 10 or 16 of the libraries' own transports, a burst of 64 reads closes and
	// reopens most of them every time.
	DefaultConcurrency = 64

	dialTimeout = 5 * time.Second
	// responseHeaderTimeout bounds a store that took the request and says nothing.
	// The headers of a long Complete come early, so a minute is generous.
	responseHeaderTimeout = time.Minute
	idleConnTimeout       = 90 * time.Second
	expectTimeout         = time.Second
	keepAlivePeriod       = 30 * time.Second

	// expectThreshold: conditional writes of at least this size wait for the
	// store's 100 Continue. A store that refuses early closes the connection under
	// a body still being sent, and its 412 is lost with it.
	expectThreshold = 1 << 20

	// maxDocument bounds an answer held in memory. A page of 1,000 keys of 1,024
	// escaped bytes stays below 4 MiB.
	maxDocument = 8 << 20
)

// Options shape a Transport.
type Options struct {
	Concurrency int    // most connections at once, all kept ready; 0: no limit, DefaultConcurrency kept ready
	CAFile      string // PEM file of certificates to trust beside the system's; "": that of AWS_CA_BUNDLE, if set
	Plain       bool   // the store is asked without TLS: no certificates are read, which takes a short command's time
	Renew       Renew  // asked when a store finds credentials expired; nil: they cannot be renewed
}

// Transport is the one way to the network of a driver.
type Transport struct {
	http   *http.Transport
	renew  Renew
	server atomic.Pointer[string]
	proven atomic.Pointer[Signer] // the last that this store took
}

// NewTransport makes a Transport with a connection pool of its own.
func NewTransport(o Options) (*Transport, error) {
	if o.Concurrency < 0 {
		return nil, fmt.Errorf("concurrency %d: must not be negative", o.Concurrency)
	}
	limit, ready := o.Concurrency, o.Concurrency
	if ready == 0 {
		ready = DefaultConcurrency
	}
	var roots *x509.CertPool
	if !o.Plain {
		var err error
		if roots, err = Roots(o.CAFile); err != nil {
			return nil, err
		}
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlivePeriod}
	return &Transport{renew: o.Renew, http: &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: dialer.DialContext,
		// No HTTP/2: bulk transfers over one TCP connection would wait for each other.
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   2 * dialTimeout,
		MaxConnsPerHost:       limit,
		MaxIdleConns:          ready,
		MaxIdleConnsPerHost:   ready,
		IdleConnTimeout:       idleConnTimeout,
		ResponseHeaderTimeout: responseHeaderTimeout,
		ExpectContinueTimeout: expectTimeout,
		// Objects are compressed by us where it pays; a transport that inflates would
		// change lengths and ranges.
		DisableCompression: true,
	}}, nil
}

// Server is the Server header of the last answer, "" before the first.
func (t *Transport) Server() string {
	if s := t.server.Load(); s != nil {
		return *s
	}
	return ""
}

// Close drops the idle connections.
func (t *Transport) Close() { t.http.CloseIdleConnections() }

// RoundTrip sends one request, and turns an answer of success that cannot be one
// into an error before the client library can take it for success.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ex := exchangeOf(req.Context())
	if ex == nil || isSession(req) {
		return t.http.RoundTrip(req)
	}
	ex.begin(req)
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { ex.gotConn() }}
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), trace)) // a copy; its header is still the caller's
	// aws-sdk-go-v2 leaves the version unset, and net/http then sends Expect without
	// waiting for what it expects.
	req.Proto, req.ProtoMajor, req.ProtoMinor = "HTTP/1.1", 1, 1
	if conditional(req) && req.ContentLength >= expectThreshold {
		req.Header = req.Header.Clone()
		req.Header.Set("Expect", "100-continue")
	}
	resp, err := t.http.RoundTrip(req)
	if err != nil {
		ex.failed(err)
		ex.end()
		return nil, err
	}
	if s := resp.Header.Get("Server"); s != "" && s != t.Server() {
		t.server.Store(&s)
	}
	ex.answered(resp)
	err = inspect(ex, resp)
	t.renewal(req.Context(), ex)
	if err != nil {
		ex.notAnAnswer(err)
		ex.end()
		return nil, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		ex.end() // the body, if there is one, is in memory
	}
	return resp, nil
}

// isSession tells the session request of a directory bucket, which the client
// library makes within another call and which is none of that call's answers.
func isSession(req *http.Request) bool { return req.URL.Query().Has("session") }

func conditional(req *http.Request) bool {
	return req.Header.Get("If-None-Match") != "" || req.Header.Get("If-Match") != ""
}

// inspect reads the answers that are documents and refuses those that are not what
// the operation must answer. Object bodies pass through unread.
func inspect(ex *Exchange, resp *http.Response) error {
	if resp.StatusCode >= http.StatusMultipleChoices {
		return inspectRefusal(ex, resp)
	}
	if isHTML(resp.Header) {
		return fmt.Errorf("the answer %d is an HTML page: is a proxy or a login page in the way of the store?", resp.StatusCode)
	}
	want := documentOf(ex.Op)
	if want == "" {
		return nil
	}
	body, err := readDocument(resp)
	if err != nil {
		return fmt.Errorf("reading the answer %d: %w", resp.StatusCode, err)
	}
	switch got := rootOf(body); got {
	case want:
		ex.keep(body)
		return nil
	case "Error":
		// AWS may send 200 first and find the error later.
		ex.refused(parseError(body))
		return fmt.Errorf("the answer %d holds an error", resp.StatusCode)
	case "":
		return fmt.Errorf("the answer %d is empty or no XML, not a %s", resp.StatusCode, want)
	default:
		return fmt.Errorf("the answer %d is a %.40q, not a %s", resp.StatusCode, got, want)
	}
}

func inspectRefusal(ex *Exchange, resp *http.Response) error {
	if ex.Op == objstore.OpHead || resp.Body == nil || resp.Body == http.NoBody {
		return nil
	}
	body, err := readDocument(resp)
	if err != nil && resp.StatusCode == http.StatusBadRequest && resp.Request.URL.Scheme == "http" {
		// A TLS server may hang up before its words have arrived.
		return fmt.Errorf("reading the answer %d: %w: %s", resp.StatusCode, err, plainHint)
	}
	if err != nil {
		return fmt.Errorf("reading the answer %d: %w", resp.StatusCode, err)
	}
	switch {
	case rootOf(body) == "Error":
		ex.refused(parseError(body))
	case speaksTLS(body):
		ex.refused(errorDocument{Code: codeSpeaksTLS})
	}
	return nil
}

// readDocument takes the body into memory and leaves a copy for the library.
func readDocument(resp *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	err = errors.Join(err, resp.Body.Close())
	if err != nil {
		return nil, err
	}
	if len(body) > maxDocument {
		return nil, fmt.Errorf("more than %d bytes", maxDocument)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

func isHTML(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "text/html")
}

// rootOf is the name of a document's root element, "" if there is none.
func rootOf(body []byte) string {
	dec := xml.NewDecoder(bytes.NewReader(body))
	for {
		tok, err := dec.Token()
		if err != nil {
			return ""
		}
		if start, ok := tok.(xml.StartElement); ok {
			return start.Name.Local
		}
	}
}
