package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"
)

// FS is the file layer, so that tests can cut the power under it
// (internal/powercut). What it promises is what a POSIX file system does: the
// bytes of a file are durable after File.Sync, the entries of a directory after
// SyncDir, and nothing before. Errors match io/fs's kinds and syscall's numbers.
type FS interface {
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Create makes a new file for reading and writing; fs.ErrExist if it is there.
	Create(name string) (File, error)
	// OpenWrite opens an existing file for reading and writing.
	OpenWrite(name string) (File, error)
	// Rename puts from in the place of to, whatever stands there.
	Rename(from, to string) error
	Remove(name string) error
	// ReadDir lists a directory's names.
	ReadDir(dir string) ([]string, error)
	// MkdirAll makes a directory and its parents, durably.
	MkdirAll(dir string) error
	// SyncDir makes the entries of a directory durable.
	SyncDir(dir string) error
	// Lock takes the one lock of name, or says who has it with a *LockedError.
	// Closing gives it back.
	Lock(name string) (io.Closer, error)
}

// File is an open file. It may be used by several goroutines as os.File may.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Start may have the disk begin with n bytes at off, and does not wait. It promises
	// nothing: what goes wrong with them is Sync's to tell.
	Start(off, n int64)
	// Sync makes the file's bytes and length durable (fdatasync).
	Sync() error
	Truncate(size int64) error
	Stat() (Info, error)
}

// Info is what the log wants to know of a file.
type Info struct {
	Size    int64
	ModTime time.Time
}

// tmpSuffix marks a file that was not finished. Open removes it.
const tmpSuffix = ".tmp"

// ReplaceFile puts a small file in its place as a whole, durably: tmp, fsync,
// rename, fsync of the directory. A full disk is ErrFull, and the old file
// stands.
func ReplaceFile(fsys FS, name string, b []byte) error {
	if err := writeAside(fsys, name, b, true); err != nil {
		return err
	}
	// A crash here leaves name.tmp, which the next open removes.
	return promote(fsys, name)
}

// promote renames name.tmp over name and makes that durable.
func promote(fsys FS, name string) error {
	if err := fsys.Rename(name+tmpSuffix, name); err != nil {
		return classify(err)
	}
	return classify(fsys.SyncDir(filepath.Dir(name)))
}

// writeAside writes name.tmp. On an error nothing of it is left, if that can be.
func writeAside(fsys FS, name string, b []byte, durable bool) (err error) {
	f, err := createAside(fsys, name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return classify(dropAside(fsys, name, err))
	}
	return nil
}

// createAside makes name.tmp anew.
func createAside(fsys FS, name string) (File, error) {
	tmp := name + tmpSuffix
	if err := fsys.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove an unfinished file: %w", err)
	}
	f, err := fsys.Create(tmp)
	return f, classify(err)
}

// dropAside removes name.tmp after err; if it cannot, the next open does.
func dropAside(fsys FS, name string, err error) error {
	if rerr := fsys.Remove(name + tmpSuffix); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		return errors.Join(err, rerr)
	}
	return err
}

// ReadFile reads a small file whole; a file over limit is refused.
func ReadFile(fsys FS, name string, limit int64) (_ []byte, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size > limit {
		return nil, fmt.Errorf("%s is %d bytes, at most %d", name, info.Size, limit)
	}
	b := make([]byte, info.Size)
	if len(b) == 0 {
		return b, nil
	}
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

// FileSize is the length of a file.
func FileSize(fsys FS, path string) (size int64, err error) {
	f, err := fsys.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	return info.Size, err
}
