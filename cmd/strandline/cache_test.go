package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/strandline/strandline/internal/objcache/instance"
)

// startCache runs an instance of the object cache until the test ends.
func startCache(t *testing.T, bucket, dir string) *running {
	t.Helper()
	return serve(t, "cache", "--listen", "127.0.0.1:0", "--cache-dir", dir, "--cache-bytes", "64MiB", "--store", "standard="+bucket)
}

func cacheStats(t *testing.T, all ...*running) (sum instance.Stats) {
	t.Helper()
	for _, r := range all {
		resp, err := http.Get(r.url + "/v1/status")
		if err != nil {
			t.Fatal(err)
		}
		var s instance.Stats
		if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // read whole
		sum.Hits, sum.Misses, sum.StoreGets = sum.Hits+s.Hits, sum.Misses+s.Misses, sum.StoreGets+s.StoreGets
		sum.Deletes, sum.Blocks = sum.Deletes+s.Deletes, sum.Blocks+s.Blocks
	}
	return sum
}

// A deployment behind two instances: reads come from them and equal the bucket's, the
// auditor deletes through them and reads past them, and what it deleted is gone from them.
func TestObjectCache(t *testing.T) {
	t.Parallel()
	dir, scratch := t.TempDir(), t.TempDir()
	bucket := (&url.URL{Scheme: "file", Path: filepath.Join(dir, "bucket")}).String()
	up := startUp(t, dir, "--shards", "1", "--auditor-read-grace", "1s", "--auditor-orphan-grace", "5s", "--settle-age", "1h")
	for i := range 6 {
		cli(t, fmt.Sprintf("row %d\n", i), "append", fmt.Sprintf("s%d", i), "--server", up.url, "--ack", "shared").want(t, exitOK)
	}
	up.end(t)
	a, b := startCache(t, bucket, filepath.Join(scratch, "a")), startCache(t, bucket, filepath.Join(scratch, "b"))
	through := []string{"--object-cache-instances", strings.TrimPrefix(a.url, "http://") + "," + b.url}
	scan := func(args ...string) string {
		r := cli(t, "", append([]string{"scan", "0", "--dir", dir}, args...)...)
		r.want(t, exitOK)
		return r.out
	}
	direct := scan()
	for range 2 {
		if got := scan(through...); got != direct || strings.Count(got, "\n") < 6 {
			t.Fatalf("through the cache:\n%s\nof the bucket:\n%s", got, direct)
		}
	}
	read := cacheStats(t, a, b)
	if read.Hits == 0 || read.StoreGets == 0 || read.Blocks == 0 {
		t.Fatalf("%+v: nothing came through the cache", read)
	}
	cli(t, "", append([]string{"auditor", "--once", "--dir", dir, "--settle-age", "0s", "--linger", "5s"}, through...)...).want(t, exitOK, "trim-check")
	audited := cacheStats(t, a, b)
	if audited.Deletes == 0 || audited.Hits != read.Hits || audited.Misses != read.Misses {
		t.Errorf("the auditor deletes through the cache and reads past it: %+v, before %+v", audited, read)
	}
	if audited.Blocks != 0 {
		t.Errorf("%d blocks of deleted slots are held", audited.Blocks)
	}
	cli(t, "", append([]string{"cat", "s3", "--dir", dir}, through...)...).want(t, exitOK, "row 3")
	cli(t, "", "fsck", "--dir", dir).want(t, exitOK)

	a.end(t) // one is away: nothing but speed is lost
	b.end(t)
	if got := scan(through...); got != direct {
		t.Errorf("without the cache:\n%s", got)
	}
	r := cli(t, "", append([]string{"cat", "s3", "--dir", dir}, through...)...)
	if r.want(t, exitOK, "row 3"); !strings.Contains(r.err, "an instance of the object cache failed") {
		t.Errorf("nothing says that the cache is away: %q", r.err)
	}
}

func TestObjectCacheRefusals(t *testing.T) {
	dir, scratch := t.TempDir(), t.TempDir()
	bucket := (&url.URL{Scheme: "file", Path: filepath.Join(dir, "bucket")}).String()
	startUp(t, dir, "--shards", "1").end(t)
	startCache(t, bucket, scratch)
	serve := []string{"cache", "--listen", "127.0.0.1:0", "--store", "standard=" + bucket, "--cache-dir"}
	cli(t, "", append(serve, scratch)...).want(t, exitFenced, "--cache-dir of its own")
	cli(t, "", "cache", "--cache-bytes", "1MiB", "--listen", "8091", "--max-age", "0s").
		want(t, exitUsage, "--cache-dir", "--listen", "--store", "--max-age", "67108864 or more")
	cli(t, "", "cache", "--cache-dir", scratch, "--store", "express="+bucket).want(t, exitFailed, "express", "check --store")
	empty := (&url.URL{Scheme: "file", Path: t.TempDir()}).String()
	cli(t, "", "cache", "--cache-dir", scratch, "--store", "standard="+empty).want(t, exitFailed)
	cli(t, "", "cat", "s", "--dir", dir, "--object-cache-instances", "nowhere").want(t, exitUsage, "HOST:PORT")
}

// A copy of a deployment, started with the original's instances, deletes nothing there.
func TestObjectCacheOfACopy(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), t.TempDir()
	up := startUp(t, dir, "--shards", "1", "--auditor-read-grace", "1s", "--auditor-orphan-grace", "5s", "--settle-age", "1h")
	cli(t, "kept\n", "append", "s", "--server", up.url, "--ack", "shared").want(t, exitOK)
	up.end(t)
	auditor := []string{"auditor", "--once", "--settle-age", "0s", "--linger", "5s"}
	cli(t, "", append(auditor, "--dir", dir)...).want(t, exitOK)
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	bucket := (&url.URL{Scheme: "file", Path: filepath.Join(dir, "bucket")}).String()
	c := startCache(t, bucket, t.TempDir())
	cli(t, "", "rm", "s", "--dir", copied).want(t, exitOK)
	cli(t, "", append(auditor, "--dir", copied, "--object-cache-instances", c.url)...).want(t, exitOK, "reaped 1")
	cli(t, "", "fsck", "--dir", copied).want(t, exitOK, "clean")
	cli(t, "", "fsck", "--dir", dir).want(t, exitOK, "clean")
	r := cli(t, "", "cat", "s", "--dir", dir)
	if r.want(t, exitOK); r.out != "kept\n" {
		t.Fatalf("%q", r.out)
	}
}
