//go:build unix

package wal

import (
	"os"
	"path/filepath"
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
