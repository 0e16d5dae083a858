package s3wire

import (
	"crypto/tls"
	"net/http"
	"sync/atomic"
)

// Counting is the transport of a bare client: it counts requests and does nothing else.
type Counting struct {
	http *http.Transport
	n    atomic.Int64
}

// NewCounting wraps a transport that trusts caFile. base nil: one sized as NewTransport's.
func NewCounting(base *http.Transport, caFile string) (*Counting, error) {
	roots, err := Roots(caFile)
	if err != nil {
		return nil, err
	}
	if base == nil {
		base = &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConns: DefaultConcurrency, MaxIdleConnsPerHost: DefaultConcurrency,
			IdleConnTimeout: idleConnTimeout, DisableCompression: true,
		}
	}
	if base.TLSClientConfig == nil {
		base.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	base.TLSClientConfig.RootCAs = roots
	return &Counting{http: base}, nil
}

// RoundTrip sends and counts.
func (c *Counting) RoundTrip(req *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.http.RoundTrip(req)
}

// Requests is how many were sent.
func (c *Counting) Requests() int64 { return c.n.Load() }

// Close drops the idle connections.
func (c *Counting) Close() { c.http.CloseIdleConnections() }
