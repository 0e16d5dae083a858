package powercut

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/strandline/strandline/localtier/wal"
)

// ErrPowerOff is what every operation says once the power is gone.
var ErrPowerOff = errors.New("power is off")

// FS is the file system of one boot.
type FS struct {
	mu     sync.Mutex
	dirs   map[string]*directory
	locks  map[string]bool
	off    bool
	free   int64 // bytes left; negative is no limit
	budget int   // changes left before the power goes; negative is no limit
	inject func(Op) error
	ops    []Op
	moves  []move // renames of directories that no SyncDir made durable yet
	quiet  bool   // no operation log
}

var _ wal.FS = (*FS)(nil)

// directory has the entries that programs see, those that the disk has, and what
// leads from the one to the other.
type directory struct {
	seen    map[string]*inode
	disk    map[string]*inode
	pending []change
}

// change is one directory operation: entries set, or removed with nil, at once.
type change map[string]*inode

func (d *directory) apply(c change) {
	for name, i := range c {
		if i == nil {
			delete(d.seen, name)
		} else {
			d.seen[name] = i
		}
	}
	d.pending = append(d.pending, c)
}

// New is an empty file system.
func New() *FS {
	return &FS{dirs: map[string]*directory{}, locks: map[string]bool{}, free: -1, budget: -1}
}

func (f *FS) find(op, name string) (*directory, string, *inode, error) {
	name = filepath.Clean(name)
	d := f.dirs[filepath.Dir(name)]
	if d == nil {
		return nil, "", nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	base := filepath.Base(name)
	return d, base, d.seen[base], nil
}

// Open opens a file for reading.
func (f *FS) Open(name string) (wal.File, error) { return f.open(KindOpen, name, false) }

// OpenWrite opens a file for reading and writing.
func (f *FS) OpenWrite(name string) (wal.File, error) { return f.open(KindOpen, name, true) }

func (f *FS) open(kind Kind, name string, write bool) (wal.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(Op{Kind: kind, Path: name}); err != nil {
		return nil, err
	}
	_, _, i, err := f.find("open", name)
	if err != nil {
		return nil, err
	}
	if i == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &file{fs: f, name: filepath.Clean(name), i: i, write: write}, nil
}

// Create makes a new file.
func (f *FS) Create(name string) (wal.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(Op{Kind: KindCreate, Path: name}); err != nil {
		return nil, err
	}
	d, base, i, err := f.find("create", name)
	if err != nil {
		return nil, err
	}
	if i != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	i = newInode()
	d.apply(change{base: i})
	return &file{fs: f, name: filepath.Clean(name), i: i, write: true}, nil
}

// Rename puts from in the place of to, atomically. Files stay in their directory; a
// directory may go anywhere.
func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(Op{Kind: KindRename, Path: from, To: to}); err != nil {
		return err
	}
	if f.dirs[filepath.Clean(from)] != nil {
		return f.moveDir(filepath.Clean(from), filepath.Clean(to))
	}
	d, old, i, err := f.find("rename", from)
	if err != nil {
		return err
	}
	e, base, there, err := f.find("rename", to)
	if err != nil {
		return err
	}
	if i == nil || d != e {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	f.give(there)
	d.apply(change{old: nil, base: i})
	return nil
}

// Remove takes a name away; who has the file open keeps it.
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d := f.dirs[filepath.Clean(name)]; d != nil && !f.off {
		return f.removeDir(filepath.Clean(name), d)
	}
	d, base, i, err := f.find("remove", name)
	if err == nil && i == nil {
		err = &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		if f.off {
			return ErrPowerOff
		}
		return err // nothing changes, so nothing is counted
	}
	if err := f.begin(Op{Kind: KindRemove, Path: name}); err != nil {
		return err
	}
	f.give(i)
	d.apply(change{base: nil})
	return nil
}

// ReadDir lists the names that programs see.
func (f *FS) ReadDir(dir string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(Op{Kind: KindRead, Path: dir}); err != nil {
		return nil, err
	}
	d := f.dirs[filepath.Clean(dir)]
	if d == nil {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: fs.ErrNotExist}
	}
	names := slices.Collect(maps.Keys(d.seen))
	names = append(names, f.childDirs(filepath.Clean(dir))...)
	slices.Sort(names)
	return names, nil
}

// MkdirAll makes a directory. It is durable at once, as wal.FS asks.
func (f *FS) MkdirAll(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off {
		return ErrPowerOff
	}
	for dir = filepath.Clean(dir); f.dirs[dir] == nil && dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		f.dirs[dir] = &directory{seen: map[string]*inode{}, disk: map[string]*inode{}}
	}
	return nil
}

// SyncDir makes a directory's entries durable.
func (f *FS) SyncDir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(Op{Kind: KindSyncDir, Path: dir}); err != nil {
		return err
	}
	d := f.dirs[filepath.Clean(dir)]
	if d == nil {
		return &fs.PathError{Op: "syncdir", Path: dir, Err: fs.ErrNotExist}
	}
	d.disk, d.pending = maps.Clone(d.seen), nil
	f.moves = slices.DeleteFunc(f.moves, func(m move) bool { return filepath.Dir(m.from) == filepath.Clean(dir) })
	return nil
}

// Lock takes the one lock of name and puts a file there, as flock does.
func (f *FS) Lock(name string) (io.Closer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off {
		return nil, ErrPowerOff
	}
	name = filepath.Clean(name)
	if f.locks[name] {
		return nil, &wal.LockedError{Path: name, PID: 1}
	}
	d, base, i, err := f.find("lock", name)
	if err != nil {
		return nil, err
	}
	if i == nil {
		d.apply(change{base: newInode()})
	}
	f.locks[name] = true
	return &lock{f, name}, nil
}

type lock struct {
	fs   *FS
	name string
}

// Close gives the lock back; a machine without power has none.
func (l *lock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	delete(l.fs.locks, l.name)
	return nil
}

// now is the machine's clock; it only dates files.
func now() time.Time { return time.Now() }
