package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// result of one command line.
type result struct {
	code     int
	out, err string
}

func cli(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), args, streams{in: strings.NewReader(stdin), out: &out, err: &errs})
	return result{code, out.String(), errs.String()}
}

// want fails unless the command ended so and said so.
func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit %d, want %d\nstdout: %s\nstderr: %s", r.code, code, r.out, r.err)
	}
	for _, text := range texts {
		if !strings.Contains(r.out+r.err, text) {
			t.Errorf("nothing says %q\nstdout: %s\nstderr: %s", text, r.out, r.err)
		}
	}
}

// running is an `up` or a `writer` within this process.
type running struct {
	url  string
	stop context.CancelFunc
	done chan int
	errs *lockedBuffer
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// runUntil runs a command that says nothing of where it listens, until stopped.
func runUntil(t *testing.T, errs io.Writer, args ...string) (stop context.CancelFunc, done chan int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done = make(chan int, 1)
	go func() { done <- run(ctx, args, streams{in: strings.NewReader(""), out: io.Discard, err: errs}) }()
	return stop, done
}

// startUp runs `up` until stopped; the test's cleanup stops it at the latest.
func startUp(t testing.TB, dir string, args ...string) *running {
	t.Helper()
	return start(t, append([]string{"up", "--dir", dir}, args...)...)
}

// start runs an owner's command on a free port until stopped.
func start(t testing.TB, args ...string) *running {
	t.Helper()
	return serve(t, append(slices.Clone(args), "--http", "127.0.0.1:0")...)
}

// serve runs a command that says where it listens, until stopped.
func serve(t testing.TB, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{stop: cancel, done: make(chan int, 1), errs: &lockedBuffer{}}
	pr, pw := io.Pipe()
	go func() {
		code := run(ctx, args, streams{in: strings.NewReader(""), out: pw, err: r.errs})
		_ = pw.Close() // a pipe's Close does not fail
		r.done <- code
	}()
	var line [256]byte
	n, err := pr.Read(line[:])
	if err != nil {
		t.Fatalf("%s did not start: exit %d: %s", args[0], <-r.done, r.errs)
	}
	go func() { _, _ = io.Copy(io.Discard, pr) }() // ends when the pipe is closed
	r.url = strings.Fields(string(line[:n]))[2]
	t.Cleanup(func() { r.end(t) })
	return r
}

func (r *running) end(t testing.TB) {
	t.Helper()
	if r.done == nil {
		return
	}
	r.stop()
	if code := <-r.done; code != exitOK {
		t.Errorf("it ended with %d: %s", code, r.errs)
	}
	r.done = nil
}

func TestUsageErrors(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		text string
	}{
		"unknown command":    {[]string{"upp"}, `"upp"`},
		"mistyped command":   {[]string{"statsu"}, "did you mean status?"},
		"mistyped verb":      {[]string{"topology", "shwo"}, "did you mean show?"},
		"far from any":       {[]string{"dance"}, `for "strandline"; see`},
		"unknown flag":       {[]string{"up", "--shard", "4"}, "--shard"},
		"bad size":           {[]string{"up", "--segment-size", "lots"}, "64MiB"},
		"small segment":      {[]string{"up", "--dir", dir, "--segment-size", "1MiB"}, "17"},
		"bad age":            {[]string{"up", "--dir", dir, "--segment-age", "1ms"}, "age"},
		"not loopback":       {[]string{"up", "--dir", dir, "--http", "0.0.0.0:0"}, "--allow-remote"},
		"no port":            {[]string{"up", "--dir", dir, "--http", "localhost"}, "HOST:PORT"},
		"zero age":           {[]string{"up", "--dir", dir, "--segment-age", "0s"}, "segment-age"},
		"graces":             {[]string{"up", "--dir", dir, "--auditor-read-grace", "2h"}, "--auditor-orphan-grace"},
		"short grace":        {[]string{"up", "--dir", dir, "--auditor-read-grace", "1ms"}, "1s"},
		"stream and key":     {[]string{"append", "s", "--key-field", "k"}, "--key-field"},
		"no stream":          {[]string{"append"}, "STREAM"},
		"bad server":         {[]string{"append", "s", "--server", "localhost"}, "http://"},
		"bad ack":            {[]string{"append", "s", "--ack", "maybe"}, "local or shared"},
		"reserved name":      {[]string{"append", "~audit/0"}, "~"},
		"empty name":         {[]string{"append", ""}, "empty"},
		"long name":          {[]string{"append", strings.Repeat("n", 201)}, "200"},
		"bad position":       {[]string{"cat", "s", "--dir", dir, "--from", "x"}, ""},
		"two args":           {[]string{"cat", "s", "t"}, "accepts 1 arg"},
		"store without url":  {[]string{"cat", "s", "--store", "file:///x", "--catalog", "sqlite:///x"}, "CLASS=URL"},
		"strange store":      {[]string{"up", "--dir", dir, "--store", "standard=ftp://x"}, "file, minio or s3"},
		"a bucket twice":     {[]string{"up", "--dir", dir + "/twice", "--store", "standard=file://" + dir + "/b,file://" + dir + "/c/../b"}, "given twice"},
		"strange catalog":    {[]string{"up", "--dir", dir, "--catalog", "mysql://x"}, "sqlite:///"},
		"inspect nothing":    {[]string{"inspect", "nosuchfile"}, "neither a file"},
		"unknown duty":       {[]string{"auditor", "--dir", dir, "--duty", "dance"}, "dance"},
		"scan without shard": {[]string{"scan"}, "accepts 1 arg"},
		"scan a stream":      {[]string{"scan", "s", "--dir", dir}, "number"},
		"bad token":          {[]string{"cat", "s", "--dir", dir, "--from", "e1.3"}, "e1.t3.4711"},
		"consumers of what":  {[]string{"consumers", "ls"}, "accepts 1 arg"},
		"consumers verb":     {[]string{"consumers", "list", "0"}, "strandline consumers --help"},
		"bad consumer":       {[]string{"consumers", "create", "0", "", "--server", "http://127.0.0.1:1"}, "empty"},
		"bad shard":          {[]string{"consumers", "ls", "zero", "--server", "http://127.0.0.1:1"}, "number"},
		"bad ack position":   {[]string{"consumers", "ack", "0", "c", "e1.3", "--server", "http://127.0.0.1:1"}, "token"},
		"bad limit":          {[]string{"consumers", "pull", "0", "c", "--limit", "0", "--server", "http://127.0.0.1:1"}, "--limit"},
		"producer alone":     {[]string{"append", "s", "--producer", "p"}, "--sequence"},
		"producer by key":    {[]string{"append", "--key-field", "k", "--producer", "p", "--sequence", "1"}, "--key-field"},
		"bad producer":       {[]string{"append", "s", "--producer", "", "--sequence", "1"}, "--producer"},
		"salvage what":       {[]string{"salvage", "--dir", dir}, "--all"},
		"salvage both":       {[]string{"salvage", "x", "--all", "--dir", dir}, "--all"},
		"drive what":         {[]string{"drive", "home", "--dir", dir}, "strandline drive --help"},
		"drive nowhere":      {[]string{"drive", "recovery"}, "--dir"},
		"drive of a file":    {[]string{"drive", "recovery", "--dir", "/dev/null"}, "/dev/null"},
		"topology what":      {[]string{"topology", "set", "--dir", dir}, "--shards"},
		"log level":          {[]string{"up", "--dir", dir, "--log-level", "loud"}, "debug, info, warn or error"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "bad position" || name == "bad token" {
				startUp(t, dir).end(t)
			}
			cli(t, "", c.args...).want(t, exitUsage, c.text)
		})
	}
}

// TestAllFaultsAtOnce: one run tells of every wrong knob.
func TestAllFaultsAtOnce(t *testing.T) {
	cli(t, "", "up", "--dir", t.TempDir(), "--segment-size", "1MiB", "--segment-age", "1ms", "--http", "0.0.0.0:1", "--lease-time", "1ms", "--quarantine-max", "0B", "--consumer-hold-max", "1MiB", "--retention-every", "1ns",
		"--spare-files", "65", "--preallocate", "maybe", "--housekeeping", "1ms").
		want(t, exitUsage, "segment", "age", "loopback", "lease", "quarantine-max", "consumer hold", "retention every", "spare-files", "preallocate", "housekeeping")
}

func TestMissingThings(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, args := range [][]string{
		{"scan", "0"},
		{"consumers", "ls", "0"},
		{"topology", "show"},
		{"topology", "set", "--retention", "keep"},
		{"topology", "set", "--shards", "2", "--dry-run"},
		{"salvage", "--all"},
		{"cat", "s"},
		{"streams"},
		{"status"},
		{"fsck"},
		{"trim", "s", "1"},
		{"rm", "s"},
		{"auditor", "--once"},
	} {
		cli(t, "", append(args, "--dir", missing)...).want(t, exitFailed, missing, "strandline up")
	}
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Errorf("a reading command made %s: %v", missing, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := cli(t, "", "up", "--dir", file); r.code == exitOK {
		t.Error("a file was taken for a directory")
	}
	cli(t, "row\n", "append", "s", "--server", "http://127.0.0.1:1").want(t, exitUnavailable, "strandline up")
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	cli(t, "", "up", "--dir", dir, "--http", l.Addr().String()).want(t, exitFailed, "in use", "--http")
	startUp(t, dir).end(t) // the failed start left nothing in the way
}

func TestSecondUpIsLockedOut(t *testing.T) {
	dir := t.TempDir()
	startUp(t, dir)
	cli(t, "", "up", "--dir", dir, "--http", "127.0.0.1:0").want(t, exitFenced, "LOCK", fmt.Sprint(os.Getpid()))
}

func TestShardsAreForGood(t *testing.T) {
	dir := t.TempDir()
	startUp(t, dir, "--shards", "2").end(t)
	cli(t, "", "up", "--dir", dir, "--shards", "3", "--http", "127.0.0.1:0").want(t, exitUsage, "2 shards")
}

// mountSmall mounts a small file system of its own for a test.
func mountSmall(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("mount a small file system (the tests run as root on Linux): %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestReadOnlyDirectory(t *testing.T) {
	dir := mountSmall(t, "8m")
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	r := cli(t, "", "up", "--dir", filepath.Join(dir, "d"), "--http", "127.0.0.1:0")
	r.want(t, exitFailed, "read-only")
}

// TestFullDisk fills the disk under a server: appends are refused with a typed
// error, what was acknowledged before is still there, and the server stops cleanly.
func TestFullDisk(t *testing.T) {
	dir := mountSmall(t, "40m")
	bucket := t.TempDir()
	args := []string{"--min-free-disk", "1MiB", "--store", "standard=file://" + bucket, "--segment-age", "1h"}
	up := startUp(t, dir, args...)
	body := bytes.Repeat([]byte(strings.Repeat("x", 1023)+"\n"), 1024)
	acked, refused := 0, 0
	for range 60 {
		resp, err := http.Post(up.url+"/v1/streams/big/rows", "text/plain", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close() // read to its end
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusOK {
			acked++
			continue
		}
		var p struct{ Code string }
		if err := json.Unmarshal(answer, &p); err != nil || (p.Code != "backpressure" && p.Code != "disk-full") {
			t.Fatalf("a full disk is answered %s: %s", resp.Status, answer)
		}
		refused++
	}
	if acked == 0 || refused == 0 {
		t.Fatalf("%d batches acknowledged, %d refused: the disk was never full", acked, refused)
	}
	resp, err := http.Get(up.url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // read to its end
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(answer), "--min-free-disk") {
		t.Errorf("ready on a full disk: %s %s %v", resp.Status, answer, err)
	}
	up.stop()
	code := <-up.done
	up.done = nil
	// With room again, the next start goes on from the disk and publishes the rest.
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, "size=400m"); err != nil {
		t.Fatal(err)
	}
	there := func() int {
		out := cli(t, "", append([]string{"cat", "big", "--dir", dir}, args[2:4]...)...)
		out.want(t, exitOK)
		return strings.Count(out.out, "\n")
	}
	// What was published late, while the disk filled up, may have made room for the end.
	if code == exitOK && there() != acked*1024 {
		t.Error("up could not seal on a full disk, and said nothing")
	}
	startUp(t, dir, args...).end(t)
	if got := there(); got != acked*1024 {
		t.Errorf("%d rows were acknowledged, %d are there", acked*1024, got)
	}
}

// TestFullDiskPasses: on a full disk appends are 507 and say what to do, what is there is
// read and published, and with room again rows are taken without a restart.
func TestFullDiskPasses(t *testing.T) {
	dir := mountSmall(t, "60m")
	up := startUp(t, dir, "--min-free-disk", "8MiB", "--store", "standard=file://"+t.TempDir(), "--preallocate", "off", "--shards", "1")
	body := bytes.Repeat([]byte(strings.Repeat("x", 1023)+"\n"), 1024)
	post := func() (int, http.Header, string) {
		resp, err := http.Post(up.url+"/v1/streams/big/rows", "text/plain", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }() // read to its end
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header, string(answer)
	}
	acked := 0
	eventually(t, "the disk is full", func() bool {
		code, header, answer := post()
		if code == http.StatusOK {
			acked++
			return false
		}
		if code != http.StatusInsufficientStorage || header.Get("Retry-After") == "" || !strings.Contains(answer, `"disk-full"`) || !strings.Contains(answer, "appends go on by themselves") {
			t.Fatalf("a full disk is answered %d %v: %s", code, header, answer)
		}
		return true
	})
	rows := func() int {
		r := cli(t, "", "cat", "big", "--server", up.url)
		r.want(t, exitOK)
		return strings.Count(r.out, "\n")
	}
	if got := rows(); got != acked*1024 {
		t.Errorf("%d rows were acknowledged, %d are read on the full disk", acked*1024, got)
	}
	resp, err := http.Post(up.url+"/v1/flush", "", nil) // what is here is published all the same
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
		t.Errorf("publishing on a full disk: %s", resp.Status)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, "size=400m"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "rows are taken again", func() bool { code, _, _ := post(); return code == http.StatusOK })
	if got := rows(); got != (acked+1)*1024 {
		t.Errorf("%d rows were acknowledged, %d are read", (acked+1)*1024, got)
	}
}

// TestDay is an ordinary day: append, read, list, trim, delete, audit, check.
func TestDay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	up := startUp(t, dir, "--shards", "2")
	r := cli(t, "one\ntwo\nthree", "append", "day", "--server", up.url, "--ack", "shared", "--json")
	r.want(t, exitOK)
	var got appended
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || got.Rows != 3 || got.Last != got.First+2 {
		t.Fatalf("append printed %s: %v", r.out, err)
	}
	cli(t, "", "cat", "day", "--dir", dir).want(t, exitOK, "one\ntwo\nthree\n")
	cli(t, "", "cat", "day", "--dir", dir, "--from", fmt.Sprint(got.First+1), "--to", fmt.Sprint(got.First+1)).want(t, exitOK)
	ndjson := `{"k":"a/b","n":1}` + "\n" + `{"k":7,"n":2}` + "\n" + `{"k":"..","n":3}` + "\n"
	cli(t, ndjson, "append", "--key-field", "k", "--server", up.url, "--ack", "shared").want(t, exitOK, "3 rows into 3 streams")
	cli(t, "", "cat", "a/b", "--dir", dir).want(t, exitOK, `{"k":"a/b","n":1}`)
	cli(t, "", "cat", "7", "--dir", dir, "--ndjson").want(t, exitOK, `"stream":"7"`)
	cli(t, "", "cat", "..", "--dir", dir).want(t, exitOK, `"n":3`)
	for _, args := range [][]string{{"cat", "nothing"}, {"trim", "nothing", "1"}, {"rm", "nothing"}} {
		r := cli(t, "", append(args, "--dir", dir)...)
		if r.want(t, exitFailed, `"nothing": no such stream`, "strandline streams"); strings.Contains(r.err, "catalog:") {
			t.Errorf("%v: %s", args, r.err)
		}
	}
	cli(t, "no json\n", "append", "--key-field", "k", "--server", up.url).want(t, exitFailed, "line 1")
	cli(t, "", "streams", "--dir", dir).want(t, exitOK, "day", "a/b")
	cli(t, "", "status", "--dir", dir, "--json").want(t, exitOK, `"chains"`, `"objects"`)
	cli(t, "", "fsck", "--dir", dir, "--json").want(t, exitOK, `"verdict": "clean"`)

	cli(t, "", "trim", "day", "999", "--dir", dir).want(t, exitFailed, "tip")
	cli(t, "", "trim", "day", fmt.Sprint(got.Last), "--dir", dir).want(t, exitOK, "trimmed")
	cli(t, "", "cat", "day", "--dir", dir).want(t, exitOK, "three\n")
	cli(t, "", "cat", "day", "--dir", dir, "--from", fmt.Sprint(got.First)).want(t, exitFailed, "trimmed")
	cli(t, "", "rm", "a/b", "--dir", dir).want(t, exitOK, "deleted")
	// Rows that are only on the writer's disk go with their stream.
	cli(t, "x\ny\n", "append", "gone", "--server", up.url).want(t, exitOK)
	cli(t, "", "rm", "gone", "--dir", dir).want(t, exitOK, "deleted")
	up.end(t)
	audit := []string{"auditor", "--once", "--dir", dir, "--auditor-read-grace", "1s", "--auditor-orphan-grace", "10s", "--settle-age", "0s"}
	cli(t, "", audit...).want(t, exitOK, "settle")
	cli(t, "", "fsck", "--dir", dir).want(t, exitOK, "clean")
	cli(t, "", "cat", "day", "--dir", dir).want(t, exitOK, "three\n")
	for _, name := range []string{"a/b", "gone"} {
		r := cli(t, "", "cat", name, "--dir", dir)
		if r.want(t, exitFailed, "stream deleted", "stand from 1."); strings.Contains(r.err, " at 0.0") || r.out != "" {
			t.Errorf("%+v", r)
		}
	}
}

// TestDamage: a flipped byte in the bucket is found by cat and by fsck, with the
// place, and with the exit code of damage.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	up := startUp(t, dir, "--shards", "1")
	cli(t, strings.Repeat("some row or other\n", 1000), "append", "s", "--server", up.url, "--ack", "shared").want(t, exitOK)
	up.end(t)
	var slot string
	err := filepath.Walk(filepath.Join(dir, "bucket"), func(p string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && strings.Contains(p, "/seg/") {
			slot = p
		}
		return err
	})
	if err != nil || slot == "" {
		t.Fatalf("no slot in the bucket: %v", err)
	}
	body, err := os.ReadFile(slot)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(slot, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := bytes.Clone(body)
	broken[170] ^= 1 // in the first chunk behind the reserved one, which readers never touch
	if err := os.WriteFile(slot, broken, 0o600); err != nil {
		t.Fatal(err)
	}
	cli(t, "", "cat", "s", "--dir", dir).want(t, exitDamage, "seg/", "fsck")
	cli(t, "", "fsck", "--dir", dir).want(t, exitOK, "clean") // the footer is whole
	cli(t, "", "fsck", "--dir", dir, "--no-footers").want(t, exitOK, "read 0 footers", "not looked into")
	cli(t, "", "fsck", "--dir", dir, "--deep").want(t, exitDamage, "damage", `stream "s" epoch 1 rows 1 to 1000`, "chunk at byte", "explain")
	cli(t, "", "fsck", "--dir", dir, "--settled").want(t, exitFailed, "unsettled", "owed     settle")
	cli(t, "", "fsck", "--dir", dir, "--deep", "--no-footers").want(t, exitUsage, "--no-footers")
	cli(t, "", "fsck", "--dir", dir, "--sample", "-1").want(t, exitUsage, "--sample")
	if err := os.WriteFile(slot, body[:len(body)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	cli(t, "", "fsck", "--dir", dir, "--json").want(t, exitDamage, `"verdict": "damage"`, `"stream": "s"`)
	if err := os.Remove(slot); err != nil {
		t.Fatal(err)
	}
	cli(t, "", "cat", "s", "--dir", dir).want(t, exitDamage, "lost")
	cli(t, "", "fsck", "--dir", dir, "--json").want(t, exitDamage, `"verdict": "damage"`, "not in the bucket")
}
