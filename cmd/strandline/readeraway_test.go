package main

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestReaderStartsWithTheFirstBucketSilent: the first bucket of a set decides what is written,
// but any may be read from. A reader starts beside one that takes connections and stays
// silent, serves what the others have, and is ready as long as they answer.
func TestReaderStartsWithTheFirstBucketSilent(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "user")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }() // nobody is connected any more
	dir := t.TempDir()
	second := "file://" + filepath.Join(dir, "second")
	cat := []string{"--catalog", "sqlite://" + filepath.Join(dir, "catalog.db")}
	up := start(t, with([]string{"writer", "--dir", filepath.Join(dir, "disk"), "--store", "standard=" + second}, cat...)...)
	cli(t, "one\ntwo\n", "append", "s", "--server", up.url, "--ack", "shared").want(t, exitOK)
	up.end(t)

	first := "minio://" + silent.Addr().String() + "/bucket?tls=false"
	reader := serve(t, with([]string{"reader", "--http", "127.0.0.1:0", "--store", "standard=" + first + "," + second}, cat...)...)
	if said := reader.errs.String(); !strings.Contains(said, "a bucket of the set is away") {
		t.Errorf("nothing says that the bucket is away: %s", said)
	}
	if code, text := get(t, http.MethodGet, reader.url+"/v1/streams/s/rows?from=1", ""); code != http.StatusOK || !strings.Contains(text, "two") {
		t.Errorf("%d %s", code, text)
	}
	// The first bucket is looked for meanwhile, in vain.
	answers := `strandline_store_requests_total{op="get",outcome="ok",store="` + second + `"} `
	eventually(t, "several looks found the second bucket", func() bool {
		_, text := get(t, http.MethodGet, reader.url+"/metrics", "")
		for line := range strings.Lines(text) {
			if n, found := strings.CutPrefix(strings.TrimSpace(line), answers); found {
				return len(n) > 1 // ten
			}
		}
		return false
	})
	if code, text := get(t, http.MethodGet, reader.url+"/readyz", ""); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
}
