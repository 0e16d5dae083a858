package wal_test

import (
	"sync/atomic"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
)

// slowSync is a file layer whose fdatasync, while on, says when it is entered and
// waits at a gate.
type slowSync struct {
	*powercut.FS
	on      atomic.Bool
	entered chan struct{}
	gate    chan struct{}
}

func (s *slowSync) Open(name string) (wal.File, error)      { return s.wrap(s.FS.Open(name)) }
func (s *slowSync) OpenWrite(name string) (wal.File, error) { return s.wrap(s.FS.OpenWrite(name)) }
func (s *slowSync) Create(name string) (wal.File, error)    { return s.wrap(s.FS.Create(name)) }

func (s *slowSync) wrap(f wal.File, err error) (wal.File, error) {
	if err != nil {
		return nil, err
	}
	return &slowFile{f, s}, nil
}

type slowFile struct {
	wal.File
	fs *slowSync
}

func (f *slowFile) Sync() error {
	if f.fs.on.Load() {
		select {
		case f.fs.entered <- struct{}{}:
		case <-f.fs.gate:
		}
		<-f.fs.gate
	}
	return f.File.Sync()
}
