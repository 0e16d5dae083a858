package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/spf13/pflag"

	"github.com/strandline/strandline/internal/access"
	"github.com/strandline/strandline/internal/tlsfiles"
)

// accessFlags say who may call a server, and over what.
type accessFlags struct {
	tokens string
	tls    tlsfiles.Config
}

func (f *accessFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.tokens, "token-file", "", "file of the bearer tokens' names, scopes and hashes (strandline token new); read again when it changes")
	fs.StringVar(&f.tls.Cert, "tls-cert", "", "certificate chain to serve TLS with, PEM; read again when it changes, like the next two")
	fs.StringVar(&f.tls.Key, "tls-key", "", "its key, PEM")
	fs.StringVar(&f.tls.ClientCA, "tls-client-ca", "", "mutual TLS: clients have to show a certificate that one of these authorities signed, PEM")
}

// validate joins every fault.
func (f *accessFlags) validate() error {
	if err := f.tls.Validate(); err != nil {
		return fmt.Errorf("--tls-cert, --tls-key, --tls-client-ca: %w", err)
	}
	return nil
}

// exposed says why an address must not be served: what reaches it would not be
// authenticated, or a token would be read on the way. Nil: it may.
func (f *accessFlags) exposed(flag, address string) error {
	missing := f.missing(address)
	if missing == "" {
		return nil
	}
	return fmt.Errorf("%s %s is not loopback, and %s; or give --allow-remote, if what is in front of it does that", flag, address, missing)
}

// missing is what would make an address that is not loopback safe; empty: nothing.
func (f *accessFlags) missing(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil || loopback(host) {
		return "" // whoever validates the address complains about it
	}
	authenticated, encrypted := f.tokens != "" || f.tls.ClientCA != "", f.tls.Cert != ""
	switch {
	case !authenticated && !encrypted:
		return "there is neither authentication nor TLS: give --token-file or --tls-client-ca, and --tls-cert with --tls-key"
	case !authenticated:
		return "there is no authentication: give --token-file or --tls-client-ca"
	case !encrypted:
		return "tokens would go over the network in the clear: give --tls-cert and --tls-key"
	}
	return ""
}

// openAccess is what the flags' files say, followed while the process runs. Its fields
// are nil where a flag is not given.
type openAccess struct {
	tokens *access.Tokens
	tls    *tlsfiles.Server
}

// open reads the files.
func (f *accessFlags) open(log *slog.Logger) (_ *openAccess, err error) {
	o := &openAccess{}
	if f.tokens != "" {
		if o.tokens, err = access.Open(f.tokens, log); err != nil {
			return nil, usage("--token-file: %w", err)
		}
	}
	if f.tls.Cert != "" {
		if o.tls, err = tlsfiles.Open(f.tls, log); err != nil {
			return nil, errors.Join(usage("%w", err), o.Close())
		}
	}
	return o, nil
}

// Close ends what follows the files.
func (o *openAccess) Close() error {
	var errs []error
	if o.tokens != nil {
		errs = append(errs, o.tokens.Close())
	}
	if o.tls != nil {
		errs = append(errs, o.tls.Close())
	}
	return errors.Join(errs...)
}

// say tells at the start who can reach an address, and loudly if that is everybody.
func (f *accessFlags) say(log *slog.Logger, address string) {
	if missing := f.missing(address); missing != "" {
		log.Warn("SERVING EVERYBODY WHO REACHES THIS ADDRESS, since --allow-remote was given", "address", address, "missing", missing)
		return
	}
	if f.tokens == "" && f.tls.ClientCA == "" {
		log.Info("no authentication: every user of this machine, and nobody else, can call", "address", address)
	}
}

// httpTLS is the TLS of an HTTP listener; nil: none.
func (o *openAccess) httpTLS() *tls.Config {
	if o.tls == nil {
		return nil
	}
	return o.tls.HTTP()
}

// around puts what the flags ask for around a process's routes. What follows the files
// ends with the process's other parts.
func (f *accessFlags) around(s *surroundings, log *slog.Logger) error {
	o, err := f.open(log)
	if err != nil {
		return err
	}
	s.access, s.tls = o, o.httpTLS()
	if o.tokens != nil {
		s.guard = o.tokens.Guard
	}
	s.parts = append(s.parts, func(ctx context.Context) error {
		<-ctx.Done()
		return o.Close()
	})
	return nil
}
