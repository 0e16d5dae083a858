//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/realstore"
)

// probeOf asks a process's probe; 0: nobody answers.
func probeOf(url, path string) (code int, body string) {
	resp, err := http.Get(url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// wantReady polls until the process is ready, or is not and says why.
func wantReady(t *testing.T, url string, code int, why string) {
	t.Helper()
	var said string
	defer func() {
		if t.Failed() {
			t.Logf("the last answer: %s", said)
		}
	}()
	eventually(t, "/readyz answers as it should: "+why, func() bool {
		got, body := probeOf(url, "/readyz")
		said = body
		return got == code && strings.Contains(body, why)
	})
	if alive, body := probeOf(url, "/healthz"); alive != http.StatusOK {
		t.Errorf("/healthz says %d: %s", alive, body)
	}
}

// exitOf is how a process ended.
func exitOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.ExitCode() // -1: by a signal
	default:
		return -2
	}
}

// TestStopInOrder: on SIGTERM /readyz fails while rows are still taken, then what is under
// way ends well, then all is published, then the lease is given up.
func TestStopInOrder(t *testing.T) {
	binary := buildBinary(t)
	tier := shared(t)
	w := startProcess(t, binary, with([]string{"writer", "--dir", t.TempDir(), "--http", "127.0.0.1:0", "--drain-delay", "3s", "--segment-age", "1h", "--shared-window", "10s"}, tier...)...)
	wantReady(t, w.url, http.StatusOK, "ready")
	cli(t, "one\n", "append", "s", "--server", w.url).want(t, exitOK)
	waits := make(chan result, 1) // for an early seal, which comes only with the stop
	go func() { waits <- cli(t, "two\n", "append", "s", "--ack", "shared", "--server", w.url) }()
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	eventually(t, "/readyz fails", func() bool { code, _ := probeOf(w.url, "/readyz"); return code == http.StatusServiceUnavailable })
	if _, body := probeOf(w.url, "/readyz"); !strings.Contains(body, "stopping") {
		t.Errorf("it does not say why: %s", body)
	}
	cli(t, "three\n", "append", "t", "--server", w.url).want(t, exitOK) // some are still sent here
	if code := exitOf(w.cmd.Wait()); code != exitOK {
		t.Fatalf("exit %d: %s", code, w.log)
	}
	if took := time.Since(begun); took < 3*time.Second {
		t.Errorf("it took %v: --drain-delay is 3s", took)
	}
	if r := <-waits; r.code != exitOK {
		t.Errorf("the request that waited: %+v", r)
	}
	for stream, want := range map[string]string{"s": "one\ntwo\n", "t": "three\n"} {
		if r := cli(t, "", with([]string{"cat", stream}, tier...)...); r.out != want {
			t.Errorf("%s was not published: %+v", stream, r)
		}
	}
	if r := cli(t, "", with([]string{"status"}, tier...)...); strings.Count(r.out, "ended") != 4 {
		t.Errorf("leases were not given up: %s", r.out)
	}
}

// TestSecondSignal ends a process at once; what was acknowledged is on its disk.
func TestSecondSignal(t *testing.T) {
	binary := buildBinary(t)
	tier, disk := shared(t), t.TempDir()
	args := with([]string{"writer", "--dir", disk, "--segment-age", "1h"}, tier...)
	w := startProcess(t, binary, with(args, "--http", "127.0.0.1:0", "--drain-delay", "1m")...)
	cli(t, "kept\n", "append", "s", "--server", w.url).want(t, exitOK)
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "/readyz fails", func() bool { code, _ := probeOf(w.url, "/readyz"); return code == http.StatusServiceUnavailable })
	begun := time.Now()
	if err := w.end(syscall.SIGTERM); exitOf(err) != -1 || time.Since(begun) > 30*time.Second {
		t.Errorf("after %v: %v: %s", time.Since(begun), err, w.log)
	}
	start(t, args...).end(t)
	if r := cli(t, "", with([]string{"cat", "s"}, tier...)...); r.out != "kept\n" {
		t.Errorf("%+v", r)
	}
}

// TestStopWithTheBucketAway: the way out is bounded, and says what stays on this disk.
func TestStopWithTheBucketAway(t *testing.T) {
	binary := buildBinary(t)
	server := realstore.Own(t, realstore.KindMinio, false)
	bucket := server.NewBucket(t)
	t.Setenv("AWS_ACCESS_KEY_ID", server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", server.SecretKey)
	dir := t.TempDir()
	args := []string{"writer", "--dir", dir, "--catalog", "sqlite://" + filepath.Join(dir, "catalog.db"), "--store", "standard=minio://" + server.Endpoint + "/" + bucket + "?tls=false", "--segment-age", "1h"}
	w := startProcess(t, binary, with(args, "--http", "127.0.0.1:0", "--shutdown-timeout", "3s")...)
	cli(t, "kept\n", "append", "s", "--server", w.url).want(t, exitOK)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if code := exitOf(w.end(syscall.SIGTERM)); code != exitUnavailable || !strings.Contains(w.log.String(), dir) {
		t.Errorf("exit %d: %s", code, w.log)
	}
	if took := time.Since(begun); took > 45*time.Second { // the default is two minutes
		t.Errorf("--shutdown-timeout is 3s, and it took %v", took)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	start(t, args...).end(t)
	if r := cli(t, "", with([]string{"cat", "s"}, args[3:7]...)...); r.out != "kept\n" {
		t.Errorf("%+v", r)
	}
}

// TestReaderAndAuditorStop: both end well, a follower is let go, and probes are told first.
func TestReaderAndAuditorStop(t *testing.T) {
	binary := buildBinary(t)
	tier := shared(t)
	w := startWriter(t, tier, t.TempDir())
	cli(t, "one\n", "append", "s", "--ack", "shared", "--server", w.url).want(t, exitOK)
	r := startProcess(t, binary, with([]string{"reader", "--http", "127.0.0.1:0", "--drain-delay", "1s"}, tier...)...)
	a := startProcess(t, binary, with([]string{"auditor", "--http", "127.0.0.1:0", "--drain-delay", "1s"}, tier...)...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/v1/streams/s/rows?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	follow, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = follow.Body.Close() }() // read to its end
	lines := bufio.NewScanner(follow.Body)
	if !lines.Scan() || !strings.Contains(lines.Text(), "one") {
		t.Fatalf("%q: %v", lines.Text(), lines.Err())
	}
	for name, c := range map[string]*child{"reader": r, "auditor": a} {
		wantReady(t, c.url, http.StatusOK, "ready")
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+": /readyz fails first", func() bool {
			code, body := probeOf(c.url, "/readyz")
			return code == http.StatusServiceUnavailable && strings.Contains(body, "stopping")
		})
		if code := exitOf(c.cmd.Wait()); code != exitOK {
			t.Errorf("%s: exit %d: %s", name, code, c.log)
		}
	}
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	if !strings.Contains(last, `"closing"`) {
		t.Errorf("the follower was cut and not let go: %q", last)
	}
}
