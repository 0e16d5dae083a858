package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
)

// TestSessionOfAFile: it ends with another file in its place, of which the connections here
// would never hear.
func TestSessionOfAFile(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "catalog.db")
	d, err := Open(ctx, Options{Path: path, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := d.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	within := catalog.Within(ctx, s)
	if _, err := d.Now(within); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".older", []byte("an older copy"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(path, path+".newest"), os.Rename(path+".older", path)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Now(within); !errors.Is(err, catalog.ErrSessionEnded) {
		t.Errorf("a read within the session of the file before: %v", err)
	}
	if err := d.Audit(within, "test", "", ""); !errors.Is(err, catalog.ErrSessionEnded) {
		t.Errorf("a write within it: %v", err)
	}
	// Nor does what is bound to no session go on in a file that nobody else sees.
	if _, err := d.Chains(ctx); !errors.Is(err, catalog.ErrUnavailable) || !strings.Contains(err.Error(), "end this process") {
		t.Errorf("a read in the file before: %v", err)
	}
	if err := d.Audit(ctx, "test", "", ""); !errors.Is(err, catalog.ErrUnavailable) {
		t.Errorf("a write in it: %v", err)
	}
	if s, err := d.Session(ctx); !errors.Is(err, catalog.ErrUnavailable) || !strings.Contains(err.Error(), "end this process") {
		t.Errorf("the session now: %q, %v", s, err)
	}
	if err := os.Rename(path+".newest", path); err != nil {
		t.Fatal(err)
	}
	if err := d.Audit(ctx, "test", "", ""); err != nil {
		t.Errorf("a write with the file in its place again: %v", err)
	}
}

// TestSessionThatEndsInTheQueue: a write that waits for others is held to its session when its
// turn comes.
func TestSessionThatEndsInTheQueue(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "catalog.db")
	d := openAt(t, path, nil)
	s, err := d.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	begun, goOn, before, behind := make(chan struct{}), make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		before <- d.write(ctx, "before", func(*tx) error {
			close(begun)
			<-goOn
			return nil
		})
	}()
	<-begun
	go func() { behind <- d.Audit(catalog.Within(ctx, s), "test", "", "") }()
	for end := time.Now().Add(time.Minute); len(d.writer.queue) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing waits")
		}
	}
	if err := errors.Join(os.WriteFile(path+".older", []byte("an older copy"), 0o600), os.Rename(path+".older", path)); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	if err := <-before; err != nil {
		t.Error(err)
	}
	if err := <-behind; !errors.Is(err, catalog.ErrSessionEnded) {
		t.Errorf("a write that waited while its session ended: %v", err)
	}
}
