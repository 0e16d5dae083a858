package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/strandline/strandline/segment"
)

// Spare files are segment files that housekeeping or reclamation is done with,
// kept to be overwritten: on a file system that overwrites in place an fdatasync
// of blocks that were written before commits no metadata, and takes about half
// the time. What stands in one carries other UUIDs than the segment that it is
// used for next, so that none of it validates there.
//
// A file has one name at a time, and no other name of it may be on the disk when
// it is overwritten: a power cut would bring an old segment back with a newer
// one's bytes. So a file is used only after the rename that made it a spare is
// durable, and a file that is overwritten with frames of a segment that exists
// already (adoption) gets its .tmp name durably first: whatever then stands in it
// is removed by the next open, never used for the same segment again.

const (
	sparePrefix, spareSuffix = "spare-", ".free"
	// spareMin: a smaller file is not worth its directory operations.
	spareMin = 1 << 20
)

// spareFile is a file whose rename is durable. Who takes it out of Log.spares
// owns it.
type spareFile struct {
	name string
	size int64
}

func spareName(n uint64) string { return fmt.Sprintf("%s%016x%s", sparePrefix, n, spareSuffix) }

func parseSpareName(name string) (uint64, bool) {
	s, ok := strings.CutPrefix(name, sparePrefix)
	s, ok2 := strings.CutSuffix(s, spareSuffix)
	n, err := strconv.ParseUint(s, 16, 64)
	return n, ok && ok2 && err == nil && spareName(n) == name
}

// loadSpares takes over the spare files of an earlier process, as many as are
// wanted, and removes the others.
func (l *Log) loadSpares(names []string) error {
	for _, name := range names {
		n, _ := parseSpareName(name)
		l.spareNext = max(l.spareNext, n+1)
		path := filepath.Join(l.dir, name)
		size, err := FileSize(l.fs, path)
		if err != nil {
			return fmt.Errorf("look at a spare file: %w", err)
		}
		if len(l.spares) < l.cfg.spareFiles() && size >= l.cfg.tune.spareMin {
			l.spares = append(l.spares, spareFile{path, size})
			continue
		}
		if err := l.fs.Remove(path); err != nil && !vanished(err) {
			return fmt.Errorf("remove a spare file: %w", err)
		}
	}
	if len(l.spares) == 0 {
		return nil
	}
	// The process that renamed them may have ended before its fsync.
	return l.fs.SyncDir(l.dir)
}

// takeSpare gives the caller a spare file, the last one put aside.
func (l *Log) takeSpare() (spareFile, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.spares)
	if n == 0 {
		return spareFile{}, false
	}
	s := l.spares[n-1]
	l.spares = l.spares[:n-1]
	return s, true
}

// forget takes the oldest sealed segment out of what stands here. reuse says that
// nobody reads its file and that a spare file is wanted: then spare is its name
// to be. A reader that comes later finds nothing, one that came before keeps the
// file, which is then unlinked and not overwritten.
func (l *Log) forget(s SealedSegment, more int) (spare string, reuse bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sealed = l.sealed[1:]
	if l.readers[s.ID] > 0 || l.poison != nil || s.Bytes < l.cfg.tune.spareMin || len(l.spares)+more >= l.cfg.spareFiles() {
		return "", false
	}
	l.spareNext++
	return filepath.Join(l.dir, spareName(l.spareNext-1)), true
}

// remember takes a segment in again that could not be unlinked.
func (l *Log) remember(s SealedSegment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sealed = slices.Insert(l.sealed, 0, s)
}

// unlink takes files out of the directory in order: the first ones that are
// worth it become spare files, the others go.
func (l *Log) unlink(ctx context.Context, plan []SealedSegment) (removed []segment.ID, spares []spareFile, err error) {
	for _, s := range plan {
		if ctx.Err() != nil {
			return removed, spares, context.Cause(ctx)
		}
		name, reuse := l.forget(s, len(spares))
		if reuse {
			err = l.fs.Rename(s.Path, name)
		} else {
			err = l.fs.Remove(s.Path)
		}
		if err != nil && !vanished(err) {
			l.remember(s)
			return removed, spares, fmt.Errorf("unlink segment %d: %w", s.ID, err)
		}
		if reuse && err == nil {
			spares = append(spares, spareFile{name, s.Bytes})
		}
		removed = append(removed, s.ID)
	}
	return removed, spares, nil
}

// openSpare makes the segment out of a spare file, which is whole and durable
// before it gets the segment's name. A crash before the rename leaves a spare
// file, after it the segment. used is false if the file could not be used and
// is, if that can be, gone: then a new one is made.
func (l *Log) openSpare(o *opening, s spareFile, path string) (used bool, err error) {
	f, err := l.fs.OpenWrite(s.name)
	if err != nil {
		l.dropSpare(s, nil, err)
		return false, nil
	}
	if err := writeStart(f, o.bytes); err != nil {
		l.dropSpare(s, f, err)
		return false, nil
	}
	if err := l.syncStart(f); err != nil {
		return true, &failure{op: "fdatasync", path: s.name, err: errors.Join(err, f.Close()), final: true}
	}
	if err := l.nameSpare(s, path); err != nil {
		l.dropSpare(s, f, err)
		return false, nil
	}
	if err := l.syncDirectory(); err != nil {
		return true, &failure{op: "fsync directory", path: l.dir, err: errors.Join(err, f.Close()), final: true}
	}
	l.adoptNext(f, o)
	l.filled = s.size
	return true, nil
}

// nameSpare gives it the segment's name, unless a file stands there: a rename
// would replace it, which making one never does.
func (l *Log) nameSpare(s spareFile, path string) error {
	f, err := l.fs.Open(path)
	switch {
	case err == nil:
		return errors.Join(fs.ErrExist, f.Close())
	case !vanished(err):
		return err
	}
	return l.fs.Rename(s.name, path)
}

// dropSpare removes a spare file that could not be used: nothing depended on it.
func (l *Log) dropSpare(s spareFile, f File, err error) {
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	if rerr := l.fs.Remove(s.name); rerr != nil && !vanished(rerr) {
		err = errors.Join(err, rerr) // the next open removes or uses it
	}
	l.cfg.Logger.Warn("a spare file could not be used", "path", s.name, "err", err)
}

// addSpares puts files aside whose renames are durable.
func (l *Log) addSpares(spares []spareFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spares = append(l.spares, spares...)
	l.metrics.recycled.Add(int64(len(spares)))
}

// DropSpares removes the spare files, to give their space back: a full disk does
// it by itself. They come again with the next segments that are housekept.
func (l *Log) DropSpares() error {
	var errs []error
	for {
		s, ok := l.takeSpare()
		if !ok {
			return errors.Join(errs...)
		}
		if err := l.fs.Remove(s.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove a spare file: %w", err)) // the next open removes or uses it
		}
	}
}

// freed gives spare files up if err is of a full disk. It returns err.
func (l *Log) freed(err error) error {
	err = classify(err)
	if errors.Is(err, ErrFull) {
		if derr := l.DropSpares(); derr != nil {
			err = errors.Join(err, derr)
		}
	}
	return err
}
