package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Encoding is how large bodies are sent.
type Encoding string

// The encodings. A server that does not know one gets the body as it is.
const (
	Zstd     Encoding = "zstd"
	Gzip     Encoding = "gzip"
	Identity Encoding = "identity"
)

// The defaults.
const (
	DefaultPatience   = time.Minute
	DefaultAnswerTime = time.Minute
	DefaultSilence    = 45 * time.Second
	// DefaultCompressFrom: below it a body fits a few packets, compressed or not.
	DefaultCompressFrom = 8 << 10
)

// idleConns a server are kept: a request at a time from as many goroutines.
const idleConns = 64

// Config of a Client. The zero value of a field means its default.
type Config struct {
	// URL of a server, like http://127.0.0.1:8420; several with commas between. Any will do:
	// they say who owns what. The first that answers is asked.
	URL string
	// HTTP sends the requests: TLS, client certificates and proxies are its transport's. Default:
	// the standard transport with more idle connections. Its redirects are not followed.
	HTTP *http.Client
	// Token gives the bearer token of each attempt; an empty one sends none. Default: none.
	Token func(ctx context.Context) (string, error)
	// Patience is how long a call goes on while no server answers, none says who the owner is, or
	// the owner will not have the shard much longer (poisoned, fenced …): a takeover takes a while. Default 1m; negative: each URL is asked once. A Client that no
	// server ever answered asks each URL once, whatever its patience: the URL is wrong more often.
	Patience time.Duration
	// AnswerTime is how long one attempt may take, if it may be repeated. Default 1m. Reads that
	// stream rows and appends that are sent once at most are only bounded by their context.
	AnswerTime time.Duration
	// Silence is how long a follow waits without a row or a heartbeat before it takes the
	// connection for dead. Servers send a heartbeat each 15 s. Default 45s.
	Silence time.Duration
	// Encoding of bodies from CompressFrom bytes on. Default Zstd, 8 KiB.
	Encoding     Encoding
	CompressFrom int
	// OnRetry is told, once a call, why it waits; nil: nobody is. It must not block.
	OnRetry func(op string, err error)
	// Logger gets each attempt that failed, at level debug. Default: none.
	Logger *slog.Logger
}

// Client talks to the servers of one deployment. It is safe for concurrent use, has no
// goroutines of its own and needs no Close.
type Client struct {
	cfg   Config
	urls  []string
	http  *http.Client
	log   *slog.Logger
	plain atomic.Bool // a server refused an encoding
	// reached says that some server answered once.
	reached atomic.Bool

	mu     sync.Mutex
	owners map[place]string    // where a place was served last
	took   map[string]struct{} // servers that acknowledged rows since the last Flush

	body bodies
}

// New checks a Config; it asks nobody.
func New(cfg Config) (*Client, error) {
	c := &Client{cfg: cfg.withDefaults(), owners: map[place]string{}, took: map[string]struct{}{}}
	var errs []error
	for text := range strings.SplitSeq(cfg.URL, ",") {
		base, err := baseOf(strings.TrimSpace(text))
		errs = append(errs, err)
		c.urls = append(c.urls, base)
	}
	errs = append(errs, c.cfg.check())
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	c.log = c.cfg.Logger
	// A redirect could lead anywhere, and with it rows and token: owners come from 421 only.
	h := *c.cfg.HTTP
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &h
	c.body.encoding = c.cfg.Encoding
	return c, nil
}

func (c Config) withDefaults() Config {
	if c.HTTP == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = idleConns
		c.HTTP = &http.Client{Transport: t}
	}
	if c.Patience == 0 {
		c.Patience = DefaultPatience
	}
	if c.AnswerTime == 0 {
		c.AnswerTime = DefaultAnswerTime
	}
	if c.Silence == 0 {
		c.Silence = DefaultSilence
	}
	if c.Encoding == "" {
		c.Encoding = Zstd
	}
	if c.CompressFrom == 0 {
		c.CompressFrom = DefaultCompressFrom
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c *Config) check() error {
	var errs []error
	if c.AnswerTime < 0 || c.Silence < 0 || c.CompressFrom < 0 {
		errs = append(errs, fmt.Errorf("%w: AnswerTime, Silence and CompressFrom are not negative", ErrConfig))
	}
	if c.Encoding != Zstd && c.Encoding != Gzip && c.Encoding != Identity {
		errs = append(errs, fmt.Errorf("%w: encoding %q: give zstd, gzip or identity", ErrConfig, c.Encoding))
	}
	return errors.Join(errs...)
}

// baseOf reads a server's URL: scheme, host, and the path before /v1, without its end.
func baseOf(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%w: server %q: give a URL like http://127.0.0.1:8420", ErrConfig, redacted(u, text))
	}
	return strings.TrimSuffix(text, "/"), nil
}

// redacted keeps a password, or a token in a query, out of an error.
func redacted(u *url.URL, text string) string {
	if u == nil || u.User != nil || u.RawQuery != "" {
		return "…"
	}
	return text
}
