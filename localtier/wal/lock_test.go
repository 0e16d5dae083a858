//go:build unix

package wal

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A lock file that was moved away with its directory between open and flock locks
// nothing here.
func TestLockOfAMovedDirectory(t *testing.T) {
	root := t.TempDir()
	dir, name := filepath.Join(root, "shard"), filepath.Join(root, "shard", "LOCK")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	f, err := lockOnce(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // a lock
	if here, err := isAt(f, name); err != nil || !here {
		t.Fatalf("before the move: %v, %v", here, err)
	}
	if err := os.Rename(dir, filepath.Join(root, "aside")); err != nil {
		t.Fatal(err)
	}
	if here, err := isAt(f, name); err != nil || here {
		t.Fatalf("after the move: %v, %v", here, err)
	}
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	lock, err := lockFile(name)
	if err != nil {
		t.Fatalf("the fresh directory: %v", err)
	}
	defer lock.Close() //nolint:errcheck // a lock
	if here, err := isAt(f, name); err != nil || here {
		t.Fatalf("beside the fresh file: %v, %v", here, err)
	}
	if _, err := lockFile(name); err == nil {
		t.Fatal("two locks on one directory")
	}
}

// TestHeld: who looks whether a log is served does not keep its server out, however many look.
func TestHeld(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	is := func(want bool) {
		t.Helper()
		if held, err := Held(name); err != nil || held != want {
			t.Errorf("held: %v, %v; want %v", held, err, want)
		}
	}
	is(false) // there is no file
	lock, err := lockFile(name)
	if err != nil {
		t.Fatal(err)
	}
	is(true)
	if _, err := lockFile(name); err == nil {
		t.Error("two locks of one file")
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	is(false) // whatever number is left in it

	// One that looks at this very moment is waited for.
	looks, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(looks.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	is(false) // nor do two of them meet
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // a lock
	pauses := 0
	err = flock(f, func() {
		if pauses++; pauses == 1 {
			err := looks.Close()
			if err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || pauses != 1 {
		t.Errorf("beside one that looked: %v after %d pauses", err, pauses)
	}
	is(true)
}
