//go:build unix

package access

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipe: a named pipe in the token file's place is a broken file, which nobody waits for;
// what is taken back in the next one is.
func TestPipe(t *testing.T) {
	_, one := entryOf(t, "one", "append")
	token, two := entryOf(t, "two", "append")
	r := open(t, one.Line(), two.Line())
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(pipe, r.path); err != nil {
		t.Fatal(err)
	}
	r.log.Until(t, "is no file")
	if v, _ := r.decide(Append, header(token)); v != granted {
		t.Errorf("verdict %d while the file is broken", v)
	}
	r.write(t, one.Line())
	r.log.Until(t, "read again")
	if v, _ := r.decide(Append, header(token)); v != unknown {
		t.Errorf("verdict %d on a token that was taken back", v)
	}
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(r.path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := FromFile(r.path); err == nil {
		t.Error("a pipe is a token")
	}
}
