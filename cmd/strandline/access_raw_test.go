//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// rawDial connects to a running process, without a client that would not say such things.
func rawDial(t *testing.T, server string) net.Conn {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// raw sends bytes as they are and reads all that comes until the server closes.
func raw(t *testing.T, server, text string) string {
	t.Helper()
	conn := rawDial(t, server)
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(conn, text) // a server that refuses closes before it has all
	}()
	answer, err := io.ReadAll(io.LimitReader(conn, 1<<20))
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("no end of the answer to %.80q", text)
	}
	_ = conn.Close()
	<-sent
	return string(answer)
}

// codes are the status codes of an answer, in order.
func codes(answer string) (out []string) {
	for _, m := range regexp.MustCompile(`(?m)^HTTP/1\.[01] (\d{3})`).FindAllStringSubmatch(answer, -1) {
		out = append(out, m[1])
	}
	return out
}

// TestSmuggling: where two readers of a request could disagree about its end, this one
// refuses, or closes the connection, and never takes the rest for a request of its own.
func TestSmuggling(t *testing.T) {
	dir := t.TempDir()
	up := startUp(t, dir, "--shards", "1")
	// A server that takes it for requests answers both, and closes after the second.
	const inner = "POST /v1/streams/smuggled/rows HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nrow\n" +
		"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	post := func(headers, body string) string {
		return "POST /v1/streams/s/rows HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n" + headers + "\r\n" + body
	}
	for name, text := range map[string]string{
		"length and chunks":        post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+inner),
		"chunks and length":        post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n"+inner),
		"two lengths":              post("Content-Length: 0\r\nContent-Length: 4\r\n", inner),
		"two lengths in one":       post("Content-Length: 0, 4\r\n", inner),
		"a length with a sign":     post("Content-Length: +0\r\n", inner),
		"a negative length":        post("Content-Length: -1\r\n", inner),
		"a length in hex":          post("Content-Length: 0x0\r\n", inner),
		"space before the colon":   post("Content-Length : 0\r\n", inner),
		"a header without a name":  post(": x\r\n", inner),
		"NUL in a header":          post("X: a\x00b\r\nContent-Length: 0\r\n", inner),
		"chunked twice":            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+inner),
		"chunked, identity":        post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"+inner),
		"identity":                 post("Transfer-Encoding: identity\r\n", inner),
		"xchunked":                 post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"+inner),
		"vertical tab and chunked": post("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n"+inner),
		"an odd chunk size":        post("Transfer-Encoding: chunked\r\n", "0x0\r\n\r\n"+inner),
		"a negative chunk":         post("Transfer-Encoding: chunked\r\n", "-1\r\n\r\n"+inner),
		"an endless chunk":         post("Transfer-Encoding: chunked\r\n", "ffffffffffffffffff\r\n"+inner),
		"a line feed in a size":    post("Transfer-Encoding: chunked\r\n", "0;\n\r\n\r\n"+inner),
		"no host":                  "GET /v1/status HTTP/1.1\r\n\r\n" + inner,
		"two hosts":                "GET /v1/status HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + inner,
		"a space in the method":    "GET x /v1/status HTTP/1.1\r\nHost: x\r\n\r\n" + inner,
		"another version":          "GET /v1/status HTTP/2.0\r\nHost: x\r\n\r\n" + inner,
		"version 0.9":              "GET /v1/status\r\n" + inner,
		"a connect":                "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n" + inner,
		"HTTP/2 by itself":         "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + inner,
	} {
		t.Run(name, func(t *testing.T) {
			answer := raw(t, up.url, text)
			got := codes(answer)
			if len(got) > 1 {
				t.Errorf("the rest was taken for a request: %v\n%s", got, answer)
			}
			if len(got) == 0 || got[0][0] == '2' && !strings.Contains(strings.ToLower(answer), "connection: close") {
				t.Errorf("neither refused nor closed: %v\n%s", got, answer)
			}
		})
	}
	r := cli(t, "", "cat", "smuggled", "--dir", dir)
	if strings.Contains(r.out, "row") {
		t.Error("a smuggled row was appended")
	}
}

// TestOversize: what is too long is refused before it is in memory.
func TestOversize(t *testing.T) {
	t.Parallel()
	up := startUp(t, t.TempDir(), "--shards", "1")
	long := strings.Repeat("a", 1<<20)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a header":      {"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + long + "\r\n\r\n", []string{"431"}},
		"many headers":  {"GET /healthz HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: a\r\n", 1<<16) + "\r\n", []string{"431"}},
		"no line's end": {"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + long + long, []string{"431"}},
		"a path":        {"GET /" + long + " HTTP/1.1\r\nHost: x\r\n\r\n", []string{"431"}},
		"a method":      {long + " / HTTP/1.1\r\nHost: x\r\n\r\n", []string{"431"}},
		"a stream":      {"GET /v1/streams/" + long[:1<<14] + "/rows HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", []string{"400"}},
		"a query":       {"GET /v1/status?" + long[:1<<15] + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", []string{"200", "400"}},
		"a length":      {"POST /v1/streams/s/rows HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 9223372036854775807\r\n\r\nrow\n", []string{"413", "400"}},
		"chunk extensions": {
			"POST /v1/streams/s/rows HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n" +
				strings.Repeat("1;"+strings.Repeat("x", 1000)+"\r\na\r\n", 1000) + "0\r\n\r\n", []string{"400"},
		},
		"one chunk extension": {
			"POST /v1/streams/s/rows HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n1;" + long + "\r\na\r\n0\r\n\r\n", []string{"400"},
		},
		"trailers": {
			"POST /v1/streams/s/rows HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n1\r\na\r\n0\r\nX: " + long + "\r\n\r\n", []string{"400"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := raw(t, up.url, c.text)
			got := codes(answer)
			if len(got) != 1 || !slices.Contains(c.want, got[0]) {
				t.Errorf("%v, want one of %v\n%.500s", got, c.want, answer)
			}
			if strings.Contains(answer, long[:1<<14]) {
				t.Error("what was too long comes back")
			}
		})
	}
}

// TestOddPaths: no spelling of a path reads a file, leaves the table of routes, gets past
// the guard, or sends a client elsewhere.
func TestOddPaths(t *testing.T) {
	k := newKeyring(t, "r read")
	dir := t.TempDir()
	up := startUp(t, dir, "--token-file", k.file)
	before := filesBeside(t, dir)
	for _, path := range []string{
		"/../../../../etc/passwd", "/v1/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/v1/streams/%2e%2e/rows", "/v1/streams/../rows",
		"/v1/streams/..%2f..%2f..%2fetc%2fpasswd/rows", "/v1/streams/%252e%252e%252f/rows", "/v1/streams/a%00b/rows", "/v1/streams/%00/rows",
		"/v1/streams/a%0d%0aX-Injected:%20yes/rows", "/v1/shards/0/../../status", "/v1/shards/%2e%2e/rows", "/v1/shards/-1/rows", "/v1/shards/4294967296/rows",
		"//evil.example/%2e%2e", "//v1/status", "/v1//status", "/\\evil.example/..", "/v1/status/", "/v1/status%2f", "/v1/status;x=y", "/V1/STATUS",
		"/v1/shards/0/consumers/..%2f..%2fx", "/v1/shards/0/consumers/%2e%2e/../../../status", "/metrics/", "/debug/pprof/", "/.git/config", "/catalog.db",
		"/v1/explain?key=../../etc/passwd", "/healthz/../v1/status", "/healthz%2f..%2fv1/status", "http://evil.example/v1/status", "*",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} {
			answer := raw(t, up.url, method+" "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			head, _, _ := strings.Cut(answer, "\r\n\r\n")
			got := codes(answer)
			if len(got) != 1 || got[0] == "500" {
				t.Errorf("%s %s: %v\n%.300s", method, path, got, answer)
				continue
			}
			if got[0] == "200" && (method != "OPTIONS" || path != "*") {
				t.Errorf("%s %s without a token: 200\n%.300s", method, path, answer)
			}
			if at := regexp.MustCompile(`(?m)^Location: (.*?)\r?$`).FindStringSubmatch(head); at != nil && (strings.HasPrefix(at[1], "//") || strings.Contains(at[1], ":") || strings.Contains(at[1], `\`)) {
				t.Errorf("%s %s sends to %s", method, path, at[1])
			}
			if strings.Contains(answer, "root:") || strings.Contains(head, "X-Injected") {
				t.Errorf("%s %s:\n%.300s", method, path, answer)
			}
		}
		answer := raw(t, up.url, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer "+k.tokens["r"]+"\r\n\r\n")
		if got := codes(answer); len(got) != 1 || got[0] == "500" || strings.Contains(answer, "root:") {
			t.Errorf("GET %s with a token: %v\n%.300s", path, got, answer)
		}
	}
	if after := filesBeside(t, dir); after != before {
		t.Errorf("files appeared:\n%s\nbefore:\n%s", after, before)
	}
	for _, id := range []string{"a b", "a\tb", strings.Repeat("a", 129), "<script>", "a\x7fb"} {
		answer := raw(t, up.url, "GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: "+id+"\r\n\r\n")
		if strings.Contains(answer, id) {
			t.Errorf("the request id %q comes back:\n%.300s", id, answer)
		}
	}
}

// filesBeside lists what is around a deployment's directory, but not within its parts.
func filesBeside(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	root := filepath.Dir(dir)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if strings.Count(rel, "/") > 1 && d.IsDir() {
			return fs.SkipDir
		}
		if !strings.Contains(rel, "catalog.db-") {
			fmt.Fprintln(&out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestSlowClients: who sends a byte now and then is cut off, by both protocols.
func TestSlowClients(t *testing.T) {
	m := newMutual(t)
	plain := startUp(t, t.TempDir(), "--shards", "1")
	secured := startUp(t, t.TempDir(), "--shards", "1", "--tls-cert", m.cert, "--tls-key", m.key)
	for name, c := range map[string]struct {
		server, head string
	}{
		"no request":          {plain.url, ""},
		"half a request line": {plain.url, "GET /heal"},
		"half a header":       {plain.url, "GET /healthz HTTP/1.1\r\nHost: x\r\nX: "},
		"a body that stops":   {plain.url, "POST /v1/streams/s/rows HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1000000\r\n\r\n"},
		"a chunk that stops":  {plain.url, "POST /v1/streams/s/rows HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n"},
		"no handshake":        {secured.url, ""},
		"half a handshake":    {secured.url, "\x16\x03\x01\x02\x00\x01"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := rawDial(t, c.server)
			if _, err := io.WriteString(conn, c.head); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			done := make(chan struct{})
			go func() { // a byte a second, until the server has enough
				defer close(done)
				tick := time.NewTicker(time.Second)
				defer tick.Stop()
				for range tick.C {
					if _, err := io.WriteString(conn, "a"); err != nil || time.Since(start) > 40*time.Second {
						return
					}
				}
			}()
			if err := conn.SetReadDeadline(start.Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(conn)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection stands after %v", time.Since(start))
			}
			t.Logf("cut off after %v: %v", time.Since(start).Round(time.Second), codes(string(answer)))
			_ = conn.Close()
			<-done
		})
	}
	t.Run("others go on", func(t *testing.T) {
		t.Parallel()
		resp, err := http.Get(plain.url + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != 200 {
			t.Errorf("%d", resp.StatusCode)
		}
	})
}
