package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/catalog"
)

// TestHeldLockIsNotWaitedForForEver: a process that is stopped with the lock in hand
// makes others unavailable, with the file's name; when it lets go, the wait that was
// given up gives the lock back by itself, and the next one gets it.
func TestHeldLockIsNotWaitedForForEver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	mine, err := openTurnstile(path)
	if err != nil {
		t.Fatal(err)
	}
	mine.wait = 10 * time.Millisecond
	other, err := os.OpenFile(path+"-writer", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the second and third take the first's wait over
		if err := mine.lock(); !errors.Is(err, catalog.ErrUnavailable) {
			t.Fatalf("a held lock: want ErrUnavailable, got %v", err)
		}
	}
	given := mine.attempt
	if err := unix.Flock(int(other.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	<-given.done
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatalf("a wait that was given up keeps the lock: %v", err)
	}
	if err := unix.Flock(int(other.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	mine.wait = time.Minute
	if err := mine.lock(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		t.Fatal("lock returned without the lock")
	}
	if err := errors.Join(mine.unlock(), mine.close()); err != nil {
		t.Fatal(err)
	}
}
