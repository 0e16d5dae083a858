package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/localtier"
)

// How long commands go on while no server answers, or none says whose a shard is: a
// takeover takes a while, and somebody waits at a terminal. Followers run for days.
const (
	commandPatience = 15 * time.Second
	followPatience  = 10 * time.Minute
)

// clientFlags are how a command calls writers and readers.
type clientFlags struct {
	server string
	caller callerFlags
}

func (c *clientFlags) register(f *pflag.FlagSet, server, what string) {
	f.StringVar(&c.server, "server", server, what)
	c.caller.register(f)
}

// clientConfig is what every client of this process is made with: who it is to others, and
// what it tells while it waits.
func (a *app) clientConfig(caller *callerFlags) (client.Config, error) {
	me, err := caller.open()
	if err != nil {
		return client.Config{}, err
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = postsAtOnce
	clear := ""
	if isTerminal(a.err) {
		clear = "\r\x1b[K" // a progress bar may stand on the line
	}
	return client.Config{
		HTTP: &http.Client{Transport: unsent{me.transport(t)}}, Token: me.token, Patience: commandPatience,
		OnRetry: func(op string, err error) {
			fmt.Fprintf(a.err, "%sstrandline: %s: waiting, and trying again: %v\n", clear, op, err)
		},
	}, nil
}

// unsent tells the client what this process refuses to send.
type unsent struct{ http.RoundTripper }

func (u unsent) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.RoundTripper.RoundTrip(r)
	if errors.Is(err, errPlainToken) {
		err = client.NotSent(err)
	}
	return resp, err
}

// newClient is a client of some servers' URLs.
func (a *app) newClient(servers string, caller *callerFlags) (*client.Client, error) {
	return a.newClientWith(servers, caller, commandPatience)
}

func (a *app) newClientWith(servers string, caller *callerFlags, patience time.Duration) (*client.Client, error) {
	cfg, err := a.clientConfig(caller)
	if err != nil {
		return nil, err
	}
	cfg.URL, cfg.Patience = servers, patience
	c, err := client.New(cfg)
	if err != nil {
		return nil, usage("--server: %w", err)
	}
	return c, nil
}

// exitOfCode maps the stable problem codes to exit codes; other 503s are unavailable.
var exitOfCode = map[string]int{
	"invalid-name": exitUsage, "invalid-request": exitUsage, "not-owner": exitNotOwner,
	"fenced": exitFenced, "corrupt": exitDamage, "lost": exitDamage, "halted": exitDamage,
}

// exitOfClient is the exit code of what a client said; false: it did not.
func exitOfClient(err error) (int, bool) {
	var p *client.Problem
	switch {
	case errors.As(err, &p):
		if code, ok := exitOfCode[p.Code]; ok {
			return code, true
		}
		if errors.Is(p, client.ErrUnavailable) {
			return exitUnavailable, true
		}
		return exitFailed, true
	case errors.Is(err, client.ErrConfig):
		return exitUsage, true
	case errors.Is(err, client.ErrUnreachable), errors.Is(err, client.ErrUnknown), errors.Is(err, client.ErrCut):
		return exitUnavailable, true
	case errors.Is(err, client.ErrOrder):
		return exitDamage, true
	}
	return 0, false
}

// asked adds what to do to a client's error.
func asked(err error) error {
	var cert *tls.CertificateVerificationError
	var shaken *client.HandshakeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &shaken):
		return fmt.Errorf("%w; %s", err, afterHandshake(shaken))
	case errors.As(err, &cert):
		return fmt.Errorf("%w; give the authority that signed it by --ca, and the host by a name that it holds", err)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%w; it speaks without TLS: give its URL with http://", err)
	case errors.Is(err, client.ErrUnknown):
		return fmt.Errorf("%w; look with cat before you say it again", err)
	case errors.Is(err, client.ErrUnreachable):
		return fmt.Errorf("%w; is strandline up or writer running there?", err)
	}
	return err
}

// afterHandshake is what to do where a server did not let this process in.
func afterHandshake(e *client.HandshakeError) string {
	switch {
	case e.NoCertificate():
		return "it lets in only who shows a certificate: give --client-cert and --client-key, signed by an authority of its --tls-client-ca"
	case e.BadCertificate():
		return "it does not take this caller's certificate: give --client-cert and --client-key that are valid now and signed by an authority of its --tls-client-ca"
	default:
		return "it and this caller have no TLS version in common, or it serves another name than the URL's, or it wants a certificate: then give --client-cert and --client-key"
	}
}

// asSequence gives a producer's refusal the type that localtier's callers know.
func asSequence(err error, p localtier.Producer) error {
	var said *client.Problem
	if errors.As(err, &said) && errors.Is(said, client.ErrSequence) && said.Expect != nil {
		return errors.Join(&localtier.SequenceError{Producer: p.ID, Sequence: p.Sequence, Expect: *said.Expect}, err)
	}
	return err
}

// wirePosition is a position as the routes take it: what a command line says of epochs, an
// HTTP surface says, too.
func wirePosition(flag, text string) (string, error) {
	if _, err := position(flag, text, 1); err != nil {
		return "", err
	}
	return strings.TrimSpace(text), nil
}

// graced lets what is under way when a command is interrupted end, so that it can be told.
func graced(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			cancel(context.Cause(ctx))
		case <-out.Done():
		}
	})
	return out, func() { stop(); cancel(context.Canceled) }
}

// live says whether a chain's owner may be asked: it has an address and a lease.
func live(row *catalog.ChainRow, now time.Time) bool {
	return row.Address != "" && now.Before(row.LeaseEnd)
}
