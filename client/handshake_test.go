package client

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/tlsfiles"
	"github.com/strandline/strandline/internal/tlsfiles/tlstest"
)

// TestHandshakeRefused: a server that does not take the caller's certificate carried nothing
// out, whichever TLS version says so at which moment, and the error says whose certificate it is.
func TestHandshakeRefused(t *testing.T) {
	ours, others := tlstest.NewAuthority(t, "ours"), tlstest.NewAuthority(t, "another's")
	pair := func(a *tlstest.Authority, life time.Duration) tlsfiles.Client {
		c := tlsfiles.Client{CA: ours.File}
		c.Cert, c.Key = a.Issue(t, t.TempDir(), "client", life)
		return c
	}
	serving := pair(ours, time.Hour)
	trusted, err := serving.TLS()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.LoadX509KeyPair(serving.Cert, serving.Key)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was let in") }))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.TLS = &tls.Config{
			Certificates: []tls.Certificate{cert}, ClientCAs: trusted.RootCAs, ClientAuth: tls.RequireAndVerifyClientCert,
			MinVersion: version, MaxVersion: version,
		}
		server.StartTLS()
		for name, c := range map[string]struct {
			shown tlsfiles.Client
			none  bool
		}{
			"none":      {tlsfiles.Client{CA: ours.File}, true},
			"another's": {pair(others, time.Hour), false},
			"expired":   {pair(ours, -time.Minute), false},
		} {
			cfg, err := c.shown.TLS()
			if err != nil {
				t.Fatal(err)
			}
			transport := &http.Transport{TLSClientConfig: cfg}
			caller, err := New(Config{URL: server.URL, HTTP: &http.Client{Transport: transport}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = caller.Append(t.Context(), "s", rowsOf("x"), AppendOptions{AtMostOnce: true})
			var e *HandshakeError
			if !errors.As(err, &e) || errors.Is(err, ErrUnknown) || !errors.Is(err, ErrUnreachable) {
				t.Errorf("TLS %x, %s: %v", version, name, err)
				continue
			}
			// TLS 1.2 has no alert of its own for a certificate that is missing.
			if e.NoCertificate() != (c.none && version == tls.VersionTLS13) || e.BadCertificate() == c.none {
				t.Errorf("TLS %x, %s: %v", version, name, e)
			}
			transport.CloseIdleConnections()
		}
		server.Close()
	}
}

// TestLaterAlert: what may end a connection that stands leaves the outcome open.
func TestLaterAlert(t *testing.T) {
	for alert, handshake := range map[tls.AlertError]bool{0: false, 10: false, 20: false, 40: true, 47: false, 80: false, 90: false, 116: true} {
		err := error(&net.OpError{Op: "remote error", Err: alert})
		var lost *lostError
		if got := attemptError(t.Context(), err); !errors.As(got, &lost) || lost.sent == handshake {
			t.Errorf("alert %d: %v", alert, got)
		}
		local := error(&net.OpError{Op: "local error", Err: alert})
		if handshakeError(local) != nil {
			t.Errorf("alert %d of this side", alert)
		}
	}
}
