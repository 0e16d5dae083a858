package fsstore

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/strandline/strandline/objstore"
)

func wantKind(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got %v, want %v", err, kind)
	}
	var e *objstore.Error
	if !errors.As(err, &e) || e.Op == "" || e.Key == "" {
		t.Fatalf("%v does not say what was being done, and to what", err)
	}
}

// TestSystemErrors: what the file system says, at each step, by kind; and nothing
// is left behind.
func TestSystemErrors(t *testing.T) {
	for _, c := range []struct {
		what, step string
		errno      syscall.Errno
		kind       error
	}{
		{"create", "create", syscall.ENOSPC, objstore.ErrNoSpace},
		{"create", "write", syscall.ENOSPC, objstore.ErrNoSpace},
		{"create", "sync", syscall.ENOSPC, objstore.ErrNoSpace},
		{"create", "sync", syscall.EIO, objstore.ErrUnavailable},
		{"create", "mkdir", syscall.ENOSPC, objstore.ErrNoSpace},
		{"create", "link", syscall.EDQUOT, objstore.ErrNoSpace},
		{"create", "create", syscall.EROFS, objstore.ErrDenied},
		{"create", "create", syscall.EACCES, objstore.ErrDenied},
		{"create", "mkdir", syscall.EACCES, objstore.ErrDenied},
		{"create", "link", syscall.EPERM, objstore.ErrUnsupported}, // FAT: no hard links
		{"create", "link", syscall.EXDEV, objstore.ErrUnsupported},
		{"create", "syncdir", syscall.EIO, objstore.ErrAmbiguous},
		{"create", "syncparent", syscall.ENOSPC, objstore.ErrAmbiguous},
		{"replace", "rename", syscall.EROFS, objstore.ErrDenied},
		{"replace", "syncdir", syscall.EIO, objstore.ErrAmbiguous},
		{"delete", "unlink", syscall.EROFS, objstore.ErrDenied},
		{"delete", "syncdelete", syscall.EIO, objstore.ErrAmbiguous},
		{"complete", "write", syscall.ENOSPC, objstore.ErrNoSpace},
		{"complete", "link", syscall.EIO, objstore.ErrUnavailable},
	} {
		t.Run(c.what+"/"+c.step+"/"+c.errno.Error(), func(t *testing.T) {
			d := prepare(t, t.TempDir(), c.what)
			hit := false
			d.at = func(s string) error {
				if s == c.step {
					hit = true
					return &os.PathError{Op: s, Path: "x", Err: c.errno}
				}
				return nil
			}
			wantKind(t, perform(d, c.what), c.kind)
			if !hit {
				t.Fatal("the step was not reached")
			}
			if left, err := os.ReadDir(filepath.Join(d.root, tmpDir)); err != nil || len(left) != 0 {
				t.Errorf("left in @tmp: %v, %v", left, err)
			}
			d.at = func(string) error { return nil }
			err := perform(d, c.what)
			if err != nil && !errors.Is(c.kind, objstore.ErrAmbiguous) {
				t.Errorf("once the cause is gone: %v", err)
			}
		})
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(filepath.Join(dir, "none"), Options{})
	wantKind(t, err, objstore.ErrNotFound)
	if !strings.Contains(err.Error(), filepath.Join(dir, "none")) || !strings.Contains(err.Error(), "strandline up") {
		t.Errorf("the message lacks the path or the next step: %v", err)
	}
	_, err = Open(dir, Options{})
	wantKind(t, err, objstore.ErrNotFound) // a directory that is no bucket, as under an unmounted file system

	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Open(file, Options{Create: true})
	wantKind(t, err, objstore.ErrInvalid)

	deep := filepath.Join(dir, "x", "y", "z")
	if _, err := Open(deep, Options{Create: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(deep, Options{}); err != nil {
		t.Fatal(err)
	}
	// /proc takes no directories, whoever asks.
	if _, serr := os.Stat("/proc/self"); serr == nil {
		_, err = Open("/proc/self/bucket", Options{Create: true})
		if err == nil {
			t.Error("a bucket in /proc")
		}
		var e *objstore.Error
		if !errors.As(err, &e) {
			t.Errorf("untyped: %v", err)
		}
	}
}

// TestVanishedBucket: an unmounted file system is not an empty bucket.
func TestVanishedBucket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bucket")
	d, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := perform(d, "create"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		ctx := t.Context()
		_, _, err := d.Get(ctx, "a/b/k", objstore.Whole, "")
		wantKind(t, err, objstore.ErrUnavailable)
		_, err = d.Head(ctx, "a/b/k")
		wantKind(t, err, objstore.ErrUnavailable)
		_, err = d.List(ctx, "a/", "", "", 10)
		wantKind(t, err, objstore.ErrUnavailable)
		_, err = d.Delete(ctx, []string{"a/b/k"})
		wantKind(t, err, objstore.ErrUnavailable)
		_, err = d.ListUploads(ctx, "a/")
		if err == nil {
			t.Error("uploads listed")
		}
		if err := perform(d, "create"); err == nil {
			t.Error("a put went nowhere")
		}
	}
	check()
	if err := os.Mkdir(dir, 0o755); err != nil { // the mount point
		t.Fatal(err)
	}
	check()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("something was made at the mount point: %v, %v", entries, err)
	}
}

// TestDamage: files that are not objects read as corrupt, and are listed.
func TestDamage(t *testing.T) {
	d := prepare(t, t.TempDir(), "replace")
	path := d.objectPath("a/b/k")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		if i < 3 {
			continue // the body's own checksums are its reader's business
		}
		bad := bytes.Clone(whole)
		bad[i] ^= 1
		write(t, path, bad)
		_, err := d.Head(t.Context(), "a/b/k")
		wantKind(t, err, objstore.ErrCorrupt)
	}
	for n := range len(whole) {
		write(t, path, whole[:n])
		_, _, err := d.Get(t.Context(), "a/b/k", objstore.Whole, "")
		wantKind(t, err, objstore.ErrCorrupt)
	}
	page, err := d.List(t.Context(), "a/", "", "", 10)
	if err != nil || len(page.Objects) != 1 || page.Objects[0].ETag != "" {
		t.Errorf("listing of a damaged object: %+v, %v", page, err)
	}
	write(t, path, whole)
	wantBody(t, d, "old")
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestForeignFiles in the directory are nobody's objects.
func TestForeignFiles(t *testing.T) {
	d := prepare(t, t.TempDir(), "replace")
	for _, name := range []string{".DS_Store", "README", "UPPER@", "a/b/x.tmp", "@", "+", "a/b/%1@", "a/b/%@"} {
		write(t, filepath.Join(d.root, name), []byte("x"))
	}
	for _, name := range []string{"lost+found", "+", "a/%", "dir@"} {
		if err := os.MkdirAll(filepath.Join(d.root, name, "in@"), 0o755); err != nil && name != "+" {
			t.Fatal(err)
		}
	}
	checkListing(t, d, true)
	if ups, err := d.ListUploads(t.Context(), ""); err != nil || len(ups) != 0 {
		t.Errorf("%v, %v", ups, err)
	}
}

func TestShortBodyIsInvalid(t *testing.T) {
	d := prepare(t, t.TempDir(), "create")
	_, err := d.Put(t.Context(), "k", strings.NewReader("abc"), 4, createOnce)
	wantKind(t, err, objstore.ErrInvalid)
	_, err = d.Put(t.Context(), "k", strings.NewReader("abc"), -1, createOnce)
	wantKind(t, err, objstore.ErrInvalid)
	if left, err := os.ReadDir(filepath.Join(d.root, tmpDir)); err != nil || len(left) != 0 {
		t.Errorf("left in @tmp: %v, %v", left, err)
	}
}

// TestLockIsWaitedForWithPatience, and given up when ctx ends.
func TestLockEndsWithContext(t *testing.T) {
	d := prepare(t, t.TempDir(), "replace")
	other, err := Open(d.root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	release, err := other.lock(t.Context(), objstore.OpPut, "a/b/k")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error, 1)
	go func() {
		_, err := d.Put(ctx, "a/b/k", strings.NewReader("new"), 3, objstore.PutOptions{})
		got <- err
	}()
	cancel()
	wantKind(t, <-got, objstore.ErrUnavailable)
	release()
	wantBody(t, d, "old")
	if err := perform(d, "replace"); err != nil {
		t.Errorf("after the lock was given back: %v", err)
	}
}

// TestAbortDuringPart: the part finds its upload gone, and leaves nothing.
func TestAbortDuringPart(t *testing.T) {
	d := prepare(t, t.TempDir(), "create")
	id, err := d.CreateUpload(t.Context(), "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	d.at = func(step string) error {
		if step == "write" {
			return d.Abort(t.Context(), "k", id)
		}
		return nil
	}
	_, err = d.UploadPart(t.Context(), "k", id, 1, strings.NewReader("x"), 1)
	wantKind(t, err, objstore.ErrNotFound)
	if !strings.Contains(err.Error(), id) {
		t.Errorf("the message does not name the upload: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(d.root, tmpDir)); err != nil || len(left) != 0 {
		t.Errorf("left in @tmp: %v, %v", left, err)
	}
}
