package powercut

import (
	"io"
	"io/fs"
	"syscall"

	"github.com/strandline/strandline/localtier/wal"
)

// file is an open inode.
type file struct {
	fs    *FS
	name  string
	i     *inode
	write bool
}

func (h *file) ReadAt(p []byte, off int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.fs.begin(Op{Kind: KindRead, Path: h.name, Off: off, Len: int64(len(p))}); err != nil {
		return 0, err
	}
	if off >= h.i.seen.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), h.i.seen.size-off))
	h.i.seen.read(p[:n], off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes all of p, or what there is room for and ENOSPC, or the part
// that an injected fault lets through.
func (h *file) WriteAt(p []byte, off int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if !h.write {
		return 0, &fs.PathError{Op: "write", Path: h.name, Err: fs.ErrPermission}
	}
	err := h.fs.begin(Op{Kind: KindWrite, Path: h.name, Off: off, Len: int64(len(p))})
	n := len(p)
	if err != nil {
		n = partOf(err, n)
	}
	if room := h.fs.room(h.i, off, n); room < n {
		n, err = room, &fs.PathError{Op: "write", Path: h.name, Err: syscall.ENOSPC}
	}
	h.i.write(p[:n], off)
	return n, err
}

// Truncate changes the length; that is durable after a Sync.
func (h *file) Truncate(size int64) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.fs.begin(Op{Kind: KindTruncate, Path: h.name, Off: size}); err != nil {
		return err
	}
	if size < h.i.seen.size {
		h.fs.credit(h.i.seen.size - size)
	}
	h.i.truncate(size)
	return nil
}

// Start does nothing: a cut keeps any part of what was written as it is.
func (h *file) Start(int64, int64) {}

// Sync makes bytes and length durable. One that fails drops the dirty pages.
func (h *file) Sync() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	err := h.fs.begin(Op{Kind: KindSync, Path: h.name, Off: h.i.seen.size})
	switch {
	case err == nil:
		h.i.synced()
	case !h.fs.off:
		h.i.lost()
	}
	return err
}

func (h *file) Stat() (wal.Info, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if h.fs.off {
		return wal.Info{}, ErrPowerOff
	}
	return wal.Info{Size: h.i.seen.size, ModTime: h.i.modTime}, nil
}

func (h *file) Close() error { return nil }
