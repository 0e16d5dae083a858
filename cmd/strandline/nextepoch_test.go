package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/strandline/strandline/catalog"
)

// keysBelow counts the objects of a directory's bucket whose keys begin with prefix.
func keysBelow(t *testing.T, bucket, prefix string) (n int) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(bucket), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasPrefix(path, prefix) {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestEpochOfAnotherClass: slots of an epoch go to the buckets of its class, to each; what
// the auditor makes of them is of class standard.
func TestEpochOfAnotherClass(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bucket := func(name string) string { return filepath.Join(dir, name) }
	tier := []string{
		"--catalog", "sqlite://" + filepath.Join(dir, "catalog.db"), "--store", "standard=file://" + bucket("s"),
		"--store", "express=file://" + bucket("a") + ",file://" + bucket("b"),
	}
	set := func(args ...string) result {
		return cli(t, "", with(with([]string{"topology", "set"}, args...), tier...)...)
	}
	set("--shards", "1").want(t, exitOK, "standard")
	set("--class", "glacier").want(t, exitUsage, "glacier", "express, standard")
	set("--class", "standard").want(t, exitOK)
	if got := epochs(t, tier...); len(got) != 1 {
		t.Fatalf("what stands is no other epoch: %+v", got)
	}
	set("--class", "express", "--dry-run").want(t, exitOK, "make epoch 2 with 1 shard, class express", "settle true")
	set("--class", "express").want(t, exitOK, "express")
	got := epochs(t, tier...)
	if len(got) != 2 || got[1].Class != "express" || len(got[1].Buckets) != 2 || got[1].State != catalog.TopologyOpen || got[0].State != catalog.TopologyClosed {
		t.Fatalf("%+v", got)
	}

	w := startWriter(t, tier, t.TempDir())
	cli(t, "one\ntwo\n", "append", "s", "--ack", "shared", "--server", w.url).want(t, exitOK, "2 rows")
	w.end(t)
	for name, want := range map[string]int{"a": 1, "b": 1, "s": 0} {
		if n := keysBelow(t, bucket(name), "seg/00000002."); n != want {
			t.Errorf("%d slots in %s, want %d", n, name, want)
		}
	}
	read := func() {
		t.Helper()
		if r := cli(t, "", with([]string{"cat", "s"}, tier...)...); r.out != "one\ntwo\n" {
			t.Errorf("%+v", r)
		}
	}
	read()
	cli(t, "", with([]string{"auditor", "--once", "--auditor-read-grace", "1s", "--settle-age", "0s", "--linger", "5s"}, tier...)...).want(t, exitOK)
	if n := keysBelow(t, bucket("s"), "pack/"); n != 1 {
		t.Errorf("%d packs in the standard bucket", n)
	}
	for _, name := range []string{"a", "b"} {
		if n := keysBelow(t, bucket(name), "seg/00000002."); n != 0 {
			t.Errorf("%d slots are left in %s", n, name)
		}
	}
	read()
	cli(t, "", with([]string{"fsck"}, tier...)...).want(t, exitOK, "clean")

	set("--settle=false").want(t, exitOK)
	if got := epochs(t, tier...); len(got) != 3 || got[2].Settle || got[2].Class != "express" {
		t.Fatalf("%+v", got)
	}
}
