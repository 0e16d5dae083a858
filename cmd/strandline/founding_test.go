package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAuditorWaitsForItsDeployment: it may be started before the first writer.
func TestAuditorWaitsForItsDeployment(t *testing.T) {
	dir := t.TempDir() + "/data"
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, errs, done := &lockedBuffer{}, &lockedBuffer{}, make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"auditor", "--dir", dir, "--http", "127.0.0.1:0"}, streams{in: strings.NewReader(""), out: out, err: errs})
	}()
	until := func(said *lockedBuffer, text string) {
		t.Helper()
		eventually(t, "it says "+text, func() bool { return strings.Contains(said.String(), text) })
	}
	until(errs, "waiting for a writer to found it")
	startUp(t, dir)
	until(errs, "the store does what is relied on")
	until(out, "listening on ") // a stop before it has started is an interrupted start, and no end of a service
	stop()
	if code := <-done; code != exitOK {
		t.Errorf("exit %d: %s", code, errs)
	}
	cli(t, "", "auditor", "--once", "--dir", t.TempDir()).want(t, exitFailed, "no deployment here") // at once
}

// TestInterruptedIsNotUnavailable: a signal is not the store's fault.
func TestInterruptedIsNotUnavailable(t *testing.T) {
	dir := t.TempDir()
	up := startUp(t, dir)
	cli(t, "a\n", "append", "s", "--ack", "shared", "--server", up.url).want(t, exitOK)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"cat", "s"}, {"scan", "0"}, {"status"}, {"fsck"}, {"streams"}} {
		var out, errs bytes.Buffer
		code := run(ctx, append(args, "--dir", dir), streams{in: strings.NewReader(""), out: &out, err: &errs})
		if code != exitFailed || strings.Contains(errs.String(), "-shm") || !strings.Contains(errs.String(), "interrupted before it was done") {
			t.Errorf("%s: exit %d: %s", args[0], code, &errs)
		}
	}
	said := cli(t, "", "cat", "nothing", "--dir", dir)
	said.want(t, exitFailed, "no such stream", "--ack shared")
}

// TestNoLeaseYet: a chain that nobody ever had has no lease that ended.
func TestNoLeaseYet(t *testing.T) {
	dir := t.TempDir()
	startUp(t, dir).end(t)
	cli(t, "", "topology", "set", "--dir", dir, "--shards", "5").want(t, exitOK, "5")
	cli(t, "", "status", "--dir", dir).want(t, exitOK, "none yet")
}

// TestAppendWithoutAnAnswer: what was sent and not answered may have been appended.
func TestAppendWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		cancel() // the signal comes while the row is on its way to the bucket
		<-r.Context().Done()
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"append", "s", "--server", server.URL}, streams{in: strings.NewReader("a\n"), out: &out, err: &errs})
	if code != exitUnavailable || !strings.Contains(errs.String(), "may have been carried out") {
		t.Errorf("exit %d: %s", code, &errs)
	}
	server.Close()
	cli(t, "a\n", "append", "s", "--server", server.URL).want(t, exitUnavailable, "is strandline up or writer running there?")
}
