package tlsfiles

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/strandline/strandline/internal/logtest"
	"github.com/strandline/strandline/internal/tlsfiles/tlstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const day = 24 * time.Hour

// open serves TLS of files that the test replaces.
func open(t *testing.T, cfg Config) (*Server, *logtest.Journal) {
	t.Helper()
	log := logtest.New()
	s, err := Open(cfg, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, log
}

// shake does one handshake of both sides, and what one says has to arrive: in TLS 1.3 a
// client hears of a refused certificate only then. It returns the server's name.
func shake(t *testing.T, server, client *tls.Config) (string, error) {
	t.Helper()
	left, right := net.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, c := tls.Server(left, server), tls.Client(right, client)
	done := make(chan error, 1)
	go func() {
		err := s.HandshakeContext(ctx)
		if err == nil {
			_, err = io.WriteString(s, "x")
		}
		done <- errors.Join(err, left.Close())
	}()
	err := c.HandshakeContext(ctx)
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	name := ""
	if peers := c.ConnectionState().PeerCertificates; err == nil {
		name = peers[0].Subject.CommonName
	}
	_ = right.Close()
	return name, errors.Join(err, <-done)
}

// caller is a client's TLS, towards 127.0.0.1.
func caller(t *testing.T, c Client) *tls.Config {
	t.Helper()
	cfg, err := c.TLS()
	if err != nil {
		t.Fatal(err)
	}
	cfg.ServerName = "127.0.0.1"
	return cfg
}

func TestRenewal(t *testing.T) {
	a, dir := tlstest.NewAuthority(t, "a"), t.TempDir()
	cert, key := a.Issue(t, dir, "first", 30*day)
	s, log := open(t, Config{Cert: cert, Key: key})
	client := caller(t, Client{CA: a.File})
	serves := func(want string) {
		t.Helper()
		for _, cfg := range []*tls.Config{s.HTTP(), s.GRPC()} {
			if name, err := shake(t, cfg, client); err != nil || name != want {
				t.Errorf("%q, %v, want %q", name, err, want)
			}
		}
	}
	serves("first")
	first := s.Expires()
	a.Issue(t, dir, "second", 60*day)
	log.Until(t, "read again")
	serves("second")
	if !s.Expires().After(first) {
		t.Errorf("expires %v, before %v", s.Expires(), first)
	}
	if err := os.WriteFile(key, []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	log.Until(t, "BROKEN")
	serves("second")
	if s.Failures() == 0 {
		t.Error("no failure is counted")
	}
	a.Issue(t, dir, "third", 2*day)
	log.Until(t, "ends soon")
	serves("third")
	if text, _ := os.ReadFile(key); strings.Contains(log.String(), strings.Split(string(text), "\n")[1]) {
		t.Error("the log shows the key")
	}
}

func TestClients(t *testing.T) {
	a, ours, others := tlstest.NewAuthority(t, "servers"), tlstest.NewAuthority(t, "clients"), tlstest.NewAuthority(t, "strangers")
	cert, key := a.Issue(t, t.TempDir(), "server", 30*day)
	caDir := t.TempDir()
	bundle := caDir + "/clients.pem"
	trust := func(list ...*tlstest.Authority) {
		t.Helper()
		var text []byte
		for _, a := range list {
			one, err := os.ReadFile(a.File)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, one...)
		}
		if err := os.WriteFile(bundle+".new", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(bundle+".new", bundle); err != nil {
			t.Fatal(err)
		}
	}
	trust(ours)
	s, log := open(t, Config{Cert: cert, Key: key, ClientCA: bundle})
	of := func(by *tlstest.Authority, life time.Duration) *tls.Config {
		cert, key := by.Issue(t, t.TempDir(), "client", life)
		return caller(t, Client{CA: a.File, Cert: cert, Key: key})
	}
	mine, theirs, old, none := of(ours, day), of(others, day), of(ours, -time.Minute), caller(t, Client{CA: a.File})
	mine.ClientSessionCache = tls.NewLRUClientSessionCache(8) // a ticket must not outlive the trust
	lets := func(client *tls.Config, want bool) {
		t.Helper()
		for _, cfg := range []*tls.Config{s.HTTP(), s.GRPC()} {
			if _, err := shake(t, cfg, client); (err == nil) != want {
				t.Errorf("let in: %v, want %v: %v", err == nil, want, err)
			}
		}
	}
	lets(mine, true)
	lets(mine, true)
	lets(theirs, false)
	lets(old, false)
	lets(none, false)
	trust(others)
	log.Until(t, "read again")
	lets(theirs, true)
	lets(mine, false)
	trust()
	log.Until(t, "BROKEN")
	lets(theirs, true)
	lets(mine, false)
}

// TestOldVersions: TLS 1.1 is not spoken, and HTTP/2 is not offered where it is not meant.
func TestOldVersions(t *testing.T) {
	a := tlstest.NewAuthority(t, "a")
	cert, key := a.Issue(t, t.TempDir(), "server", 30*day)
	s, _ := open(t, Config{Cert: cert, Key: key})
	client := caller(t, Client{CA: a.File})
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c := client.Clone()
		c.MinVersion, c.MaxVersion = version, version
		if _, err := shake(t, s.HTTP(), c); (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
	h2 := client.Clone()
	h2.NextProtos = []string{"h2"}
	if _, err := shake(t, s.HTTP(), h2); err == nil {
		t.Error("HTTP/2 is agreed on")
	}
	if _, err := shake(t, s.GRPC(), h2); err != nil {
		t.Error(err)
	}
}

// TestClientRenewal: a caller shows its new certificate without a new start, and the old one
// while files are half written.
func TestClientRenewal(t *testing.T) {
	a, ours, others := tlstest.NewAuthority(t, "servers"), tlstest.NewAuthority(t, "clients"), tlstest.NewAuthority(t, "strangers")
	cert, key := a.Issue(t, t.TempDir(), "server", 30*day)
	s, _ := open(t, Config{Cert: cert, Key: key, ClientCA: ours.File})
	dir := t.TempDir()
	clientCert, clientKey := others.Issue(t, dir, "client", day)
	client := caller(t, Client{CA: a.File, Cert: clientCert, Key: clientKey})
	if _, err := shake(t, s.HTTP(), client); err == nil {
		t.Fatal("a stranger is let in")
	}
	ours.Issue(t, dir, "client", day)
	if _, err := shake(t, s.HTTP(), client); err != nil {
		t.Errorf("after the renewal: %v", err)
	}
	if err := os.WriteFile(clientKey, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := shake(t, s.HTTP(), client); err != nil {
		t.Errorf("with half a renewal: %v", err)
	}
	if _, err := shake(t, s.HTTP(), caller(t, Client{CA: others.File, Cert: cert, Key: key})); err == nil {
		t.Error("a client believes any server")
	}
}

func TestFaults(t *testing.T) {
	a, b := tlstest.NewAuthority(t, "a"), tlstest.NewAuthority(t, "b")
	dir := t.TempDir()
	cert, key := a.Issue(t, t.TempDir(), "server", 30*day)
	_, otherKey := b.Issue(t, t.TempDir(), "server", 30*day)
	put := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir + "/" + name
	}
	whole, err := os.ReadFile(a.File)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	keyText, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pair("both", "both", slices.Concat(chain, whole), keyText); err != nil {
		t.Errorf("a chain of two: %v", err)
	}
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"no such file":     {Config{Cert: dir + "/none", Key: key}, "no such file"},
		"another's key":    {Config{Cert: cert, Key: otherKey}, "does not match"},
		"no key":           {Config{Cert: cert, Key: cert}, "key"},
		"a cut chain":      {Config{Cert: put("chain", string(chain)+string(whole[:len(whole)/2])), Key: key}, "1 of its 2"},
		"a garbled chain":  {Config{Cert: put("garbled", string(whole[:len(whole)/2])+string(chain)), Key: key}, "garbled"},
		"no authority":     {Config{Cert: cert, Key: key, ClientCA: put("empty", "")}, "no certificate"},
		"a key in it":      {Config{Cert: cert, Key: key, ClientCA: key}, "certificates only"},
		"a cut authority":  {Config{Cert: cert, Key: key, ClientCA: put("cut", string(whole)+string(whole[:len(whole)/2]))}, "certificate 2"},
		"an odd authority": {Config{Cert: cert, Key: key, ClientCA: put("odd", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")}, "certificate 1"},
		"too large":        {Config{Cert: cert, Key: key, ClientCA: put("large", strings.Repeat("x", maxFile+1))}, "4 MiB"},
	} {
		if _, err := Open(c.cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for _, cfg := range []Config{{Cert: cert}, {Key: key}, {ClientCA: a.File}} {
		if cfg.Validate() == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
	for _, c := range []Client{{Cert: cert}, {Key: key}} {
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	for _, c := range []Client{{CA: key}, {CA: dir + "/none"}, {Cert: cert, Key: otherKey}} {
		if _, err := c.TLS(); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
