package fsstore

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/objstore"
)

// withoutRights runs f as someone who may read dir and write nothing in it: for
// root as another user, on a thread of its own; else with the modes changed.
func withoutRights(t *testing.T, dir string, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		chmodDirs(t, dir, 0o555)
		defer chmodDirs(t, dir, 0o755)
		f()
		return
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // t.TempDir's own is 0700
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with its user id
		if _, err := unix.SetfsuidRetUid(65534); err != nil {
			t.Error(err)
			return
		}
		if uid, err := unix.SetfsuidRetUid(-1); err != nil || uid != 65534 {
			t.Errorf("file system user is %d, %v", uid, err)
			return
		}
		f()
	}()
	<-done
}

func chmodDirs(t *testing.T, dir string, mode fs.FileMode) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, mode)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReadOnlyDirectory can be read, and every write to it is denied, by name.
func TestReadOnlyDirectory(t *testing.T) {
	dir := t.TempDir()
	d := prepare(t, dir, "replace")
	write(t, filepath.Join(dir, tmpDir, "put-leftover"), nil)
	later := func() time.Time { return time.Now().Add(2 * leftoverAge) }
	withoutRights(t, dir, func() {
		kind := func(what string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), objstore.ErrDenied.Error()) {
				t.Errorf("%s: %v, want %v", what, err, objstore.ErrDenied)
			}
		}
		d, err := Open(dir, Options{Clock: later}) // there is a leftover to sweep
		if err != nil {
			t.Errorf("open to read: %v", err)
			return
		}
		if _, err := d.Head(t.Context(), "a/b/k"); err != nil {
			t.Errorf("head: %v", err)
		}
		if page, err := d.List(t.Context(), "", "", "", 10); err != nil || len(page.Objects) != 1 {
			t.Errorf("list: %+v, %v", page, err)
		}
		kind("put", create(d, "new/key", "x"))
		kind("replace", perform(d, "replace"))
		kind("delete", perform(d, "delete"))
		_, err = d.CreateUpload(t.Context(), "k", nil)
		kind("create upload", err)
		_, err = Open(filepath.Join(dir, "sub", "bucket"), Options{Create: true})
		kind("create a bucket", err)
	})
	wantBody(t, d, "old")
}
