package main

import (
	"bytes"
	"path/filepath"
	"testing"
)

// TestDemo is `make demo` on the whole corpus and a directory as bucket.
func TestDemo(t *testing.T) {
	dir := t.TempDir()
	runDemo(t, dir, fileBackend(dir), nil)
}

// TestDemoMinio is `make demo STORE=minio` on a sixth of the corpus.
func TestDemoMinio(t *testing.T) {
	dir := t.TempDir()
	back, done, err := minioBackend(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := done(); err != nil {
			t.Error(err)
		}
	})
	runDemo(t, dir, back, func(i int, _ *pkg) bool { return i%6 == 0 })
}

func runDemo(t *testing.T, dir string, back backend, keep func(int, *pkg) bool) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	source, err := goroot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = tell(t.Context(), options{root: root, source: source, dir: dir, shards: 4, keep: keep, out: &out, backend: back})
	t.Log("\n" + out.String())
	if err != nil {
		t.Fatal(err)
	}
}
