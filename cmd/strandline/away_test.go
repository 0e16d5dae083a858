package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Cold reads go on while a bucket of the set is away; what judges does not.
func TestReadsWithABucketAway(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "user")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	dir := t.TempDir()
	catalog := "sqlite://" + filepath.Join(dir, "catalog.db")
	a, b := "file://"+filepath.Join(dir, "a"), "file://"+filepath.Join(dir, "b")
	const gone = "minio://127.0.0.1:1/gone?tls=false"
	through := func(args ...string) func(first, second string) result {
		return func(first, second string) result {
			return cli(t, "", with(args, "--catalog", catalog, "--store", "standard="+first+","+second)...)
		}
	}
	up := start(t, "up", "--dir", dir, "--catalog", catalog, "--store", "standard="+a+","+b, "--shards", "1")
	cli(t, "x\ny\n", "append", "s", "--server", up.url, "--ack", "shared").want(t, exitOK)
	up.end(t)

	cat, scan := through("cat", "s"), through("scan", "0")
	cached := through("cat", "s", "--object-cache-instances", "127.0.0.1:1")
	for _, set := range [][2]string{{a, b}, {a, gone}, {gone, b}} {
		for _, read := range []func(first, second string) result{cat, cached} {
			r := read(set[0], set[1])
			if r.want(t, exitOK); r.out != "x\ny\n" {
				t.Errorf("%v: %q", set, r.out)
			}
		}
		scan(set[0], set[1]).want(t, exitOK)
	}
	cat(gone, "minio://127.0.0.1:1/other?tls=false").want(t, exitUnavailable, "gone", "other")
	through("fsck")(a, gone).want(t, exitUnavailable)

	slots, err := filepath.Glob(filepath.Join(dir, "[ab]", "seg", "*1@"))
	if err != nil || len(slots) != 2 {
		t.Fatal(slots, err)
	}
	for i, wants := range []result{{code: exitDamage, out: ", in " + a}, {code: exitOK, out: "missing  1 copies"}} {
		if err := os.Rename(slots[i], slots[i]+".away"); err != nil {
			t.Fatal(err)
		}
		through("fsck")(a, b).want(t, wants.code, wants.out)
		if err := os.Rename(slots[i]+".away", slots[i]); err != nil {
			t.Fatal(err)
		}
	}

	// Settled rows are in the first bucket alone: without it they are unavailable, and not lost.
	cli(t, "", "auditor", "--once", "--settle-age", "0s", "--catalog", catalog, "--store", "standard="+a+","+b).want(t, exitOK)
	cat(a, gone).want(t, exitOK, "x")
	if r := cat(gone, b); r.code != exitOK { // the slot's copy may stand for one grace yet
		r.want(t, exitUnavailable, "gone")
	}
}
