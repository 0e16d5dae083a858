package powercut

import (
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
)

// move is a directory's rename, durable once the directory that it left is synced.
type move struct{ from, to string }

// childDirs are the names of the directories in dir. f.mu is held.
func (f *FS) childDirs(dir string) (names []string) {
	for path := range f.dirs {
		if filepath.Dir(path) == dir && path != dir {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}

// moveDir renames a directory with all below it. f.mu is held.
func (f *FS) moveDir(from, to string) error {
	if f.dirs[to] != nil && len(f.dirs[to].seen)+len(f.childDirs(to)) > 0 {
		return &fs.PathError{Op: "rename", Path: to, Err: syscall.ENOTEMPTY}
	}
	if f.dirs[filepath.Dir(to)] == nil {
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrNotExist}
	}
	f.shift(from, to)
	f.moves = append(f.moves, move{from, to})
	return nil
}

func (f *FS) shift(from, to string) {
	for path, d := range f.dirs {
		if path == from || strings.HasPrefix(path, from+"/") {
			delete(f.dirs, path)
			f.dirs[to+path[len(from):]] = d
		}
	}
}

// removeDir takes an empty directory away, durably at once. f.mu is held.
func (f *FS) removeDir(name string, d *directory) error {
	if len(d.seen)+len(f.childDirs(name)) > 0 {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOTEMPTY}
	}
	if err := f.begin(Op{Kind: KindRemove, Path: name}); err != nil {
		return err
	}
	delete(f.dirs, name)
	return nil
}

// unmove takes back the last renames of directories that were not synced: all of them,
// or a random part. A name that was taken again since is durable by its own making.
func (f *FS) unmove(seed uint64, rng *rand.Rand) {
	for n := len(f.moves) - 1; n >= 0; n-- {
		m := f.moves[n]
		if seed != 0 && rng.IntN(2) == 0 || f.dirs[m.from] != nil {
			return
		}
		f.shift(m.to, m.from)
	}
}
