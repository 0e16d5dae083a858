package localtier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// RemoveQuarantine gives up what lies in a quarantined directory.
func RemoveQuarantine(ctx context.Context, q Quarantine) error {
	return removeAside(ctx, wal.OSFS(false), q)
}

// removedPrefix marks a quarantined directory that is being removed.
const removedPrefix = "removed."

// removeAside takes the directory's lock, so that nobody salvages from it meanwhile.
func removeAside(ctx context.Context, fsys wal.FS, q Quarantine) error {
	root, name := filepath.Split(filepath.Clean(q.Dir))
	root = filepath.Clean(root)
	if _, ok := parseAside(name); !ok || filepath.Base(root) != quarantineDir {
		return fmt.Errorf("%w: %s is no quarantined directory: give one that `strandline quarantine ls` shows", ErrInvalid, q.Dir)
	}
	lock, err := lockAside(fsys, q.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // its file is gone
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	// As a whole: half of a directory would be taken for a damaged one.
	gone := filepath.Join(root, removedPrefix+name)
	if err := fsys.Rename(q.Dir, gone); err != nil {
		return fmt.Errorf("remove %s: %w", q.Dir, err)
	}
	// A crash here, or a failure below, leaves files that nobody lists any more: the
	// next start of a writer removes the rest (sweepRemoved).
	return errors.Join(fsys.SyncDir(root), removeTree(fsys, gone), fsys.SyncDir(root))
}

// sweepRemoved ends removals that were cut.
func sweepRemoved(fsys wal.FS, dir string) error {
	root := filepath.Join(dir, quarantineDir)
	names, err := fsys.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, name := range names {
		if rest, ok := strings.CutPrefix(name, removedPrefix); ok {
			if _, ok := parseAside(rest); ok {
				errs = append(errs, removeTree(fsys, filepath.Join(root, name)))
			}
		}
	}
	return errors.Join(errs...)
}

// lockAside takes the one lock of a quarantined directory: its LOCK file's, which an
// owner that is still alive holds.
func lockAside(fsys wal.FS, dir string) (io.Closer, error) {
	if _, err := fsys.ReadDir(dir); err != nil {
		return nil, err // the lock is not to make the directory's file anew
	}
	return fsys.Lock(filepath.Join(dir, segment.LockFile))
}

// removeTree removes a directory with all that is in it.
func removeTree(fsys wal.FS, dir string) error {
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		err := fsys.Remove(path)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if terr := removeTree(fsys, path); terr != nil {
			return errors.Join(err, terr)
		}
	}
	return fsys.Remove(dir)
}
