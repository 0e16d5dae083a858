package fsstore

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/objstore"
)

const (
	// stripeCount keeps unrelated keys apart well enough; the files are never removed.
	stripeCount = 64
	// lockPoll is how often another process's lock is tried again; a lock is held for
	// a rename and a few fsyncs.
	lockPoll = 2 * time.Millisecond
)

// lock holds the key against replaces and deletes of all processes. Within the
// process a channel comes first, so that goroutines wait without polling.
func (d *Driver) lock(ctx context.Context, op objstore.Op, key string) (release func(), err error) {
	h := fnv.New32a()
	h.Write([]byte(key)) // never fails, by hash.Hash's contract
	n := h.Sum32() % stripeCount
	select {
	case d.stripes[n] <- struct{}{}:
	case <-ctx.Done():
		return nil, fsError(string(op), key, ctx.Err())
	}
	f, err := os.OpenFile(filepath.Join(d.root, locksDir, fmt.Sprintf("%02x", n)), os.O_CREATE|os.O_RDWR, 0o644)
	if err == nil {
		err = flock(ctx, f)
	}
	if err != nil {
		<-d.stripes[n]
		return nil, fsError(string(op), key, err)
	}
	return func() {
		// Closing the file is what unlocks it; there is nothing to be lost in it.
		_ = f.Close()
		<-d.stripes[n]
	}, nil
}

// flock locks f, or closes it.
func flock(ctx context.Context, f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return errors.Join(err, f.Close())
		}
		t := time.NewTimer(lockPoll)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return errors.Join(ctx.Err(), f.Close())
		}
	}
}
