package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// TestLeftShards: a writer whose disk has unpublished rows of shards that it was not started
// with says so, at its start and in its status, until somebody published them.
func TestLeftShards(t *testing.T) {
	binary, tier, disk := buildBinary(t), shared(t), t.TempDir()
	args := with([]string{"writer", "--dir", disk, "--http", "127.0.0.1:0", "--segment-age", "1h"}, tier...)
	stream := streamOf(4, 3)
	left := func(url string) []leftShard {
		resp, err := http.Get(url + "/v1/status")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }() // read to its end
		var st struct {
			Left []leftShard `json:"left_behind"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&st); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v", resp.Status, err)
		}
		return st.Left
	}
	const loud = "acknowledged rows of a shard that this process was not started with"
	all := startProcess(t, binary, args...)
	cli(t, "one\ntwo\n", "append", stream, "--server", all.url).want(t, exitOK)
	if err := all.kill(); exitOf(err) != -1 {
		t.Fatal(err)
	}
	some := startProcess(t, binary, with(args, "--shards", "0-1")...)
	if got := left(some.url); len(got) != 1 || got[0].Shard != 3 || got[0].Rows != 2 {
		t.Errorf("left behind: %+v", got)
	}
	if _, text := get(t, http.MethodGet, some.url+"/metrics", ""); !strings.Contains(text, "strandline_left_behind_shards 1\n") || !strings.Contains(text, "strandline_left_behind_rows 2\n") {
		t.Error("the metrics do not tell of them")
	}
	cli(t, "here\n", "append", streamOf(4, 0), "--server", some.url).want(t, exitOK)
	// Beside it, the shards' own writer publishes them; it says nothing of those of a process that lives.
	rest := startProcess(t, binary, with(args, "--shards", "2-3")...)
	if got := left(rest.url); len(got) != 0 {
		t.Errorf("of another process: %+v", got)
	}
	if code := exitOf(rest.end(syscall.SIGTERM)); code != exitOK || strings.Contains(rest.log.String(), loud) {
		t.Errorf("exit %d: %s", code, rest.log)
	}
	if r := cli(t, "", with([]string{"cat", stream}, tier...)...); r.out != "one\ntwo\n" {
		t.Errorf("%+v", r)
	}
	if got := left(some.url); len(got) != 0 {
		t.Errorf("published, and still left behind: %+v", got)
	}
	if code := exitOf(some.end(syscall.SIGTERM)); code != exitOK {
		t.Errorf("exit %d", code)
	}
	if said := some.log.String(); strings.Count(said, loud) != 1 || !strings.Contains(said, `"rows":2`) || strings.Contains(said, `"error":""`) || !strings.Contains(said, fmt.Sprintf("%q:3", "shard")) {
		t.Errorf("nothing is said of it, or too much: %s", said)
	}
}

// TestServedByAnother: it is the lock that tells. A number in its file may be that of a process
// that is dead and not yet buried, or of another one by now.
func TestServedByAnother(t *testing.T) {
	dir := t.TempDir()
	if servedByAnother(dir) {
		t.Error("nobody was ever there")
	}
	zombie := exec.Command("true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = zombie.Wait() }() // not before: it stays a zombie until then
	name := filepath.Join(dir, segment.LockFile)
	for what, pid := range map[string]int{"a zombie": zombie.Process.Pid, "another process": os.Getppid()} {
		if err := os.WriteFile(name, []byte(strconv.Itoa(pid)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if servedByAnother(dir) {
			t.Errorf("by %s", what)
		}
	}
	loop := filepath.Join(t.TempDir(), segment.LockFile)
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	if servedByAnother(filepath.Dir(loop)) {
		t.Error("nobody can tell, so nobody is known to")
	}
	lock, err := wal.OSFS(false).Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if !servedByAnother(dir) {
		t.Error("its lock is held")
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}
