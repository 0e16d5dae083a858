package filewatch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watched starts a watcher whose looks arrive in a channel.
func watched(t *testing.T, files ...string) <-chan struct{} {
	t.Helper()
	looks := make(chan struct{}, 100)
	w, err := Start(files, func() { looks <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("a second Close: %v", err)
		}
	})
	return looks
}

// soon fails if nothing is told well before the look that comes by itself.
func soon(t *testing.T, looks <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-looks:
	case <-time.After(Every - time.Second):
		t.Fatalf("%s was not noticed", what)
	}
}

func TestChanges(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tokens")
	looks := watched(t, file)
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("tokens", "one")
	soon(t, looks, "a file that came")
	put("tokens", "two")
	soon(t, looks, "a file that was written over")
	put("new", "three")
	soon(t, looks, "a file beside it")
	if err := os.Rename(filepath.Join(dir, "new"), file); err != nil {
		t.Fatal(err)
	}
	soon(t, looks, "a file put in its place")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	soon(t, looks, "a file that went")
}

// TestLinkSwap is how Kubernetes replaces what it mounts: tokens -> ..data/tokens, and
// ..data is a link that is renamed.
func TestLinkSwap(t *testing.T) {
	dir := t.TempDir()
	generation := func(name string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "tokens"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	generation("..1")
	generation("..2")
	link("..1", "..data")
	link("..data/tokens", "tokens")
	link("..2", "..new")
	looks := watched(t, filepath.Join(dir, "tokens"))
	if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	soon(t, looks, "a swapped link")
}

// TestElsewhere: a link into a folder that nobody watches is found by looking.
func TestElsewhere(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	if err := os.Symlink(filepath.Join(other, "tokens"), filepath.Join(dir, "tokens")); err != nil {
		t.Fatal(err)
	}
	looks := watched(t, filepath.Join(dir, "tokens"))
	if err := os.WriteFile(filepath.Join(other, "tokens"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-looks:
	case <-time.After(2 * Every):
		t.Fatal("nobody looked")
	}
}

func TestNoFolder(t *testing.T) {
	if w, err := Start([]string{filepath.Join(t.TempDir(), "none", "tokens")}, func() {}); err == nil {
		_ = w.Close()
		t.Fatal("a folder that is not there is watched")
	}
}
