package powercut

import (
	"io"
	"io/fs"
	"syscall"
	"time"

	"github.com/strandline/strandline/localtier/wal"
)

const (
	pageBytes   = 4096
	sectorBytes = 512
)

// inode is a file: what programs read, what the disk has, and which pages of the
// one a Sync would bring to the other.
type inode struct {
	seen    []byte
	disk    []byte
	dirty   map[int64]bool
	modTime time.Time
}

func newInode() *inode { return &inode{dirty: map[int64]bool{}, modTime: now()} }

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
	if off >= int64(len(h.i.seen)) {
		return 0, io.EOF
	}
	n := copy(p, h.i.seen[off:])
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
	h.i.put(p[:n], off)
	return n, err
}

func (i *inode) put(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	i.seen = grow(i.seen, off+int64(len(p)))
	copy(i.seen[off:], p)
	for page := off / pageBytes; page <= (off+int64(len(p))-1)/pageBytes; page++ {
		i.dirty[page] = true
	}
	i.modTime = now()
}

// Truncate changes the length; that is durable after a Sync.
func (h *file) Truncate(size int64) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.fs.begin(Op{Kind: KindTruncate, Path: h.name, Off: size}); err != nil {
		return err
	}
	i := h.i
	if size >= int64(len(i.seen)) {
		i.seen = grow(i.seen, size)
		return nil
	}
	h.fs.credit(int64(len(i.seen)) - size)
	clear(i.seen[size:]) // what is grown over later reads as zeros
	i.seen = i.seen[:size]
	for page := range i.dirty {
		if page*pageBytes >= size {
			delete(i.dirty, page)
		}
	}
	return nil
}

// Sync makes bytes and length durable. One that fails drops the dirty pages.
func (h *file) Sync() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	err := h.fs.begin(Op{Kind: KindSync, Path: h.name, Off: int64(len(h.i.seen))})
	i := h.i
	if err == nil {
		i.disk = resize(i.disk, int64(len(i.seen)))
		for page := range i.dirty {
			from := page * pageBytes
			copy(i.disk[from:min(from+pageBytes, int64(len(i.disk)))], i.seen[from:])
		}
	}
	if !h.fs.off {
		clear(i.dirty)
	}
	return err
}

func (h *file) Stat() (wal.Info, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if h.fs.off {
		return wal.Info{}, ErrPowerOff
	}
	return wal.Info{Size: int64(len(h.i.seen)), ModTime: h.i.modTime}, nil
}

func (h *file) Close() error { return nil }

// grow extends b with zeros; it never shortens.
func grow(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b
	}
	if size <= int64(cap(b)) {
		old := len(b)
		b = b[:size]
		clear(b[old:])
		return b
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

func resize(b []byte, size int64) []byte {
	if size < int64(len(b)) {
		clear(b[size:])
		return b[:size]
	}
	return grow(b, size)
}
