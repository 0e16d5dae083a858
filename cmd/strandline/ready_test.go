//go:build unix

package main

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/localtier/wal"
)

// TestFencedWriterIsNotReady: whoever lost a shard takes no rows for it.
func TestFencedWriterIsNotReady(t *testing.T) {
	tier := shared(t)
	a := startWriter(t, tier, t.TempDir(), "--lease-time", "1s")
	wantReady(t, a.url, http.StatusOK, "ready")
	b := startWriter(t, tier, t.TempDir(), "--steal", "--shards", "1")
	wantReady(t, a.url, http.StatusServiceUnavailable, "fenced")
	wantReady(t, b.url, http.StatusOK, "ready")
	a.stop()
	if code := <-a.done; code != exitFenced {
		t.Errorf("it ended with %d: %s", code, a.errs)
	}
	a.done = nil
}

// brittle is a file layer whose fdatasync fails once it is told to.
type brittle struct {
	wal.FS
	breaks, hit *atomic.Bool
}

type brittleFile struct {
	wal.File
	fs brittle
}

func (f brittleFile) Sync() error {
	if f.fs.breaks.Load() {
		f.fs.hit.Store(true)
		return errors.New("the disk is broken")
	}
	return f.File.Sync()
}

func (f brittle) Create(name string) (wal.File, error) {
	file, err := f.FS.Create(name)
	return brittleFile{file, f}, err
}

func (f brittle) OpenWrite(name string) (wal.File, error) {
	file, err := f.FS.OpenWrite(name)
	return brittleFile{file, f}, err
}

// TestPoisonedWriterIsNotReady: after a failed fdatasync nothing is acknowledged, and probes
// are told.
func TestPoisonedWriterIsNotReady(t *testing.T) {
	fs := brittle{wal.OSFS(false), &atomic.Bool{}, &atomic.Bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := &app{streams: streams{in: strings.NewReader(""), out: &signalling{make(chan string, 1)}, err: &lockedBuffer{}}, logLevel: "error"}
	log, err := a.logger()
	if err != nil {
		t.Fatal(err)
	}
	o := &ownerFlags{listen: listenFlags{http: "127.0.0.1:0", shutdown: drainTime}, backend: backendFlags{dir: t.TempDir()}}
	o.otlp.attribute, o.otlp.stream = "service.name", "logs"
	o.writer.WAL.FS = fs
	tr, err := o.backend.open(ctx, modeCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	top, err := foundEpoch(ctx, tr, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{app: a, flags: o, tier: tr, log: log, shards: allShards}
	done := make(chan error, 1)
	go func() { done <- s.run(ctx, top) }()
	url := strings.Fields(<-a.out.(*signalling).wrote)[2]
	wantReady(t, url, http.StatusOK, "ready")
	fs.breaks.Store(true)
	if r := cli(t, "row\n", "append", "s", "--server", url); r.code == exitOK || !fs.hit.Load() {
		t.Errorf("acknowledged after a failed fdatasync: %+v", r)
	}
	wantReady(t, url, http.StatusServiceUnavailable, "poison")
	cancel()
	<-done // it says what it could not publish
}

// TestReadinessOfReaderAndAuditor: without catalog or bucket for a while they are not ready,
// and with them they are again, by themselves.
func TestReadinessOfReaderAndAuditor(t *testing.T) {
	server := realstore.Own(t, realstore.KindMinio, false)
	bucket := server.NewBucket(t)
	t.Setenv("AWS_ACCESS_KEY_ID", server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", server.SecretKey)
	tier := []string{"--catalog", "sqlite://" + filepath.Join(t.TempDir(), "catalog.db"), "--store", "standard=minio://" + server.Endpoint + "/" + bucket + "?tls=false"}
	w := startWriter(t, tier, t.TempDir())
	cli(t, "one\n", "append", "s", "--ack", "shared", "--server", w.url).want(t, exitOK)
	w.end(t)
	reader := start(t, with([]string{"reader"}, tier...)...)
	auditor := start(t, with([]string{"auditor", "--auditor-read-grace", "3s"}, tier...)...)
	for _, p := range []*running{reader, auditor} {
		wantReady(t, p.url, http.StatusOK, "ready")
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*running{reader, auditor} {
		wantReady(t, p.url, http.StatusServiceUnavailable, "not reached for")
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*running{reader, auditor} {
		wantReady(t, p.url, http.StatusOK, "ready")
	}
}
