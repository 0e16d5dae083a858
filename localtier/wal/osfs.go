package wal

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// OSFS is the operating system's file layer.
func OSFS(fullFsync bool) FS { return osFS{full: fullFsync} }

type osFS struct{ full bool }

func (o osFS) open(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o640)
	if err != nil {
		return nil, err
	}
	return osFile{f, o.full}, nil
}

func (o osFS) Open(name string) (File, error)      { return o.open(name, os.O_RDONLY) }
func (o osFS) OpenWrite(name string) (File, error) { return o.open(name, os.O_RDWR) }
func (o osFS) Create(name string) (File, error) {
	return o.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}
func (o osFS) Rename(from, to string) error { return os.Rename(from, to) }
func (o osFS) Remove(name string) error     { return os.Remove(name) }

func (o osFS) ReadDir(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// MkdirAll makes each missing directory and then makes its entry durable: a
// power cut must not take a directory whose files are fsynced.
func (o osFS) MkdirAll(dir string) error {
	dir = filepath.Clean(dir)
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("a file stands there")}
		}
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := o.MkdirAll(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return o.SyncDir(parent)
}

func (o osFS) SyncDir(dir string) (err error) {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return syncFile(d, o.full)
}

func (o osFS) Lock(name string) (io.Closer, error) { return lockFile(name) }

type osFile struct {
	*os.File
	full bool
}

func (f osFile) Start(off, n int64) { startWrite(f.File, off, n) }

func (f osFile) Sync() error { return syncData(f.File, f.full) }

func (f osFile) Stat() (Info, error) {
	i, err := f.File.Stat()
	if err != nil {
		return Info{}, err
	}
	return Info{Size: i.Size(), ModTime: i.ModTime()}, nil
}
