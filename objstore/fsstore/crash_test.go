package fsstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
)

// The crash tests run this test binary as a process of its own that performs one
// write and leaves by os.Exit at a named step, so that nothing is cleaned up.
const (
	crashDir  = "FSSTORE_CRASH_DIR"
	crashStep = "FSSTORE_CRASH_STEP"
	crashWhat = "FSSTORE_CRASH_WHAT"
	crashed   = 42
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		crashHere(dir, os.Getenv(crashWhat), os.Getenv(crashStep))
	}
	if dir := os.Getenv(workerDir); dir != "" {
		if err := work(dir, os.Getenv(workerName)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// crashHere performs what and dies at the step. It exits with 0 if it never came
// to the step.
func crashHere(dir, what, step string) {
	d, err := Open(dir, Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	d.at = func(s string) error {
		if s == step {
			os.Exit(crashed)
		}
		return nil
	}
	if err := perform(d, what); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

var createOnce = objstore.PutOptions{IfNoneMatch: true, Meta: map[string]string{"n": "1"}}

// perform does one of the mutations on a fixed key.
func perform(d *Driver, what string) error {
	ctx := context.Background()
	put := func(body string, opts objstore.PutOptions) error {
		_, err := d.Put(ctx, "a/b/k", strings.NewReader(body), int64(len(body)), opts)
		return err
	}
	switch what {
	case "create":
		return put("new", createOnce)
	case "replace":
		info, err := d.Head(ctx, "a/b/k")
		if err != nil {
			return err
		}
		return put("new", objstore.PutOptions{IfMatch: info.ETag})
	case "delete":
		out, err := d.Delete(ctx, []string{"a/b/k"})
		if err != nil {
			return err
		}
		return out[0].Err
	}
	ups, err := d.ListUploads(ctx, "a/b/k")
	if err != nil || len(ups) != 1 {
		return fmt.Errorf("%d uploads, %w", len(ups), err)
	}
	p, err := d.UploadPart(ctx, "a/b/k", ups[0].ID, 1, strings.NewReader("new"), 3)
	if err != nil {
		return err
	}
	_, err = d.Complete(ctx, "a/b/k", ups[0].ID, []objstore.Part{p}, createOnce)
	return err
}

// kill runs what in a process that dies at step, and checks that it did.
func kill(t *testing.T, dir, what, step string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashWhat+"="+what, crashStep+"="+step)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != crashed {
		t.Fatalf("%s was to die at %q: %v, %s", what, step, err, out)
	}
}

// TestCrashPoints: the process dies at each step of each mutation. Afterwards the
// key holds the old state or the new one, whole; the mutation can be made again;
// and what is left in @tmp goes when it is an hour old, not before.
func TestCrashPoints(t *testing.T) {
	for _, c := range []struct {
		what, step string
		stands     string // bytes under the key after the crash; "" for none
	}{
		{"create", "create", ""},
		{"create", "write", ""},
		{"create", "sync", ""},
		{"create", "link", ""},
		{"create", "mkdir", ""},
		{"create", "syncdir", "new"},
		{"create", "syncparent", "new"},
		{"create", "linked", "new"},
		{"replace", "create", "old"},
		{"replace", "write", "old"},
		{"replace", "sync", "old"},
		{"replace", "rename", "old"},
		{"replace", "syncdir", "new"},
		{"replace", "syncparent", "new"},
		{"replace", "renamed", "new"},
		{"delete", "unlink", "old"},
		{"delete", "syncdelete", ""},
		{"delete", "prune", ""},
		{"complete", "write", ""},
		{"complete", "sync", ""},
		{"complete", "link", ""},
		{"complete", "syncdir", "new"},
		{"complete", "linked", "new"},
		{"complete", "drop", "new"},
	} {
		t.Run(c.what+"/"+c.step, func(t *testing.T) {
			dir := t.TempDir()
			d := prepare(t, dir, c.what)
			kill(t, dir, c.what, c.step)
			wantBody(t, d, c.stands)
			checkListing(t, d, c.stands != "")

			err := perform(d, c.what)
			if done := c.stands == "new"; done && (c.what == "create" || c.what == "complete") {
				if !errors.Is(err, objstore.ErrExists) && !errors.Is(err, objstore.ErrNotFound) {
					t.Errorf("again: %v", err)
				}
			} else if err != nil {
				t.Errorf("again: %v", err)
			}
			want := "new"
			if c.what == "delete" {
				want = ""
			}
			wantBody(t, d, want)
			checkLeftovers(t, dir)
		})
	}
}

// prepare brings the bucket into the state before the mutation.
func prepare(t *testing.T, dir, what string) *Driver {
	t.Helper()
	d, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	switch what {
	case "replace", "delete":
		if _, err := d.Put(t.Context(), "a/b/k", strings.NewReader("old"), 3, createOnce); err != nil {
			t.Fatal(err)
		}
	case "complete":
		if _, err := d.CreateUpload(t.Context(), "a/b/k", nil); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func wantBody(t *testing.T, d *Driver, want string) {
	t.Helper()
	rc, info, err := d.Get(t.Context(), "a/b/k", objstore.Whole, "")
	if want == "" {
		if !errors.Is(err, objstore.ErrNotFound) {
			t.Fatalf("want nothing there, got %+v, %v", info, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(rc); err != nil || b.String() != want {
		t.Fatalf("body %q, %v; want %q", b.String(), err, want)
	}
	if err := rc.Close(); err != nil {
		t.Fatal(err)
	}
}

func checkListing(t *testing.T, d *Driver, stands bool) {
	t.Helper()
	page, err := d.List(t.Context(), "", "", "", 10)
	if err != nil || (len(page.Objects) == 1) != stands || len(page.Objects) > 1 {
		t.Fatalf("listing %+v, %v; want the key in it: %v", page, err, stands)
	}
}

// checkLeftovers opens the bucket at once, an hour later and a little later still:
// only then may files of writes in progress be taken for leftovers.
func checkLeftovers(t *testing.T, dir string) {
	t.Helper()
	count := func() int {
		entries, err := os.ReadDir(filepath.Join(dir, tmpDir))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := count()
	for _, later := range []time.Duration{0, leftoverAge - time.Minute} {
		if _, err := Open(dir, Options{Clock: func() time.Time { return time.Now().Add(later) }}); err != nil {
			t.Fatal(err)
		}
		if got := count(); got != before {
			t.Errorf("%v later: %d of %d leftovers stand", later, got, before)
		}
	}
	if _, err := Open(dir, Options{Clock: func() time.Time { return time.Now().Add(leftoverAge + time.Minute) }}); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != 0 {
		t.Errorf("%d leftovers after the sweep", got)
	}
}

// TestSyncOrder: bytes are synced before they get their name, the name before the
// answer, and new directories too.
func TestSyncOrder(t *testing.T) {
	d := prepare(t, t.TempDir(), "create")
	var steps []string
	d.at = func(s string) error { steps = append(steps, s); return nil }
	if err := perform(d, "create"); err != nil {
		t.Fatal(err)
	}
	// a/b is new: b's entry is in a, a's in the root.
	want := []string{"create", "write", "sync", "link", "mkdir", "link", "syncdir", "syncparent", "syncparent", "linked"}
	if !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
	steps = nil
	if _, err := d.Put(t.Context(), "a/b/other", strings.NewReader(""), 0, createOnce); err != nil {
		t.Fatal(err)
	}
	if _, ok := identify(d.root); ok && slices.Contains(steps, "syncparent") {
		t.Errorf("directories known to be durable are synced again: %q", steps)
	}
	// The directory is pruned and made again by another process: it is another one.
	if err := perform(d, "delete"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Delete(t.Context(), []string{"a/b/other"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(d.root, "a")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("not pruned: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(d.root, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	steps = nil
	if err := perform(d, "create"); err != nil {
		t.Fatal(err)
	}
	if n := len(slices.DeleteFunc(steps, func(s string) bool { return s != "syncparent" })); n != 2 {
		t.Errorf("%d syncs of parents, want 2: directories of unknown makers are not durable yet", n)
	}
}
