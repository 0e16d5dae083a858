//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/pgserver"
)

// TestCatalogURL: what is no catalog is refused with what would be one, and no password is
// in any of it.
func TestCatalogURL(t *testing.T) {
	const secret = "hush-hush"
	for raw, want := range map[string]struct {
		code int
		text string
	}{
		"mysql://me:" + secret + "@h/db":                          {exitUsage, "give sqlite:///path/catalog.db"},
		"sqlite://host/path":                                      {exitUsage, "give sqlite:///path/catalog.db"},
		"postgres://me:" + secret + "@127.0.0.1:port/db":          {exitUsage, "invalid port"},
		"postgres://me:" + secret + "%zz@127.0.0.1/db":            {exitUsage, "--catalog"},
		"postgres://me:" + secret + "@127.0.0.1/db?sslmode=some":  {exitUsage, "sslmode"},
		"postgres://127.0.0.1/db?sslmode=some&password=" + secret: {exitUsage, "sslmode"},
	} {
		r := cli(t, "", "cat", "s", "--store", "standard=file:///nowhere", "--catalog", raw)
		r.want(t, want.code, want.text)
		if strings.Contains(r.out+r.err, secret) {
			t.Errorf("%s: the password is shown: %s%s", raw, r.out, r.err)
		}
	}
	cli(t, "", "status", "--store", "standard=file:///nowhere", "--catalog", "postgres://h/db", "--catalog-max-conns", "1").want(t, exitUsage, "give 2 to 1000")
}

// TestPostgresNoDeployment: a database in which nothing was founded is told, and left empty.
func TestPostgresNoDeployment(t *testing.T) {
	dsn := pgserver.NewDatabase(t)
	tier := []string{"--store", "standard=file://" + t.TempDir(), "--catalog", dsn}
	for _, args := range [][]string{{"cat", "s"}, {"status"}, {"fsck"}, {"auditor", "--once"}, {"topology", "show"}} {
		r := cli(t, "", with(args, tier...)...)
		r.want(t, exitFailed, "no deployment here", "start one with strandline up or strandline writer")
		if strings.Contains(r.err, pgserver.Shared(t).Password()) {
			t.Errorf("%s shows the password: %s", args[0], r.err)
		}
	}
}

// TestPostgresProcesses: the life of rows with a catalog in PostgreSQL, as processes: taken
// in, absorbed, settled, trimmed, read cold, checked. The password is in no log.
func TestPostgresProcesses(t *testing.T) {
	t.Parallel()
	binary := buildBinary(t)
	root := t.TempDir()
	dsn := pgserver.NewDatabase(t)
	tier := []string{"--store", "standard=file://" + filepath.Join(root, "bucket"), "--catalog", dsn, "--log-level", "debug"}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, with(args, tier...)...)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s%s", args, err, out, &said)
		}
		return string(out) + said.String()
	}
	w := startProcess(t, binary, with([]string{"writer", "--dir", filepath.Join(root, "w"), "--http", "127.0.0.1:0", "--segment-age", "1s"}, tier...)...)
	a := startProcess(t, binary, with([]string{
		"auditor", "--auditor-read-grace", "1s", "--settle-age", "0s", "--http", "127.0.0.1:0",
	}, tier...)...)
	var want bytes.Buffer
	for i := range 300 {
		fmt.Fprintf(&want, "row %d\n", i)
	}
	for _, stream := range []string{"one", "two"} {
		cmd := exec.Command(binary, "append", stream, "--server", w.url, "--ack", "shared")
		cmd.Stdin = bytes.NewReader(want.Bytes())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("append: %v\n%s", err, out)
		}
	}
	for end := time.Now().Add(30 * time.Second); !settled(t, run("status", "--json", "--log-level", "error")); {
		if time.Now().After(end) {
			t.Fatalf("the auditor settles nothing\n%s", a.log)
		}
	}
	if got := run("cat", "one", "--log-level", "error"); got != want.String() {
		t.Errorf("cat: %d bytes, not %d", len(got), want.Len())
	}
	run("rm", "two")
	for _, p := range []*child{w, a} {
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Errorf("it did not stop cleanly: %v\n%s", err, p.log)
		}
	}
	said := run("auditor", "--once", "--linger", "5s") + run("fsck") + run("streams")
	if !strings.Contains(said, "clean:") || !strings.Contains(said, "deleted") {
		t.Errorf("fsck and streams: %s", said)
	}
	if all := said + w.log.String() + a.log.String(); strings.Contains(all, pgserver.Shared(t).Password()) {
		t.Error("the password is in a log")
	}
}

// settled: refs stand, and none of them names a slot.
func settled(t *testing.T, text string) bool {
	t.Helper()
	var st struct{ Refs map[string]int64 }
	if err := json.Unmarshal([]byte(text), &st); err != nil {
		t.Fatal(err)
	}
	return st.Refs["slot"] == 0 && len(st.Refs) > 0
}

// TestAuditorWaitsForStamps: a founder writes the catalog's row before the bucket's stamp.
func TestAuditorWaitsForStamps(t *testing.T) {
	dir := t.TempDir()
	startUp(t, dir).end(t)
	stamp := filepath.Join(dir, "bucket", "meta", "strandline@")
	text, err := os.ReadFile(stamp)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(stamp); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	errs, done := &lockedBuffer{}, make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"auditor", "--dir", dir}, streams{in: strings.NewReader(""), out: &bytes.Buffer{}, err: errs})
	}()
	says := func(text string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !strings.Contains(errs.String(), text); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("it never says %q: %s", text, errs)
			}
		}
	}
	says("waiting for a writer to found it")
	if err := os.WriteFile(stamp, text, 0o600); err != nil {
		t.Fatal(err)
	}
	says("the store does what is relied on")
	stop()
	// It was let in; the signal may come before its first pass.
	if code := <-done; code != exitOK && !strings.Contains(errs.String(), "interrupted before it was done") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
