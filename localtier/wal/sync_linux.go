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
