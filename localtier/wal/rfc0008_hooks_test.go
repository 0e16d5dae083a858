package wal_test

import (
	"strings"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// hookFS is a file layer with somebody looking at what is done to segment files,
// their .tmp included. Hooks that are nil look at nothing.
type hookFS struct {
	wal.FS
	write  func(f wal.File, p []byte, off int64) (int, error) // in the place of a write
	before func()                                             // a segment's fdatasync, when it is called
	after  func()                                             // and when it is done, before it returns
	read   func(name string, n int)
	sync   func(name string) // every fdatasync and directory fsync
}

func (h *hookFS) Open(name string) (wal.File, error)      { return h.wrap(name)(h.FS.Open(name)) }
func (h *hookFS) OpenWrite(name string) (wal.File, error) { return h.wrap(name)(h.FS.OpenWrite(name)) }
func (h *hookFS) Create(name string) (wal.File, error)    { return h.wrap(name)(h.FS.Create(name)) }

func (h *hookFS) SyncDir(dir string) error {
	if h.sync != nil {
		h.sync(dir)
	}
	return h.FS.SyncDir(dir)
}

func (h *hookFS) wrap(name string) func(wal.File, error) (wal.File, error) {
	return func(f wal.File, err error) (wal.File, error) {
		if err != nil {
			return nil, err
		}
		return &hookFile{f, h, name}, nil
	}
}

type hookFile struct {
	wal.File
	h    *hookFS
	name string
}

func (f *hookFile) segment() bool { return strings.Contains(f.name, ".seg") }

func (f *hookFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if f.h.read != nil {
		f.h.read(f.name, n)
	}
	return n, err
}

func (f *hookFile) WriteAt(p []byte, off int64) (int, error) {
	if f.h.write != nil && f.segment() {
		return f.h.write(f.File, p, off)
	}
	return f.File.WriteAt(p, off)
}

func (f *hookFile) Sync() error {
	if f.h.sync != nil {
		f.h.sync(f.name)
	}
	if f.h.before != nil && f.segment() {
		f.h.before()
	}
	err := f.File.Sync()
	if err == nil && f.h.after != nil && f.segment() {
		f.h.after()
	}
	return err
}

// lastRow is the seq of the last row of the frames in p, 0 if p is no frames: a
// segment's header, a Seal, zeros.
func lastRow(p []byte) (last segment.Seq) {
	for len(p) > 0 {
		f, n, err := segment.ParseChunkFrame(p)
		if err != nil {
			return last
		}
		if f.Kind == segment.KindBatch {
			if _, first, rows, err := segment.BatchSpan(f.Payload); err == nil {
				last = first + segment.Seq(rows) - 1
			}
		}
		p = p[n:]
	}
	return last
}
