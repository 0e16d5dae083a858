package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/localtier"
)

// servingWriter is a writer that is not ready while its disk is too full for appends,
// which are refused then: a probe should send them elsewhere. Nor is it one whose catalog a
// newer build has migrated: it acknowledges what still comes as while the catalog is away,
// until its lease is over (03 §1), and can publish none of it.
type servingWriter struct {
	*localtier.Writer
	dir   string
	least int64        // negative: not checked
	newer func() error // nil: nobody looks
}

func (s *service) serving(w *localtier.Writer) servingWriter {
	return servingWriter{Writer: w, dir: s.tier.dir, least: s.flags.writer.MinFreeDisk, newer: s.tier.newer}
}

// errFullDisk is why a writer is not ready.
var errFullDisk = errors.New("the disk is full")

// Ready is nil while every shard takes rows.
func (w servingWriter) Ready() error {
	err := errors.Join(w.Writer.Ready(), w.room())
	if w.newer != nil {
		err = errors.Join(err, w.newer())
	}
	return err
}

func (w servingWriter) room() error {
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
