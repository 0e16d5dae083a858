package wal

import (
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/strandline/strandline/segment"
)

// Adoption makes the newest segment's file one that the log may append to. After
// a failed fsync, or a SIGKILL before one, the page cache shows bytes that the
// disk does not have and that no later fsync of this file would write. So its
// valid prefix is copied to a new file, fsynced, and renamed over it. A crash
// before the rename leaves the old file, after it the new one: both hold the
// same frames.

// copyChunk is how much is copied at a time.
const copyChunk = 1 << 20

// ensureAdopted adopts lazily what Open did not have to read.
func (l *Log) ensureAdopted() error {
	if l.file != nil || !l.durable.open {
		return nil
	}
	return l.adoptNewest(l.durable)
}

// adoptNewest copies the prefix that ends at p. Nothing of the log has changed
// if it fails before the rename, so a full disk there is no poison.
func (l *Log) adoptNewest(p position) error {
	path := segmentPath(l.dir, p.start.ID)
	f, filled, digest, err := l.copyPrefix(path, p)
	if err != nil {
		return &failure{op: "copy", path: path, err: dropAside(l.fs, path, err)}
	}
	sum := prefixDigest{digest.Sum64(), true}
	if err := l.checkVouched(p, sum); err != nil {
		err = errors.Join(err, f.Close())
		return &failure{op: "copy", path: path, err: dropAside(l.fs, path, err), final: true}
	}
	if err := l.timedSync(f); err != nil {
		err = errors.Join(err, f.Close())
		return &failure{op: "fdatasync a copy of", path: path, err: dropAside(l.fs, path, err), final: true}
	}
	if err := promote(l.fs, path); err != nil {
		return &failure{op: "put a copy in the place of", path: path, err: errors.Join(err, f.Close()), final: true}
	}
	l.file, l.digest, l.filled = f, digest, filled
	l.mu.Lock()
	l.prefix = sum
	l.mu.Unlock()
	return nil
}

// checkVouched holds the copied bytes against the digest that index.json gave of
// them, when they are read for the first time.
func (l *Log) checkVouched(p position, sum prefixDigest) error {
	if l.vouched == "" || l.vouched == sum.String() {
		return nil
	}
	return &segment.CorruptionError{
		File: segmentPath(l.dir, p.start.ID), Segment: p.start.ID, UUID: p.uuid, Offset: segment.HeaderBytes,
		Reason: fmt.Sprintf("the first %d bytes have digest %s, index.json vouched for %s: reopen with a replay to find the frame", p.end, sum, l.vouched),
	}
}

// copyPrefix copies the bytes of a segment up to p to the .tmp of its file and
// digests them. filled is how long that file is if it was a spare one.
func (l *Log) copyPrefix(path string, p position) (_ File, filled int64, digest xxhash.Digest, err error) {
	digest.Reset()
	src, err := l.fs.Open(path)
	if err != nil {
		return nil, 0, digest, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	dst, filled, err := l.copyTarget(path, p.open)
	if err != nil {
		return nil, 0, digest, err
	}
	if err := copyBytes(dst, src, p.end, &digest); err != nil {
		return nil, 0, digest, errors.Join(err, dst.Close())
	}
	return dst, filled, digest, nil
}

// copyTarget makes path's .tmp: a new file, or a spare one for a segment that is
// still written to.
func (l *Log) copyTarget(path string, open bool) (File, int64, error) {
	if open {
		if s, ok := l.takeSpare(); ok {
			f, err := l.spareAside(s, path)
			if err == nil {
				return f, s.size, nil
			}
			l.cfg.Logger.Warn("a spare file could not be used", "path", s.name, "err", err)
		}
	}
	f, err := createAside(l.fs, path)
	return f, 0, err
}

// spareAside gives a spare file path's .tmp name, durably: once a byte of this
// segment is in it, it must never be a spare file again.
func (l *Log) spareAside(s spareFile, path string) (File, error) {
	if err := l.fs.Rename(s.name, path+tmpSuffix); err != nil {
		return nil, err
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return nil, err
	}
	return l.fs.OpenWrite(path + tmpSuffix)
}

// copyBytes copies the first n bytes.
func copyBytes(dst, src File, n int64, digest *xxhash.Digest) error {
	buf := make([]byte, min(n, copyChunk))
	for off := int64(0); off < n; {
		b := buf[:min(int64(len(buf)), n-off)]
		if got, err := src.ReadAt(b, off); got < len(b) {
			return fmt.Errorf("read: %w", err)
		}
		if _, err := dst.WriteAt(b, off); err != nil {
			return err
		}
		hash(digest, b)
		off += int64(len(b))
	}
	return nil
}

// keepTorn keeps aside what recovery cuts off: evidence, and maybe rows that
// somebody wants to look at. What was kept before stays in front; the file is
// capped.
func keepTorn(fsys FS, dir string, id segment.ID, cut []byte) error {
	path := tornPath(dir, id)
	old, err := ReadFile(fsys, path, segment.TornKeepMax)
	if err != nil && !vanished(err) {
		return fmt.Errorf("read what was kept aside before: %w", err)
	}
	room := segment.TornKeepMax - len(old)
	kept := append(old, cut[:min(len(cut), room)]...)
	if err := ReplaceFile(fsys, path, kept); err != nil {
		return fmt.Errorf("keep a cut tail aside: %w", err)
	}
	return nil
}
