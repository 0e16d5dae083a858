//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/strandline/strandline/internal/objcache/instance"
	"github.com/strandline/strandline/internal/objcache/wire"
)

// TestCacheAsksForTokens: an instance lets nobody read or delete without a token and a
// certificate; who has them is served from it, and who has not reads at the bucket and says so.
func TestCacheAsksForTokens(t *testing.T) {
	dir, k, m := t.TempDir(), newKeyring(t, "r read", "all append,read,admin", "a append"), newMutual(t)
	bucket := (&url.URL{Scheme: "file", Path: filepath.Join(dir, "bucket")}).String()
	up := startUp(t, dir, "--shards", "1")
	cli(t, "one\ntwo\n", "append", "s", "--server", up.url, "--ack", "shared").want(t, exitOK)
	up.end(t)
	c := serve(t, append([]string{"cache", "--listen", "127.0.0.1:0", "--cache-dir", t.TempDir(), "--cache-bytes", "64MiB", "--store", "standard=" + bucket, "--token-file", k.file}, m.serverFlags...)...)
	if !strings.HasPrefix(c.url, "https://") {
		t.Fatalf("it listens on %s", c.url)
	}
	client := m.client(t, true)
	for _, route := range []struct {
		method, path string
		may          string // the token that gets past the guard
	}{
		{http.MethodGet, wire.PathObjects + "seg/x?offset=0&length=1", "r"},
		{http.MethodGet, wire.PathStatus, "r"},
		{http.MethodGet, "/metrics", "r"},
		{http.MethodPost, wire.PathDelete, "all"},
		{http.MethodPost, wire.PathEvict, "all"},
	} {
		for _, name := range []string{"", "a", "r", "all"} {
			status := statusOfCall(t, client, route.method, c.url+route.path, k.tokens[name])
			may := name == "all" || name == route.may
			if refused := status == 401 || status == 403; refused == may {
				t.Errorf("%s %s as %q: %d", route.method, route.path, name, status)
			}
		}
	}
	if _, err := m.client(t, false).Get(c.url + "/healthz"); err == nil {
		t.Error("a client without a certificate is let in")
	}
	hits := func() int64 {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+wire.PathStatus, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+k.tokens["r"])
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		var s instance.Stats
		if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
			t.Fatal(err)
		}
		return s.Hits + s.Misses
	}
	scan := func(token string, more ...string) result {
		t.Helper()
		args := append([]string{"scan", "0", "--dir", dir, "--object-cache-instances", c.url, "--token-from", k.from(token)}, more...)
		r := cli(t, "", args...)
		r.want(t, exitOK, "one", "two")
		return r
	}
	if r := scan("r", m.callingFlags...); hits() == 0 {
		t.Errorf("the instance was not asked: %s", r.err)
	}
	before := hits()
	if r := scan("a", m.callingFlags...); hits() != before || !strings.Contains(r.err, "403") {
		t.Errorf("a token without the scope: %d reads, said:\n%s", hits()-before, r.err)
	}
	if r := scan("r", "--ca", m.ca.File); hits() != before || !strings.Contains(r.err, "certificate") {
		t.Errorf("no certificate: %d reads, said:\n%s", hits()-before, r.err)
	}
	if strings.Contains(c.errs.String(), k.tokens["a"]) {
		t.Error("the log shows a token")
	}
}

func statusOfCall(t *testing.T, c *http.Client, method, url, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is used again
	_ = resp.Body.Close()
	return resp.StatusCode
}
