package peer

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// bareFrameBytes stands for a frame's header, so that offsets are as unaligned as a
// log's.
const bareFrameBytes = 32

var bareGrow = Peer{
	Name: "bare-grow", Role: Bare, NoOpen: true,
	Note: "write + fdatasync at the end of a growing file; one producer; no frame, no checksum",
	Open: func(dir string, _ Options) (Log, error) { return openBare(dir, 0) },
}

var bareOverwrite = Peer{
	Name: "bare-overwrite", Role: Bare, NoOpen: true,
	Note: "write + fdatasync over zeros that were written and synced before, from the start again at the end; one producer",
	Open: func(dir string, o Options) (Log, error) { return openBare(dir, int64(o.SegmentBytes)) },
}

// bare is a file and an offset.
type bare struct {
	file *os.File
	buf  []byte
	off  int64
	ring int64 // 0: it grows
}

func openBare(dir string, ring int64) (_ Log, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "bare"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	zeros := make([]byte, 1<<20)
	for off := int64(0); off < ring; off += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros, off); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if err := f.Sync(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &bare{file: f, ring: ring}, nil
}

func (b *bare) Producer(int) func(rec []byte) error { return b.append }

func (b *bare) append(rec []byte) error {
	n := int64(bareFrameBytes + len(rec))
	if b.ring > 0 && b.off+n > b.ring {
		b.off = 0
	}
	b.buf = append(append(b.buf[:0], make([]byte, bareFrameBytes)...), rec...)
	if _, err := b.file.WriteAt(b.buf, b.off); err != nil {
		return err
	}
	b.off += n
	return unix.Fdatasync(int(b.file.Fd()))
}

func (b *bare) Close() error { return b.file.Close() }
