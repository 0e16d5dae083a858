//go:build unix

package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/internal/realstore"
)

// eventually polls what other processes bring about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came about: %s", what)
		}
	}
}

// TestStartsWithTheSecondBucketAway: as a running process goes on without it, so does one
// that starts; what it was owed is there once it is back.
func TestStartsWithTheSecondBucketAway(t *testing.T) {
	server := realstore.Own(t, realstore.KindMinio, false)
	bucket := server.NewBucket(t)
	t.Setenv("AWS_ACCESS_KEY_ID", server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", server.SecretKey)
	dir := t.TempDir()
	first, second := "file://"+filepath.Join(dir, "first"), "minio://"+server.Endpoint+"/"+bucket+"?tls=false"
	tier := []string{"--catalog", "sqlite://" + filepath.Join(dir, "catalog.db"), "--store", "standard=" + first + "," + second}
	writer := with([]string{"writer", "--dir", filepath.Join(dir, "disk"), "--segment-age", "1s"}, tier...)

	up := start(t, writer...)
	cli(t, "one\n", "append", "s", "--server", up.url, "--ack", "shared").want(t, exitOK)
	up.end(t)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	cli(t, "", with([]string{"writer", "--dir", filepath.Join(dir, "other"), "--http", "127.0.0.1:0", "--catalog", "sqlite://" + filepath.Join(dir, "new.db")},
		"--store", "standard=file://"+filepath.Join(dir, "new")+","+second)...).want(t, exitUnavailable) // a founder needs all
	up = start(t, writer...)
	if said := up.errs.String(); !strings.Contains(said, "copies are owed to it") {
		t.Errorf("nothing says that the bucket is away: %s", said)
	}
	cli(t, "two\n", "append", "s", "--server", up.url, "--ack", "shared").want(t, exitOK)
	aud := serve(t, with([]string{"auditor", "--http", "127.0.0.1:0"}, tier...)...)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the copies are made", func() bool {
		r := cli(t, "", with([]string{"fsck"}, tier...)...)
		return r.code == exitOK && strings.Contains(r.out, "clean") && !strings.Contains(r.out, "copies")
	})
	eventually(t, "the auditor uses it", func() bool { return strings.Contains(aud.errs.String(), "used from now on") })
	// The auditor may have made the copies before the writer looked again.
	eventually(t, "the writer uses it", func() bool { return strings.Contains(up.errs.String(), "used from now on") })
	r := cli(t, "", with([]string{"cat", "s"}, tier...)...)
	if r.want(t, exitOK); r.out != "one\ntwo\n" {
		t.Errorf("%q", r.out)
	}
}

// TestSaysWhatItWaitsFor: a store that takes connections and stays silent is named soon.
func TestSaysWhatItWaitsFor(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "user")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	dir := t.TempDir()
	errs := &lockedBuffer{}
	stop, done := runUntil(t, errs, "writer", "--dir", dir, "--http", "127.0.0.1:0", "--catalog", "sqlite://"+filepath.Join(dir, "catalog.db"),
		"--store", "standard=minio://"+silent.Addr().String()+"/bucket?tls=false")
	eventually(t, "it says what it waits for", func() bool {
		return strings.Contains(errs.String(), "waiting at the start") && strings.Contains(errs.String(), "the store minio://"+silent.Addr().String()+"/bucket to answer")
	})
	stop()
	<-done
}

// TestSaysThatTheCatalogIsHeld: another process that stands still with its lock is named.
func TestSaysThatTheCatalogIsHeld(t *testing.T) {
	dir := t.TempDir()
	startUp(t, dir).end(t)
	held, err := os.OpenFile(filepath.Join(dir, "catalog.db-writer"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	errs := &lockedBuffer{}
	stop, done := runUntil(t, errs, "up", "--dir", dir, "--http", "127.0.0.1:0")
	eventually(t, "it says what it waits for", func() bool { return strings.Contains(errs.String(), "waiting at the start") })
	if err := unix.Flock(int(held.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	stop()
	<-done
	if said := errs.String(); !strings.Contains(said, "lock") && !strings.Contains(said, "leases") {
		t.Errorf("it does not say what for: %s", said)
	}
}
