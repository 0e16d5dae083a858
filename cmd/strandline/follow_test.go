package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/segment"
)

// follower is a running `cat --follow` or `scan --follow`.
type follower struct {
	name string
	cmd  *exec.Cmd
	rows chan row
	errs bytes.Buffer
}

func startFollower(t *testing.T, binary string, args ...string) *follower {
	t.Helper()
	f := &follower{name: strings.Join(args[:2], " "), cmd: exec.Command(binary, args...), rows: make(chan row, 1<<16)}
	f.cmd.Stderr = &f.errs
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(f.rows)
		for d := json.NewDecoder(out); ; {
			var r row
			if d.Decode(&r) != nil {
				return
			}
			f.rows <- r
		}
	}()
	t.Cleanup(func() { f.end() })
	return f
}

// end interrupts it, as Ctrl-C does.
func (f *follower) end() {
	if f.cmd.ProcessState == nil {
		_ = f.cmd.Process.Signal(syscall.SIGINT) // it may have ended
		_ = f.cmd.Wait()                         // by the signal
	}
}

// sees demands the numbered rows from 0 to n-1, in order, once each.
func (f *follower) sees(t *testing.T, n int) {
	t.Helper()
	deadline := time.After(time.Minute)
	last := uint64(0)
	for i := range n {
		select {
		case r, more := <-f.rows:
			if want := fmt.Sprintf("row-%06d", i); !more || r.Payload != want || r.Seq <= last {
				f.end()
				t.Fatalf("%s: %q at seq %d after %d, want %q: %s", f.name, r.Payload, r.Seq, last, want, &f.errs)
			}
			last = r.Seq
		case <-deadline:
			f.end()
			t.Fatalf("%s: %d of %d rows in a minute: %s", f.name, i, n, &f.errs)
		}
	}
}

// numberer appends numbered rows, one after the other, through whatever server answers.
type numberer struct {
	c      *client.Client
	stream string
	next   int
}

func (n *numberer) until(ctx context.Context, t *testing.T, last int) {
	t.Helper()
	for ; n.next < last; n.next++ {
		rows := []segment.Row{{Payload: fmt.Appendf(nil, "row-%06d", n.next)}}
		if _, err := n.c.Append(ctx, n.stream, rows, client.AppendOptions{Ack: client.AckShared}); err != nil {
			t.Fatalf("row %d: %v", n.next, err)
		}
	}
}

// TestFollowTakeover: two writers; the one that has the stream is killed under load and its disk
// deleted, and another process takes its shards. A client goes on appending without a row lost or
// twice, and every follower, through a server or from the bucket alone, sees each row once.
func TestFollowTakeover(t *testing.T) {
	t.Parallel()
	binary := buildBinary(t)
	tier := shared(t)
	root := t.TempDir()
	writer := func(disk, shards string, more ...string) *child {
		return startProcess(t, binary, with(with([]string{
			"writer", "--dir", filepath.Join(root, disk), "--shards", shards, "--http", "127.0.0.1:0",
			"--shared-window", "20ms", "--log-level", "error",
		}, tier...), more...)...)
	}
	a, b := writer("a", "0-1"), writer("b", "2-3")
	const before, all = 60, 200
	c, err := client.New(client.Config{URL: a.url + "," + b.url})
	if err != nil {
		t.Fatal(err)
	}
	n := &numberer{c: c, stream: streamOf(4, 0)}
	n.until(t.Context(), t, 1) // a stream is there once it has a row
	servers := []string{"--server", a.url + "," + b.url, "--follow", "--ndjson"}
	followers := []*follower{
		startFollower(t, binary, with([]string{"cat", n.stream}, servers...)...),
		startFollower(t, binary, with(with([]string{"cat", n.stream}, servers...), "--owner")...),
		startFollower(t, binary, with([]string{"scan", "0"}, servers...)...),
		startFollower(t, binary, with([]string{"cat", n.stream, "--follow", "--ndjson"}, tier...)...),
		startFollower(t, binary, with([]string{"scan", "0", "--follow", "--ndjson"}, tier...)...),
	}
	n.until(t.Context(), t, before)
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.until(t.Context(), t, all)
	}()
	_ = a.kill() // "signal: killed" is what was asked for
	if err := os.RemoveAll(filepath.Join(root, "a")); err != nil {
		t.Error(err)
	}
	heir := writer("heir", "0-1", "--steal")
	<-done
	for _, f := range followers {
		f.sees(t, all)
	}
	out := cli(t, "", with([]string{"cat", n.stream, "--ndjson"}, tier...)...)
	out.want(t, exitOK)
	if rows := decodeRows(t, strings.NewReader(out.out)); len(rows) != all {
		t.Errorf("%d rows stand, %d were appended", len(rows), all)
	}
	for _, w := range []*child{heir, b} {
		if err := w.end(syscall.SIGTERM); err != nil {
			t.Errorf("it did not stop cleanly: %v\n%s", err, w.log)
		}
	}
}

// TestAppendInterrupted: Ctrl-C says what is acknowledged, and the input that goes on does not
// hold the command up.
func TestAppendInterrupted(t *testing.T) {
	up := startUp(t, t.TempDir())
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer feed.Close()
	if _, err := feed.WriteString("one\ntwo\n"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"append", "s", "--server", up.url}, streams{in: in, out: &out, err: &errs})
	}()
	c, err := client.New(client.Config{URL: up.url})
	if err != nil {
		t.Fatal(err)
	}
	for rows := 0; rows < 2; { // until both are there
		for _, err := range c.Rows(t.Context(), "s", client.ReadOptions{Follow: true, Limit: 2}) {
			if errors.Is(err, client.ErrNoStream) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			rows++
		}
	}
	// The rows are there a moment before their answer is.
	time.AfterFunc(200*time.Millisecond, cancel)
	if got := <-code; got != exitFailed || !strings.Contains(out.String(), "2 rows, seq 1 to 2") || !strings.Contains(errs.String(), "acknowledged before it: 2 rows") {
		t.Errorf("exit %d: %s%s", got, &out, &errs)
	}
}

// TestReadByServer: cat, scan, streams, trim and rm say the same through a server.
func TestReadByServer(t *testing.T) {
	dir := t.TempDir()
	up := startUp(t, dir, "--shards", "1")
	server := []string{"--server", up.url}
	cli(t, "one\ntwo\nthree\n", with([]string{"append", "a/b"}, server...)...).want(t, exitOK)
	cli(t, strings.Repeat("a long row that is compressed on its way\n", 2000), with([]string{"append", "big"}, server...)...).want(t, exitOK, "2,000 rows")
	for _, c := range []struct {
		args []string
		out  string
	}{
		{[]string{"cat", "a/b"}, "one\ntwo\nthree\n"},
		{[]string{"cat", "a/b", "--from", "2", "--to", "e1.t1.2"}, "two\n"},
		{[]string{"cat", "a/b", "--from", "1.3"}, "three\n"},
		{[]string{"cat", "a/b", "--since", "1h"}, "one\ntwo\nthree\n"},
		{[]string{"cat", "a/b", "--since", "2200-01-01"}, ""},
		{[]string{"scan", "0", "--to", "2"}, "a/b\tone\na/b\ttwo\n"},
		{[]string{"scan", "0", "--from", "3", "--to", "3", "--owner"}, "a/b\tthree\n"},
	} {
		if r := cli(t, "", with(c.args, server...)...); r.code != exitOK || r.out != c.out {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
	if r := cli(t, "", with([]string{"cat", "big"}, server...)...); r.code != exitOK || strings.Count(r.out, "compressed on its way\n") != 2000 {
		t.Errorf("big: exit %d, %d rows", r.code, strings.Count(r.out, "\n"))
	}
	up.flush(t)
	cli(t, "", with([]string{"streams", "--prefix", "a"}, server...)...).want(t, exitOK, "a/b", "1.3")
	cli(t, "", with([]string{"trim", "a/b", "2"}, server...)...).want(t, exitOK, "live from 1.2")
	cli(t, "", with([]string{"cat", "a/b", "--from", "1"}, server...)...).want(t, exitFailed, "trimmed")
	cli(t, "", with([]string{"trim", "a/b", "99999"}, server...)...).want(t, exitFailed, "tip")
	cli(t, "", with([]string{"rm", "big"}, server...)...).want(t, exitOK, "deleted")
	cli(t, "", with([]string{"cat", "big"}, server...)...).want(t, exitFailed, "stream deleted", "stand from 1.")
	cli(t, "", with([]string{"cat", "none"}, server...)...).want(t, exitFailed, "no-such-stream")
	cli(t, "", with([]string{"cat", "a/b", "--from", "x"}, server...)...).want(t, exitUsage, "token")
	cli(t, "", "cat", "a/b", "--owner").want(t, exitUsage, "--server")
	cli(t, "", with([]string{"cat", "a/b", "--follow", "--to", "3"}, server...)...).want(t, exitUsage, "--follow")
	cli(t, "", with([]string{"cat", "a/b", "--since", "soon"}, server...)...).want(t, exitUsage, "--since")
	for _, args := range [][]string{{"cat", "s"}, {"scan", "0"}, {"streams"}, {"trim", "s", "1"}, {"rm", "s"}, {"consumers", "ls", "0"}} {
		cli(t, "", append(args, "--server", "http://127.0.0.1:1,http://127.0.0.1:2")...).want(t, exitUnavailable, "strandline up")
	}
}

// flush has everything published.
func (r *running) flush(t *testing.T) {
	t.Helper()
	c, err := client.New(client.Config{URL: r.url})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestSince: rows by time from the bucket: what is older is left out, and refs of older rows
// are not read.
func TestSince(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	up := startUp(t, dir, "--shards", "1")
	c, err := client.New(client.Config{URL: up.url})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for i, age := range []time.Duration{3 * time.Hour, 2 * time.Hour, 10 * time.Minute, 2 * time.Hour, time.Minute} {
		row := segment.Row{Time: now.Add(-age).UnixNano(), Payload: fmt.Appendf(nil, "%d", i)}
		if _, err := c.Append(t.Context(), "s", []segment.Row{row}, client.AppendOptions{Ack: client.AckShared}); err != nil {
			t.Fatal(err)
		}
	}
	for since, want := range map[string]string{
		"1h": "2\n4\n", "150m": "1\n2\n3\n4\n", "1s": "", "24h": "0\n1\n2\n3\n4\n", now.Add(-5 * time.Minute).UTC().Format(time.RFC3339): "4\n",
	} {
		for _, from := range [][]string{{"--dir", dir}, {"--server", up.url}} {
			if r := cli(t, "", with([]string{"cat", "s", "--since", since}, from...)...); r.code != exitOK || r.out != want {
				t.Errorf("%s %v: %+v", since, from, r)
			}
		}
	}
	if r := cli(t, "", "scan", "0", "--since", "1h", "--dir", dir); r.out != "s\t2\ns\t4\n" {
		t.Errorf("%+v", r)
	}
	cli(t, "", "cat", "none", "--since", "1h", "--dir", dir).want(t, exitFailed, "no such stream")
	var b backendFlags
	b.dir = dir
	tier, err := b.open(t.Context(), modeRead)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tier.Close() }() // read only
	for back, want := range map[time.Duration]segment.Seq{time.Hour: 3, 150 * time.Minute: 2, 5 * time.Minute: 5, time.Second: 5, 24 * time.Hour: 1} {
		if at, err := beginSince(t.Context(), tier.catalog, "s", now.Add(-back)); err != nil || at.Seq != want {
			t.Errorf("since %v begins at %v, want seq %d: %v", back, at, want, err)
		}
	}
}

// TestExitOfClient: each kind of refusal has the exit code of 05.
func TestExitOfClient(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{&client.Problem{Status: 421, Code: "not-owner"}, exitNotOwner},
		{&client.Problem{Status: 503, Code: "fenced"}, exitFenced},
		{&client.Problem{Status: 503, Code: "backpressure"}, exitUnavailable},
		{&client.Problem{Status: 507, Code: "disk-full"}, exitUnavailable},
		{&client.Problem{Status: 500, Code: "corrupt"}, exitDamage},
		{&client.Problem{Status: 503, Code: "halted"}, exitDamage},
		{&client.Problem{Status: 400, Code: "invalid-name"}, exitUsage},
		{&client.Problem{Status: 410, Code: "trimmed"}, exitFailed},
		{&client.Problem{Status: 401, Code: "unauthenticated"}, exitFailed},
		{client.ErrUnreachable, exitUnavailable},
		{client.ErrCut, exitUnavailable},
		{client.ErrUnknown, exitUnavailable},
		{client.ErrOrder, exitDamage},
		{client.ErrConfig, exitUsage},
	} {
		if got := exitCode(fmt.Errorf("append: %w", c.err)); got != c.code {
			t.Errorf("%v: exit %d, want %d", c.err, got, c.code)
		}
	}
}
