package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/localtier"
)

// roomyWriter is a writer that is not ready while its disk is too full for appends,
// which are refused then: a probe should send them elsewhere.
type roomyWriter struct {
	*localtier.Writer
	dir   string
	least int64 // negative: not checked
}

// errFullDisk is why a writer is not ready.
var errFullDisk = errors.New("the disk is full")

// Ready is nil while every shard takes rows.
func (w roomyWriter) Ready() error { return errors.Join(w.Writer.Ready(), w.room()) }

func (w roomyWriter) room() error {
	if w.least < 0 {
		return nil
	}
	var st unix.Statfs_t
	if err := unix.Statfs(w.dir, &st); err != nil {
		return fmt.Errorf("how full is %s: %w", w.dir, err)
	}
	free := int64(st.Bavail) * int64(st.Bsize) //nolint:gosec,unconvert // no disk passes an int64; the types differ by platform
	if free < w.least {
		return fmt.Errorf("%w: %s has %s left, --min-free-disk is %s: appends are refused until there is more room", errFullDisk, w.dir, bytesText(free), bytesText(w.least))
	}
	return nil
}
