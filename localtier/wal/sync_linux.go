package wal

import (
	"errors"
	"os"
	"syscall"
)

// syncData is fdatasync: bytes and length, not the times.
func syncData(f *os.File, _ bool) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		// EINTR reports nothing about the pages; every other error does, and must
		// never be tried again: the kernel forgets it was ever dirty.
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

func syncFile(f *os.File, _ bool) error { return f.Sync() }

// startWrite is sync_file_range without its waits. Its error is left out: it neither
// marks pages clean that the disk does not have nor takes the file's error away from
// the fdatasync that follows, which tries what was not begun and tells what failed.
func startWrite(f *os.File, off, n int64) {
	const write = 2 // SYNC_FILE_RANGE_WRITE
	_ = syscall.SyncFileRange(int(f.Fd()), off, n, write)
}
