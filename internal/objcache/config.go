package objcache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
)

const (
	// DefaultConnectTimeout is many round trips within a site; a pod that is gone does
	// not answer at all.
	DefaultConnectTimeout = 500 * time.Millisecond
	// DefaultAnswerTimeout holds a miss at a slow store; the store itself is asked after.
	DefaultAnswerTimeout = 3 * time.Second
	// DefaultDeleteTimeout holds a thousand keys at the slowest store measured, and
	// leaves most of a call's minute for the direct way.
	DefaultDeleteTimeout = 20 * time.Second
	// DefaultQueueKeys is a day of deletes of a small tier, in 25 MB.
	DefaultQueueKeys = 100_000
	// DefaultRest is how long a failed instance is left alone at first; it doubles.
	DefaultRest = time.Second
	// MaxRest caps that: an instance that came back is found within half a minute.
	MaxRest = 30 * time.Second
)

// Config says where the cache is and what it may be asked. Zero fields take the
// defaults above.
type Config struct {
	// Instances are addresses: HOST:PORT, or a URL. The order is of no account.
	Instances []string
	// Bucket is this bucket's name to the instances: wire.Bucket. Empty: Driver.Know will say
	// it, and nothing goes through the cache before.
	Bucket string
	// Reads: ranges may come from the cache. False for whoever judges.
	Reads bool
	// Cacheable says which keys are created once and never used again. Nil: none.
	Cacheable func(key string) bool

	ConnectTimeout time.Duration
	// AnswerTimeout is how long an instance may take to the first byte of an answer, and
	// from one frame to the next.
	AnswerTimeout time.Duration
	DeleteTimeout time.Duration // for the answer to a delete
	QueueKeys     int           // keys waiting for eviction, per instance
	Rest          time.Duration // first pause after a failure, up to MaxRest

	// Token is presented to the instances; nil: none is.
	Token func(ctx context.Context) (string, error)
	// Transport makes a transport one for the instances: TLS, and what may be sent over what;
	// nil: it is used as it is.
	Transport func(*http.Transport) http.RoundTripper

	Clock  func() time.Time
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	or := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	or(&c.ConnectTimeout, DefaultConnectTimeout)
	or(&c.AnswerTimeout, DefaultAnswerTimeout)
	or(&c.DeleteTimeout, DefaultDeleteTimeout)
	or(&c.Rest, DefaultRest)
	if c.QueueKeys == 0 {
		c.QueueKeys = DefaultQueueKeys
	}
	if c.Transport == nil {
		c.Transport = func(t *http.Transport) http.RoundTripper { return t }
	}
	if c.Cacheable == nil {
		c.Cacheable = func(string) bool { return false }
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate finds what Wrap would have to live with: an instance whose address cannot be
// right is never reached, and its keys go to the store.
func (c Config) Validate() error {
	var errs []error
	seen := map[string]bool{}
	for _, text := range c.Instances {
		addr, err := address(text)
		switch {
		case err != nil:
			errs = append(errs, err)
		case seen[addr]:
			errs = append(errs, fmt.Errorf("instance %s is named twice", addr))
		}
		seen[addr] = true
	}
	for _, t := range []struct {
		name string
		d    time.Duration
	}{{"connect timeout", c.ConnectTimeout}, {"answer timeout", c.AnswerTimeout}, {"delete timeout", c.DeleteTimeout}, {"rest", c.Rest}} {
		if t.d < 0 {
			errs = append(errs, fmt.Errorf("object cache: %s of %v: give a positive one", t.name, t.d))
		}
	}
	if c.QueueKeys < 0 {
		errs = append(errs, fmt.Errorf("object cache: a queue of %d keys: give a positive one", c.QueueKeys))
	}
	return errors.Join(errs...)
}

// address is the one spelling of an instance: keys are dealt by it.
func address(text string) (string, error) {
	full := text
	if !strings.Contains(full, "://") {
		full = "http://" + full
	}
	u, err := url.Parse(full)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("object cache instance %q: give HOST:PORT, or http:// or https:// before it", objstore.Shown(text))
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), nil
}
