package fsstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/strandline/strandline/objstore"
)

// maxDurable bounds the cache of directories known to be durable.
const maxDurable = 1 << 14

// mkdirs makes dir and its missing parents below the root. They become durable in
// settle, before the write that needs them is acknowledged.
func (d *Driver) mkdirs(dir string) error {
	if dir == d.root {
		return nil // never made here: were it missing, the bucket would be gone
	}
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.mkdirs(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// settle makes a new name in dir durable: dir itself, and the entry of dir and of
// each directory above it in its parent. Another process may have made one of
// those and died before its fsync, so a directory counts as durable only if this
// process has synced that very one (inode and time of birth) before.
//
// The name in dir keeps dir from being pruned, so what is looked at here is what
// the name stands in. A dir that is missing means that the name was deleted since,
// by someone who makes that durable: there is nothing to do.
func (d *Driver) settle(op objstore.Op, key, dir string) error {
	err := d.syncUp(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = d.stands(op, key)
	}
	return unknown(op, key, err)
}

func (d *Driver) syncUp(dir string) error {
	if err := d.at("syncdir"); err != nil {
		return err
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	seen := map[string]identity{}
	for p := dir; p != d.root; p = filepath.Dir(p) {
		id, ok := identify(p)
		if ok && d.isDurable(p, id) {
			break // and so is all above it: it was recorded after a walk to the root
		}
		if err := d.at("syncparent"); err != nil {
			return err
		}
		if err := syncDir(filepath.Dir(p)); err != nil {
			return err
		}
		if ok {
			seen[p] = id
		}
	}
	d.setDurable(seen)
	return nil
}

func (d *Driver) isDurable(path string, id identity) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.durable[path] == id
}

func (d *Driver) setDurable(seen map[string]identity) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.durable) > maxDurable {
		clear(d.durable) // costs some extra syncs, nothing else
	}
	for path, id := range seen {
		d.durable[path] = id
	}
}

// settleAbsence makes removals in dir durable. If dir itself was pruned, the
// nearest directory that stands holds that.
func (d *Driver) settleAbsence(dir string) error {
	for {
		err := syncDir(dir)
		if !errors.Is(err, fs.ErrNotExist) || dir == d.root {
			return err
		}
		dir = filepath.Dir(dir)
	}
}

// prune removes dir and its parents as far as they are empty. rmdir(2) refuses a
// directory with anything in it, so a put that came first keeps its directory, and
// one that comes later finds it missing and makes it again (inDir).
func (d *Driver) prune(dir string) {
	for ; dir != d.root; dir = filepath.Dir(dir) {
		// An error means not empty, pruned by another, or not allowed: an empty
		// directory that stays does no harm.
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
