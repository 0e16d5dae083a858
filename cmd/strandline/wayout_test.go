//go:build unix

package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestStopWithTheCatalogHeld: --shutdown-timeout bounds the way out to its last close, also
// past a lock that is waited for longer; what stays undone is said, and is there after it.
func TestStopWithTheCatalogHeld(t *testing.T) {
	binary, dir := buildBinary(t), t.TempDir()
	u := startChild(t, binary, dir, "--segment-age", "1h", "--shutdown-timeout", "2s")
	cli(t, "kept\n", "append", "s", "--server", u.url).want(t, exitOK)
	lock, err := os.OpenFile(filepath.Join(dir, "catalog.db-writer"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }() // the kernel drops the lock with it
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	code := exitOf(u.end(syscall.SIGTERM))
	// A verb waits 10 s for the lock, and without a bound the close waits for the verb.
	if took := time.Since(begun); took > 9*time.Second {
		t.Errorf("--shutdown-timeout is 2s, and it took %v", took)
	}
	if code != exitUnavailable {
		t.Errorf("exit %d", code)
	}
	for _, text := range []string{"stay unpublished in " + dir, "is cut", "the next start with the same --dir goes on"} {
		if !strings.Contains(u.log.String(), text) {
			t.Errorf("nothing says %q: %s", text, u.log)
		}
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	startUp(t, dir).end(t)
	if r := cli(t, "", "cat", "s", "--dir", dir); r.out != "kept\n" {
		t.Errorf("%+v", r)
	}
}

// TestPortIsTakenByAnother: a port that somebody has is noticed before anything is made.
func TestPortIsTakenByAnother(t *testing.T) {
	var lc net.ListenConfig
	taken, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }() // nobody connected
	here := taken.Addr().String()
	for name, args := range map[string][]string{
		"up":      {"up", "--http", here},
		"writer":  {"writer", "--http", here},
		"grpc":    {"writer", "--http", "127.0.0.1:0", "--otlp-grpc", here},
		"both":    {"up", "--http", "127.0.0.1:18471", "--otlp-grpc", "127.0.0.1:18471"},
		"reader":  {"reader", "--http", here},
		"auditor": {"auditor", "--http", here},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "tier")
			flag := args[len(args)-2]
			cli(t, "", append(args, "--dir", dir)...).want(t, exitFailed, "give another "+flag, "nothing was opened or made")
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("it made %s: %v", dir, err)
			}
		})
	}
}

// TestPortIsOpenedAfterRecovery: the look at the port does not let anybody in early.
func TestPortIsOpenedAfterRecovery(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := free(t.Context(), port{"--http", at}); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.Get("http://" + at); err == nil {
		_ = resp.Body.Close() // the test failed
		t.Errorf("somebody listens: %s", resp.Status)
	}
	if l, err = lc.Listen(t.Context(), "tcp", at); err != nil {
		t.Fatalf("the look keeps the port: %v", err)
	}
	_ = l.Close() // nobody connected
}
