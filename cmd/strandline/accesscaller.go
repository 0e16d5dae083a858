package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/pflag"

	"github.com/strandline/strandline/internal/access"
	"github.com/strandline/strandline/internal/tlsfiles"
)

// tokenVariable holds the token to present, where a file is unhandy. It is no flag: a
// process's arguments are for everybody on the machine to read.
const tokenVariable = "STRANDLINE_TOKEN"

// callerFlags say who this process is when it calls servers: writers, the object cache.
type callerFlags struct {
	given *callerValues
}

type callerValues struct {
	tokenFrom string
	tls       tlsfiles.Client
	plain     bool
}

// tokenFrom is the flag's value, by which a second register finds the first.
type tokenFrom struct{ *callerValues }

func (v tokenFrom) String() string {
	if v.callerValues == nil {
		return ""
	}
	return v.tokenFrom
}

func (v tokenFrom) Set(text string) error { v.tokenFrom = text; return nil }
func (tokenFrom) Type() string            { return "string" }

// register adds the flags, or shares those that are there: a command that calls in two
// ways is one caller.
func (c *callerFlags) register(f *pflag.FlagSet) {
	if flag := f.Lookup("token-from"); flag != nil {
		if v, ok := flag.Value.(tokenFrom); ok {
			c.given = v.callerValues
			return
		}
	}
	v := &callerValues{}
	c.given = v
	f.Var(tokenFrom{v}, "token-from", "file of the bearer token that is presented to other processes (or the token itself in "+tokenVariable+"); read again when it changes")
	f.StringVar(&v.tls.CA, "ca", "", "authorities that other processes' certificates are believed by, PEM (default: the system's)")
	f.StringVar(&v.tls.Cert, "client-cert", "", "certificate that is shown to processes with --tls-client-ca, PEM")
	f.StringVar(&v.tls.Key, "client-key", "", "its key, PEM")
	f.BoolVar(&v.plain, "allow-plain-token", false, "present the token over http:// to addresses that are not loopback, too")
}

// validate joins every fault.
func (c *callerFlags) validate() error {
	if c.given == nil {
		return nil
	}
	if err := c.given.tls.Validate(); err != nil {
		return fmt.Errorf("--client-cert, --client-key: %w", err)
	}
	return nil
}

// caller is who this process is to others.
type caller struct {
	token func(ctx context.Context) (string, error) // nil: it presents none
	tls   *tls.Config
	plain bool
}

// open reads the files. A command without the flags has what the environment says.
func (c *callerFlags) open() (*caller, error) {
	v := c.given
	if v == nil {
		v = &callerValues{}
	}
	if err := c.validate(); err != nil {
		return nil, usage("%w", err)
	}
	out := &caller{plain: v.plain}
	var err error
	if out.tls, err = v.tls.TLS(); err != nil {
		return nil, usage("--ca, --client-cert, --client-key: %w", err)
	}
	var source *access.Source
	switch text := os.Getenv(tokenVariable); {
	case v.tokenFrom != "":
		if source, err = access.FromFile(v.tokenFrom); err != nil {
			return nil, usage("--token-from: %w", err)
		}
	case text != "":
		if source, err = access.Fixed(text); err != nil {
			return nil, usage("environment %s: %w", tokenVariable, err)
		}
	}
	if source != nil {
		out.token = source.Token
	}
	return out, nil
}

// transport makes a transport this caller's: whom it believes and what it shows.
func (c *caller) transport(t *http.Transport) http.RoundTripper {
	t.TLSClientConfig = c.tls
	return guardedTransport{t, c.plain}
}

// errPlainToken: whoever listens on the way would be the caller from then on.
var errPlainToken = errors.New("a token is not sent over http:// to an address that is not loopback: use https://, or give --allow-plain-token if nobody can listen on the way")

// guardedTransport sends no token in the clear, whoever named the address: a flag, the
// catalog, an answer.
type guardedTransport struct {
	*http.Transport

	plain bool
}

func (g guardedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !g.plain && r.Header.Get("Authorization") != "" && !loopback(r.URL.Hostname()) {
		if r.Body != nil {
			_ = r.Body.Close() // as the interface asks; nothing was read of it
		}
		return nil, errPlainToken
	}
	return g.Transport.RoundTrip(r)
}
