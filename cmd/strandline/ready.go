package main

import (
	"errors"
	"fmt"

	"github.com/strandline/strandline/localtier"
)

// servingWriter is a writer that is not ready while its disk is too full for appends,
// which are refused then: a probe should send them elsewhere. Nor is it one whose catalog a
// newer build has migrated: it acknowledges what still comes as while the catalog is away,
// until its lease is over (03 §1), and can publish none of it.
type servingWriter struct {
	*localtier.Writer
	dir    string
	least  int64        // negative: not checked
	newer  func() error // nil: nobody looks
	beside *rewriteRoom // of the auditor beside it; nil: it looks at no disk
}

func (s *service) serving(w *localtier.Writer) servingWriter {
	return servingWriter{Writer: w, dir: s.tier.dir, least: s.flags.writer.MinFreeDisk, newer: s.tier.newer, beside: s.room}
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
	free, err := freeOf(w.dir)
	if err != nil {
		return err
	}
	if free < w.least {
		return fmt.Errorf("%w: %s has %s left, --min-free-disk is %s: appends are refused until there is more room%s", errFullDisk, w.dir, bytesText(free), bytesText(w.least), w.also())
	}
	return nil
}

// also is what else waits for room.
func (w servingWriter) also() string {
	if w.beside.held() == "" {
		return ""
	}
	return ", and settled objects wait for it, too"
}
