//go:build unix

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/access"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/internal/tlsfiles"
	"github.com/strandline/strandline/internal/tlsfiles/tlstest"
)

// keyring is a token file and, for each name in it, the token in a file of its own.
type keyring struct {
	file, dir string
	lines     []string
	tokens    map[string]string
}

// newKeyring makes a token for each line "NAME SCOPES", by the command.
func newKeyring(t *testing.T, names ...string) *keyring {
	t.Helper()
	k := &keyring{dir: t.TempDir(), tokens: map[string]string{}}
	k.file = filepath.Join(k.dir, "tokens")
	for _, line := range names {
		name, scopes, _ := strings.Cut(line, " ")
		r := cli(t, "", "token", "new", name, "--scopes", scopes)
		r.want(t, exitOK)
		token, entry, _ := strings.Cut(strings.TrimSpace(r.out), "\n")
		k.tokens[name] = token
		k.lines = append(k.lines, entry)
		k.put(t, name, token)
	}
	k.write(t, k.lines...)
	return k
}

func (k *keyring) put(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(k.dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func (k *keyring) write(t *testing.T, lines ...string) {
	t.Helper()
	k.put(t, "tokens", strings.Join(lines, "\n")+"\n")
}

// from is the file of one token.
func (k *keyring) from(name string) string { return filepath.Join(k.dir, name) }

// mutual are the certificates of servers and clients that believe each other.
type mutual struct {
	ca                        *tlstest.Authority
	cert, key, myCert, myKey  string
	serverFlags, callingFlags []string
}

func newMutual(t *testing.T) *mutual {
	t.Helper()
	m := &mutual{ca: tlstest.NewAuthority(t, "the deployment's")}
	m.cert, m.key = m.ca.Issue(t, t.TempDir(), "server", 30*24*time.Hour)
	m.myCert, m.myKey = m.ca.Issue(t, t.TempDir(), "client", 30*24*time.Hour)
	m.serverFlags = []string{"--tls-cert", m.cert, "--tls-key", m.key, "--tls-client-ca", m.ca.File}
	m.callingFlags = []string{"--ca", m.ca.File, "--client-cert", m.myCert, "--client-key", m.myKey}
	return m
}

// client is an HTTP client with the certificate, or without.
func (m *mutual) client(t *testing.T, shown bool) *http.Client {
	t.Helper()
	c := tlsfiles.Client{CA: m.ca.File}
	if shown {
		c.Cert, c.Key = m.myCert, m.myKey
	}
	cfg, err := c.TLS()
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// answered sends a request and returns its code, and the problem's.
func answered(t *testing.T, c *http.Client, method, url, token string) (status int, code string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer func() { _ = resp.Body.Close() }() // as much as is wanted was read
	if resp.ProtoMajor != 1 {
		t.Errorf("%s is spoken", resp.Proto)
	}
	var p struct {
		Code      string
		RequestID string `json:"request_id"`
	}
	switch refused := resp.StatusCode >= 400; {
	case refused && strings.HasSuffix(url, "/v1/logs"): // a google.rpc.Status: both stand in its text
		var s struct{ Message string }
		if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
			t.Errorf("%s %s: %v", method, url, err)
		}
		if m := regexp.MustCompile(`\(([a-z-]+), request ([^ )]+)\)$`).FindStringSubmatch(s.Message); m != nil {
			p.Code, p.RequestID = m[1], m[2]
		}
	case refused:
		if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
			t.Errorf("%s %s: %v", method, url, err)
		}
	}
	if resp.StatusCode == 401 || resp.StatusCode == 403 {
		if p.RequestID == "" || p.RequestID != resp.Header.Get("X-Request-Id") {
			t.Errorf("%s %s: request id %q, header %q", method, url, p.RequestID, resp.Header.Get("X-Request-Id"))
		}
		if !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Bearer ") {
			t.Errorf("%s %s: WWW-Authenticate %q", method, url, resp.Header.Get("WWW-Authenticate"))
		}
	}
	return resp.StatusCode, p.Code
}

// TestEveryRouteIsGuarded asks a running process for every route of the table, as nobody,
// as a stranger and as each scope alone.
func TestEveryRouteIsGuarded(t *testing.T) {
	k := newKeyring(t, "a append", "r read", "m admin")
	up := startUp(t, t.TempDir(), "--token-file", k.file)
	seen := map[string]int{}
	for _, route := range httpapi.Routes() {
		url := up.url + strings.NewReplacer("{stream}", "s", "{shard}", "0", "{name}", "c").Replace(route.Pattern)
		seen[route.Scope]++
		if route.Scope == httpapi.ScopeOpen {
			if status, code := answered(t, http.DefaultClient, route.Method, url, ""); status != 200 {
				t.Errorf("%s: %d %s", route, status, code)
			}
			continue
		}
		for _, c := range []struct {
			token, code string
			status      int
		}{{"", "unauthenticated", 401}, {access.NewToken(), "unauthenticated", 401}} {
			if status, code := answered(t, http.DefaultClient, route.Method, url, c.token); status == 404 && code == "no-such-route" {
				continue // this process does not have it
			} else if status != c.status || code != c.code {
				t.Errorf("%s as nobody: %d %s", route, status, code)
			}
		}
		for name, scope := range map[string]string{"a": httpapi.ScopeAppend, "r": httpapi.ScopeRead, "m": httpapi.ScopeAdmin} {
			status, code := answered(t, http.DefaultClient, route.Method, url, k.tokens[name])
			if denied := code == "forbidden" || code == "unauthenticated"; denied == (scope == route.Scope) && code != "no-such-route" {
				t.Errorf("%s with %s: %d %s", route, scope, status, code)
			}
		}
	}
	if seen[httpapi.ScopeAppend] < 1 || seen[httpapi.ScopeRead] < 8 || seen[httpapi.ScopeAdmin] < 2 || seen[httpapi.ScopeOpen] != 2 {
		t.Errorf("scopes of the routes: %v", seen)
	}
	// Paths that no route has tell nothing to those who may not know.
	for _, path := range []string{"/v1/streams/a%2Fb/rows", "/v1/streams/%2F/rows"} {
		if status, _ := answered(t, http.DefaultClient, http.MethodGet, up.url+path, ""); status != 401 {
			t.Errorf("%s: %d", path, status)
		}
	}
	errs := up.errs.String()
	for name, token := range k.tokens {
		if strings.Contains(errs, token) {
			t.Errorf("the log shows the token of %s", name)
		}
	}
	if !strings.Contains(errs, `"a request was refused"`) {
		t.Errorf("refusals are not logged:\n%s", errs)
	}
}

// TestMutualTLS: a day with tokens and certificates on both sides, by the commands.
func TestMutualTLS(t *testing.T) {
	k, m, dir := newKeyring(t, "all append,read,admin", "r read"), newMutual(t), t.TempDir()
	up := startUp(t, dir, append([]string{"--token-file", k.file}, m.serverFlags...)...)
	if !strings.HasPrefix(up.url, "https://") {
		t.Fatalf("it listens on %s", up.url)
	}
	as := func(name string, args ...string) []string {
		return append(append(args, "--token-from", k.from(name)), m.callingFlags...)
	}
	cli(t, "one\ntwo\n", as("all", "append", "s", "--server", up.url, "--ack", "shared")...).want(t, exitOK)
	// The owner's address in the catalog is https://, and it is asked with token and certificate.
	cli(t, "", as("all", "consumers", "create", "0", "c", "--dir", dir)...).want(t, exitOK)
	cli(t, "three\n", as("r", "append", "s", "--server", up.url)...).want(t, exitFailed, "forbidden")
	cli(t, "three\n", append([]string{"append", "s", "--server", up.url}, m.callingFlags...)...).want(t, exitFailed, "unauthenticated")
	t.Setenv(tokenVariable, k.tokens["all"])
	cli(t, "three\n", append([]string{"append", "s", "--server", up.url}, m.callingFlags...)...).want(t, exitOK)
	cli(t, "", "cat", "s", "--dir", dir).want(t, exitOK, "one", "two")
	// Who is not let in learns which certificate is missing, and that nothing was sent.
	other := tlstest.NewAuthority(t, "another's")
	cert, key := other.Issue(t, t.TempDir(), "client", time.Hour)
	for says, flags := range map[string][]string{
		"shows a certificate":       {"--ca", m.ca.File},
		"this caller's certificate": {"--ca", m.ca.File, "--client-cert", cert, "--client-key", key},
	} {
		for _, args := range [][]string{{"append", "s"}, {"cat", "s"}, {"trim", "s", "1"}, {"rm", "s"}} {
			r := cli(t, "never\n", append(append(args, "--server", up.url), flags...)...)
			r.want(t, exitUnavailable, says, "--client-cert", "--tls-client-ca")
			if strings.Contains(r.err, "outcome unknown") || strings.Contains(r.err, "is strandline up") {
				t.Errorf("%v: %s", args, r.err)
			}
		}
	}
	if _, err := m.client(t, false).Get(up.url + "/healthz"); err == nil {
		t.Error("a client without a certificate is let in")
	}
	if _, err := http.Get("http" + strings.TrimPrefix(up.url, "https") + "/healthz"); err == nil {
		resp, err := http.Get("http" + strings.TrimPrefix(up.url, "https") + "/healthz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == 200 {
				t.Error("plain HTTP is answered")
			}
		}
	}
	if status, _ := answered(t, m.client(t, true), http.MethodGet, up.url+"/healthz", ""); status != 200 {
		t.Errorf("/healthz with a certificate: %d", status)
	}
}

// TestRevokedWhileFollowing: a follower is cut off within seconds after its line is gone.
func TestRevokedWhileFollowing(t *testing.T) {
	k := newKeyring(t, "a append", "r read")
	up := startUp(t, t.TempDir(), "--token-file", k.file)
	cli(t, "one\n", "append", "s", "--server", up.url, "--token-from", k.from("a")).want(t, exitOK)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, up.url+"/v1/streams/s/rows?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+k.tokens["r"])
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewReader(resp.Body)
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, `"seq"`) {
		t.Fatalf("%d: %q, %v", resp.StatusCode, line, err)
	}
	k.write(t, k.lines[0])
	ended := make(chan string, 1)
	start := time.Now()
	go func() {
		rest, err := io.ReadAll(lines)
		ended <- fmt.Sprintf("%s (%v)", rest, err)
	}()
	select {
	case rest := <-ended:
		if took := time.Since(start); took > 20*time.Second { // a look at the file every 5 s, on a loaded machine
			t.Errorf("it took %v", took)
		}
		// The last word says why, as every other end of a follow does.
		if !strings.HasPrefix(strings.TrimLeft(rest, "\n"), `{"error":{`) || !strings.Contains(rest, `"code":"unauthenticated"`) || !strings.Contains(rest, "was revoked") || !strings.HasSuffix(rest, "(<nil>)") {
			t.Errorf("after %v: %s", time.Since(start), rest)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("a revoked follower goes on")
	}
}

// TestExposed: what may be served beyond loopback, and what is said of the rest.
func TestExposed(t *testing.T) {
	k, m := newKeyring(t, "a append"), newMutual(t)
	tokens := []string{"--token-file", k.file}
	served := []string{"--tls-cert", m.cert, "--tls-key", m.key}
	for name, c := range map[string]struct {
		flags []string
		says  string
	}{
		"nothing":        {nil, "neither authentication nor TLS"},
		"tokens only":    {tokens, "in the clear"},
		"TLS only":       {served, "no authentication"},
		"half a pair":    {served[:2], "come together"},
		"CA alone":       {[]string{"--tls-client-ca", m.ca.File}, "needs a certificate"},
		"no such tokens": {append([]string{"--token-file", k.file + "x"}, served...), "no such file"},
		"no such cert":   {append([]string{"--tls-cert", "/dev/null/none", "--tls-key", m.key}, tokens...), "not a directory"},
		"old advertise":  {append(append([]string{"--advertise", "http://w:1"}, served...), tokens...), "https://"},
		"a password":     {[]string{"--advertise", "http://me:hidden@w:1", "--http", "127.0.0.1:0"}, "--advertise"},
	} {
		for _, command := range []string{"up", "writer"} {
			args := append([]string{command, "--dir", t.TempDir(), "--http", "0.0.0.0:0"}, c.flags...)
			r := cli(t, "", args...)
			r.want(t, exitUsage, c.says)
			if strings.Contains(r.err, "hidden") {
				t.Errorf("%s shows a password: %s", name, r.err)
			}
		}
	}
	cli(t, "", "cache", "--listen", ":0", "--cache-dir", t.TempDir(), "--store", "standard=file:///dev/null/none").want(t, exitUsage, "--listen", "neither authentication nor TLS")
	up := startUp(t, t.TempDir())
	up.end(t)
	if log := up.errs.String(); !strings.Contains(log, "no authentication") {
		t.Errorf("loopback is not said:\n%s", log)
	}
}

// TestPlainToken: a token goes in the clear to this machine only, whoever named the address.
func TestPlainToken(t *testing.T) {
	sent := 0
	send := func(c *caller, url, token string) error {
		t.Helper()
		base := &http.Transport{}
		rt := c.transport(base)
		base.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		base.DialContext, base.DialTLSContext = refuseToDial(&sent), refuseToDial(&sent)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := rt.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	token := access.NewToken()
	for _, c := range []struct {
		url   string
		plain bool
		token string
		sent  int
	}{
		{"http://writer-0:8420/", false, token, 0},
		{"http://10.0.0.1:8420/", false, token, 0},
		{"http://127.0.0.1.example.org/", false, token, 0},
		{"http://localhost.example.org/", false, token, 0},
		{"http://writer-0:8420/", true, token, 1},
		{"http://writer-0:8420/", false, "", 1},
		{"https://writer-0:8420/", false, token, 1},
		{"http://127.0.0.1:8420/", false, token, 1},
		{"http://[::1]:8420/", false, token, 1},
		{"http://localhost:8420/", false, token, 1},
	} {
		sent = 0
		err := send(&caller{plain: c.plain}, c.url, c.token)
		if sent != c.sent {
			t.Errorf("%+v: %d connections: %v", c, sent, err)
		}
		if err != nil && strings.Contains(err.Error(), token) {
			t.Errorf("the error shows the token: %v", err)
		}
	}
}

// TestTokenCommand: what is printed once, and what is never taken.
func TestTokenCommand(t *testing.T) {
	r := cli(t, "", "token", "new", "ingest-1", "--scopes", "append,read")
	r.want(t, exitOK)
	token, line, _ := strings.Cut(strings.TrimSpace(r.out), "\n")
	if !strings.HasPrefix(token, "slt_") || len(token) < 40 || !strings.HasPrefix(line, "ingest-1 append,read sha256:") || strings.Contains(line, token) {
		t.Errorf("%q", r.out)
	}
	hashed := cli(t, token+"\n", "token", "hash", "ingest-1", "--scopes", "append,read")
	hashed.want(t, exitOK)
	if strings.TrimSpace(hashed.out) != line {
		t.Errorf("hashed: %q, made: %q", hashed.out, line)
	}
	asJSON := cli(t, "", "token", "new", "x", "--scopes", "admin", "--json")
	asJSON.want(t, exitOK)
	var out struct{ Token, Line string }
	if err := json.Unmarshal([]byte(asJSON.out), &out); err != nil || out.Token == "" || !strings.HasPrefix(out.Line, "x admin sha256:") {
		t.Errorf("%q: %v", asJSON.out, err)
	}
	cli(t, "hunter2\n", "token", "hash", "x", "--scopes", "read").want(t, exitUsage, "22 or more")
	cli(t, "", "token", "new", "x").want(t, exitUsage, "scopes are append, read, admin")
	cli(t, "", "token", "new", "a b", "--scopes", "read").want(t, exitUsage, "name")
	cli(t, "", "token", "new").want(t, exitUsage)
	cli(t, "", "append", "s", "--token-from", "/dev/null/none", "--server", "http://127.0.0.1:1").want(t, exitUsage, "--token-from", "not a directory")
	t.Setenv(tokenVariable, "hunter2")
	if r := cli(t, "", "append", "s", "--server", "http://127.0.0.1:1"); r.code != exitUsage || strings.Contains(r.err, "hunter2") || !strings.Contains(r.err, tokenVariable) {
		t.Errorf("a password in the environment: exit %d: %s", r.code, r.err)
	}
}

// refuseToDial counts connections, and makes none.
func refuseToDial(n *int) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		*n++
		return nil, errors.New("not dialled")
	}
}
