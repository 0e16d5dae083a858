package powercut

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
)

// Cut powers the machine off and returns what the next boot finds. Seed 0 is
// what was synced and nothing else; any other seed adds its own part of the
// rest. One FS may be cut several times: each is another way it could have gone.
func (f *FS) Cut(seed uint64) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.off = true
	rng := rand.New(rand.NewPCG(seed, 0x5eed))
	f.unmove(seed, rng)
	boot := New()
	boot.quiet = f.quiet
	booted := map[*inode]*inode{} // a file stays one file under two names
	for _, path := range slices.Sorted(maps.Keys(f.dirs)) {
		entries := f.dirs[path].after(seed, rng)
		d := &directory{seen: map[string]*inode{}}
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			i := entries[name]
			if booted[i] == nil {
				booted[i] = i.after(seed, rng)
			}
			d.seen[name] = booted[i]
		}
		d.disk = maps.Clone(d.seen)
		boot.dirs[path] = d
	}
	return boot
}

// after is the entries that the disk may have: journaling file systems keep a
// prefix of the operations, POSIX promises not even that.
func (d *directory) after(seed uint64, rng *rand.Rand) map[string]*inode {
	out := maps.Clone(d.disk)
	if seed == 0 {
		return out
	}
	prefix := rng.IntN(2) == 0
	upTo := rng.IntN(len(d.pending) + 1)
	for n, c := range d.pending {
		if prefix && n >= upTo || !prefix && rng.IntN(2) == 0 {
			continue
		}
		for name, i := range c {
			if i == nil {
				delete(out, name)
			} else {
				out[name] = i
			}
		}
	}
	return out
}

// Dump is every file as programs see it, by path.
func (f *FS) Dump() map[string][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string][]byte{}
	for path, d := range f.dirs {
		for name, i := range d.seen {
			out[filepath.Join(path, name)] = i.seen.bytes()
		}
	}
	return out
}

// ReadFile is a file as programs see it.
func (f *FS) ReadFile(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _, i, err := f.find("read", name)
	if err == nil && i == nil {
		err = &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	return i.seen.bytes(), nil
}

// WriteFile puts a file on the disk, as an operator or a fault of the medium
// would: durable, whatever stood there.
func (f *FS) WriteFile(name string, b []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, base, _, err := f.find("write", name)
	if err != nil {
		return err
	}
	i := onDisk(b)
	d.seen[base], d.disk[base] = i, i
	return nil
}
