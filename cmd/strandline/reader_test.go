//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/strandline/strandline/internal/pgserver"
	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/segment"
)

func TestReaderUsage(t *testing.T) {
	cli(t, "", "reader", "--http", "0.0.0.0:1", "--follow-poll", "1ms", "--shutdown-timeout", "0s", "--store", "standard=x://y").
		want(t, exitUsage, "--http", "--follow-poll 1ms", "--shutdown-timeout")
	cli(t, "", "reader", "--http", "").want(t, exitUsage, "--http")
}

// get is one answer of a route.
func get(t *testing.T, method, url, body string) (code int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // read below
	var b strings.Builder
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		b.WriteString(s.Text() + "\n")
	}
	return resp.StatusCode, b.String()
}

// TestReader serves every route that only reads, from catalog and bucket alone, and sends
// who wants to write to the owner.
func TestReader(t *testing.T) {
	tier := shared(t)
	w := startWriter(t, tier, t.TempDir(), "--shards", "0,1,2")
	mine, nobodys := streamOf(4, 1), streamOf(4, 3)
	cli(t, "one\ntwo\n", "append", mine, "--ack", "shared", "--server", w.url).want(t, exitOK)
	cli(t, "", "consumers", "create", "1", "c", "--server", w.url).want(t, exitOK)
	cli(t, "three\n", "append", mine, "--ack", "shared", "--server", w.url).want(t, exitOK)
	r := start(t, with([]string{"reader", "--follow-poll", "50ms"}, tier...)...)
	wantReady(t, r.url, http.StatusOK, "ready")
	for _, c := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"GET", "/v1/streams/" + mine + "/rows?from=2", "", 200, `"payload":"three"`},
		{"GET", "/v1/shards/1/rows", "", 200, `"payload":"one"`},
		{"GET", "/v1/streams", "", 200, mine},
		{"GET", "/v1/shards/1/consumers", "", http.StatusMisdirectedRequest, w.url},
		{"GET", "/v1/shards", "", 200, "[]"},
		{"GET", "/v1/status", "", 200, `"chains"`},
		{"GET", "/v1/explain?stream=" + mine + "&pos=1", "", 200, mine},
		{"GET", "/v1/openapi.json", "", 200, "openapi"},
		{"GET", "/healthz", "", 200, "alive"},
		{"POST", "/v1/streams/" + mine + "/rows", "x", http.StatusMisdirectedRequest, w.url},
		{"POST", "/v1/streams/" + nobodys + "/rows", "x", http.StatusNotImplemented, "read-only"},
		{"POST", "/v1/shards/1/consumers/c/ack", `{"seq":1}`, http.StatusMisdirectedRequest, w.url},
		{"POST", "/v1/streams/" + mine + "/trim", `{"below":"2"}`, http.StatusMisdirectedRequest, w.url},
		{"DELETE", "/v1/streams/" + mine, "", http.StatusMisdirectedRequest, w.url},
		{"DELETE", "/v1/streams/" + nobodys, "", http.StatusNotImplemented, "read-only"},
	} {
		code, text := get(t, c.method, r.url+c.path, c.body)
		if code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%s %s: %d %s", c.method, c.path, code, text)
		}
	}
	if got := readRows(t, r.url, mine); len(got) != 3 {
		t.Errorf("%v", got)
	}
	w.end(t) // who only reads needs no writer
	if got := readRows(t, r.url, mine); len(got) != 3 {
		t.Errorf("%v", got)
	}
	cli(t, "x\n", "append", mine, "--server", r.url).want(t, exitFailed, "takes no rows")
}

// TestReaderGoesOnToTheNextEpoch: the shard of a stream is the new epoch's.
func TestReaderGoesOnToTheNextEpoch(t *testing.T) {
	t.Parallel()
	tier := shared(t)
	w := startWriter(t, tier, t.TempDir())
	r := start(t, with([]string{"reader"}, tier...)...)
	name := "of-the-last-shard"
	for i := 0; segment.ShardOf(name, 9) < 4; i++ {
		name = fmt.Sprint("stream-", i)
	}
	cli(t, "", with([]string{"topology", "set", "--shards", "9"}, tier...)...).want(t, exitOK)
	cli(t, "x\n", "append", name, "--ack", "shared", "--server", w.url).want(t, exitOK)
	eventually(t, "the reader knows the new epoch", func() bool {
		code, text := get(t, "POST", r.url+"/v1/streams/"+name+"/rows", "x")
		return code == http.StatusMisdirectedRequest && strings.Contains(text, fmt.Sprintf("shard %d", segment.ShardOf(name, 9)))
	})
	if got := readRows(t, r.url, name); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// TestReaderWithABucketAway starts beside a bucket that is away, whichever it is, and
// before there is a deployment.
func TestReaderWithABucketAway(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "user")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	dir := t.TempDir()
	catalog := "sqlite://" + filepath.Join(dir, "catalog.db")
	a, b := "file://"+filepath.Join(dir, "a"), "file://"+filepath.Join(dir, "b")
	const gone = "minio://127.0.0.1:1/gone?tls=false"
	early := make(chan *running, 1)
	go func() {
		defer close(early) // also if it did not start
		early <- start(t, "reader", "--catalog", catalog, "--store", "standard="+a+","+b)
	}()
	w := start(t, "writer", "--dir", filepath.Join(dir, "disk"), "--catalog", catalog, "--store", "standard="+a+","+b)
	cli(t, "x\ny\n", "append", "s", "--server", w.url, "--ack", "shared").want(t, exitOK)
	first, started := <-early
	if !started {
		t.FailNow() // it said why
	}
	readers := []*running{first}
	for _, set := range []string{a + "," + gone, gone + "," + b} {
		readers = append(readers, start(t, "reader", "--catalog", catalog, "--store", "standard="+set))
	}
	for _, r := range readers {
		wantReady(t, r.url, http.StatusOK, "ready")
		if got := readRows(t, r.url, "s"); len(got) != 2 {
			t.Errorf("%v", got)
		}
	}
}

// TestAuditorServes: health, status with what it did, explain; no rows.
func TestAuditorServes(t *testing.T) {
	tier := shared(t)
	w := startWriter(t, tier, t.TempDir())
	cli(t, "one\n", "append", "s", "--ack", "shared", "--server", w.url).want(t, exitOK)
	a := start(t, with([]string{"auditor", "--settle-age", "0s"}, tier...)...)
	wantReady(t, a.url, http.StatusOK, "ready")
	eventually(t, "its status shows what it did", func() bool {
		code, text := get(t, "GET", a.url+"/v1/status", "")
		var st struct {
			Chains  []any
			Auditor struct {
				Duties map[string]struct{ Items int }
			}
		}
		return code == http.StatusOK && json.Unmarshal([]byte(text), &st) == nil && len(st.Chains) == 4 && st.Auditor.Duties["settle"].Items > 0
	})
	if code, text := get(t, "GET", a.url+"/v1/explain?stream=s&pos=1", ""); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	if code, text := get(t, "GET", a.url+"/v1/streams/s/rows", ""); code != http.StatusNotFound || !strings.Contains(text, "no-such-route") {
		t.Errorf("%d %s", code, text)
	}
}

// TestManyMachines: three writers on twelve shards, two auditors and two readers, all as
// processes on PostgreSQL and MinIO, without a directory but the writers'.
func TestManyMachines(t *testing.T) {
	binary := buildBinary(t)
	server := realstore.Minio(t)
	t.Setenv("AWS_ACCESS_KEY_ID", server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", server.SecretKey)
	t.Setenv("STRANDLINE_CATALOG", pgserver.NewDatabase(t))
	t.Setenv("STRANDLINE_STORE", "standard=minio://"+server.Endpoint+"/"+server.NewBucket(t)+"?tls=false")
	t.Setenv("STRANDLINE_HTTP", "127.0.0.1:0")
	first := startProcess(t, binary, "up", "--dir", t.TempDir(), "--shards", "12")
	if code := exitOf(first.end(15)); code != exitOK {
		t.Fatalf("exit %d: %s", code, first.log)
	}
	var writers, others []*child
	for i := range 3 {
		writers = append(writers, startProcess(t, binary, "writer", "--dir", t.TempDir(), "--shard-index", fmt.Sprint(i), "--shard-count", "3", "--segment-age", "1s", "--steal"))
	}
	for _, command := range []string{"auditor", "auditor", "reader", "reader"} {
		args := []string{command}
		if command == "auditor" {
			args = append(args, "--settle-age", "0s")
		}
		others = append(others, startProcess(t, binary, args...))
	}
	for _, p := range append(writers, others...) {
		wantReady(t, p.url, http.StatusOK, "ready")
	}
	want := map[string]int{}
	for i := range 24 {
		name := streamOf(12, segment.Shard(i%12)) + strings.Repeat("", i)
		owner := writers[i%12%3]
		cli(t, strings.Repeat(fmt.Sprintf("row of %d\n", i), 50), "append", name, "--ack", "shared", "--server", owner.url).want(t, exitOK, "50 rows")
		want[name] += 50
		if code, text := get(t, "POST", others[2].url+"/v1/streams/"+name+"/rows", "x"); code != http.StatusMisdirectedRequest || !strings.Contains(text, owner.url) {
			t.Errorf("a reader does not know who owns %s: %d %s", name, code, text)
		}
	}
	// Rows as few as these are settled into packs, of all streams together.
	eventually(t, "an auditor has settled something", func() bool {
		var st statusOut
		r := cli(t, "", "status", "--json")
		return r.code == exitOK && json.Unmarshal([]byte(r.out), &st) == nil && st.Objects["pack"].Objects > 0
	})
	for _, r := range others[2:] {
		for name, n := range want {
			if got := readRows(t, r.url, name); len(got) != n {
				t.Errorf("%s: %d rows, want %d", name, len(got), n)
			}
		}
	}
	for _, p := range append(others, writers...) {
		if code := exitOf(p.end(15)); code != exitOK {
			t.Errorf("exit %d: %s", code, p.log)
		}
	}
	cli(t, "", "fsck").want(t, exitOK, "clean")
}

// saying calls a function once something says a text.
type saying struct {
	lockedBuffer
	text string
	then func()
}

func (s *saying) Write(p []byte) (int, error) {
	n, err := s.lockedBuffer.Write(p)
	if strings.Contains(s.String(), s.text) {
		s.then()
	}
	return n, err
}

// TestAppendToNobodysShard: an append waits a while for somebody to take the shard, and says so
// before it does: which shard, that nobody has it, and what to do.
func TestAppendToNobodysShard(t *testing.T) {
	tier := shared(t)
	w := startWriter(t, tier, t.TempDir(), "--shards", "0-2")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	said := &saying{text: "waiting, and trying again", then: stop}
	code := run(ctx, []string{"append", streamOf(4, 3), "--server", w.url}, streams{in: strings.NewReader("x\n"), out: io.Discard, err: said})
	if code == exitOK || ctx.Err() == nil {
		t.Errorf("it did not wait: exit %d", code)
	}
	for _, text := range []string{"shard 3", "taken by no process", "strandline writer --shards 3"} {
		if line, _, _ := strings.Cut(said.String(), "\n"); !strings.Contains(line, text) {
			t.Errorf("the first line does not say %q: %s", text, line)
		}
	}
	w.end(t)
}
