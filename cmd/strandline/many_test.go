package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/segment"
)

// sharedSender appends rows that are acknowledged once they are in the bucket, and
// remembers them, until its server is gone.
type sharedSender struct {
	stream string
	acked  []string // in order
	seqs   []uint64
}

func (s *sharedSender) run(ctx context.Context, base string) {
	for n := 0; ctx.Err() == nil; n++ {
		payload := fmt.Sprintf("%s-%06d", s.stream, n)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/streams/"+s.stream+"/rows?ack=shared", strings.NewReader(payload))
		if err != nil {
			return
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return
		}
		var got httpapi.Appended
		err = json.NewDecoder(resp.Body).Decode(&got)
		_ = resp.Body.Close() // read, or cut by the kill
		if err != nil || resp.StatusCode != http.StatusOK {
			return
		}
		s.acked, s.seqs = append(s.acked, payload), append(s.seqs, uint64(got.First))
	}
}

// TestManyWriters: two writer processes share a directory bucket and a SQLite catalog. One
// is killed under load and its disk deleted; the other machine's writer takes its
// shards. Every row that was acknowledged as shared is there, where it was.
func TestManyWriters(t *testing.T) {
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
	var senders []*sharedSender
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	enough := make(chan struct{}, 4)
	for s := range segment.Shard(4) {
		snd := &sharedSender{stream: streamOf(4, s)}
		senders = append(senders, snd)
		base := a.url
		if s >= 2 {
			base = b.url
		}
		wg.Go(func() { snd.run(ctx, base) })
	}
	// The moment of the kill is the point of the test: any is right, once rows went through.
	go func() {
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
		}
		close(enough)
	}()
	<-enough
	_ = a.kill() // "signal: killed" is what was asked for
	cancel()
	wg.Wait()
	if err := os.RemoveAll(filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	heir := writer("heir", "0-1", "--steal")
	for s, snd := range senders {
		base := heir.url
		if s >= 2 {
			base = b.url
		}
		holdsAll(t, snd, readRows(t, base, snd.stream))
		if _, err := postRows(t.Context(), base, snd.stream, []byte("after the takeover")); err != nil {
			t.Errorf("%s takes no rows after the takeover: %v", snd.stream, err)
		}
	}
	for _, c := range []*child{heir, b} {
		if err := c.end(syscall.SIGTERM); err != nil {
			t.Errorf("it did not stop cleanly: %v\n%s", err, c.log)
		}
	}
	for _, snd := range senders { // the same from the bucket, where SIGTERM left nothing out
		out, err := exec.Command(binary, with([]string{"cat", snd.stream, "--ndjson"}, tier...)...).Output()
		if err != nil {
			t.Fatalf("cat: %v", err)
		}
		rows := decodeRows(t, bytes.NewReader(out))
		holdsAll(t, snd, rows)
		if n := len(rows); n == 0 || rows[n-1].Payload != "after the takeover" {
			t.Errorf("%s: the last row is not the one after the takeover", snd.stream)
		}
	}
	if out, err := exec.Command(binary, with([]string{"fsck"}, tier...)...).CombinedOutput(); err != nil {
		t.Errorf("fsck: %v\n%s", err, out)
	}
}

// holdsAll demands every acknowledged row at its seq, in order, once.
func holdsAll(t *testing.T, s *sharedSender, rows []row) {
	t.Helper()
	if len(s.acked) == 0 {
		t.Fatalf("%s: no row was acknowledged: the load did not run", s.stream)
	}
	at := map[uint64]string{}
	last := uint64(0)
	for _, r := range rows {
		if r.Seq <= last {
			t.Fatalf("%s: seq %d after %d", s.stream, r.Seq, last)
		}
		last = r.Seq
		at[r.Seq] = r.Payload
	}
	for i, seq := range s.seqs {
		if at[seq] != s.acked[i] {
			t.Fatalf("%s: %q was acknowledged at seq %d, where %q stands (%d rows there, %d acknowledged)", s.stream, s.acked[i], seq, at[seq], len(rows), len(s.acked))
		}
	}
}

// TestDriveProcesses runs each drive as people do.
func TestDriveProcesses(t *testing.T) {
	t.Parallel()
	binary := buildBinary(t)
	dir := filepath.Join(t.TempDir(), "drive")
	for _, name := range []string{"recovery", "affinity", "shared", "gc", "shared-gc"} {
		out, err := exec.CommandContext(t.Context(), binary, "drive", name, "--dir", dir, "--json").Output()
		var r struct {
			Drive  string
			Holds  bool
			Report map[string]any
		}
		if jerr := json.Unmarshal(out, &r); err != nil || jerr != nil || r.Drive != name || !r.Holds {
			t.Errorf("%s: %v, %v: %s", name, err, jerr, out)
		}
	}
}

// TestFencedWriter: a writer that lost its shards to another finds out, and its next start
// on the same disk sets the rows aside that never were published; salvage brings them back.
func TestFencedWriter(t *testing.T) {
	tier := shared(t)
	disk := t.TempDir()
	name := streamOf(4, 3)
	leaveUnpublished(t, tier, disk, name, "one\ntwo\n")
	b := startWriter(t, tier, t.TempDir(), "--steal")
	cli(t, "other\n", "append", name, "--server", b.url, "--ack", "shared").want(t, exitOK)
	b.end(t)
	a := startWriter(t, tier, disk)
	r := cli(t, "", "quarantine", "ls", "--dir", disk)
	r.want(t, exitOK, "waits")
	cli(t, "", with([]string{"salvage", "--all", "--dir", disk}, tier...)...).want(t, exitOK, "2 rows appended again")
	a.end(t)
	if r := cli(t, "", with([]string{"cat", name}, tier...)...); r.out != "other\none\ntwo\n" {
		t.Errorf("%+v", r)
	}
}
