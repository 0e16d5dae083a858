package fsstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/strandline/strandline/objstore"
)

const (
	tmpDir     = "@tmp"
	uploadsDir = "@uploads"
	locksDir   = "@locks"

	// leftoverAge is far above the time any write stays in @tmp without growing.
	leftoverAge = time.Hour

	maxDelete = 1000
)

// Options of Open. The zero value opens a bucket that exists.
type Options struct {
	Create bool             // make the directory, with parents, if it is missing
	Clock  func() time.Time // for Info.Modified and the age of leftovers; default time.Now
}

// Driver is an open directory. It is safe for concurrent use.
type Driver struct {
	root  string
	clock func() time.Time
	// at is called before each step of a write with the step's name; tests let it
	// fail or kill the process there. It is set before the Driver is shared.
	at func(step string) error

	stripes [stripeCount]chan struct{} // held by the goroutine that holds the flock

	mu      sync.Mutex
	durable map[string]identity // directories whose entry in their parent is durable; mu
}

var _ objstore.Driver = (*Driver)(nil)

// Open opens dir as a bucket and sweeps the leftovers of crashed writes.
//
// ErrNotFound: dir is missing or holds no bucket, and Create is not set.
// ErrDenied: it cannot be written, and something had to be. A bucket that stands
// can be opened and read without the right to write.
func Open(dir string, opts Options) (*Driver, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, fsError("open", dir, err)
	}
	d := &Driver{root: root, clock: opts.Clock, at: func(string) error { return nil }, durable: map[string]identity{}}
	if d.clock == nil {
		d.clock = time.Now
	}
	for i := range d.stripes {
		d.stripes[i] = make(chan struct{}, 1)
	}
	if err := d.layOut(opts.Create); err != nil {
		return nil, err
	}
	if err := d.sweep(); err != nil {
		return nil, err
	}
	return d, nil
}

// layOut checks that the bucket's directories stand, or makes them, durably.
func (d *Driver) layOut(create bool) error {
	info, err := os.Stat(d.root)
	switch {
	case err == nil && !info.IsDir():
		return &objstore.Error{Op: "open", Key: d.root, Kind: objstore.ErrInvalid, Err: errors.New("not a directory: name a directory for the bucket")}
	case errors.Is(err, fs.ErrNotExist) && !create:
		return d.missing("no such directory")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fsError("open", d.root, err)
	}
	// @tmp comes last: it is what says that the bucket is whole.
	for _, name := range []string{locksDir, uploadsDir, tmpDir} {
		path := filepath.Join(d.root, name)
		if _, err := os.Stat(path); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fsError("open", path, err)
		}
		if !create {
			return d.missing("the directory holds no bucket (no " + name + ")")
		}
		if err := makeDurable(path); err != nil {
			return fsError("open", path, err)
		}
	}
	return nil
}

func (d *Driver) missing(what string) error {
	return &objstore.Error{Op: "open", Key: d.root, Kind: objstore.ErrNotFound, Err: fmt.Errorf(
		"%s: check the path and that its file system is mounted, `strandline up` makes that of a new deployment only", what)}
}

// makeDurable makes path and its missing parents, each durable in its parent.
func makeDurable(path string) error {
	parent := filepath.Dir(path)
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) && parent != path {
		if err := makeDurable(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// sweep removes what crashed writes left in @tmp.
func (d *Driver) sweep() error {
	tmp := filepath.Join(d.root, tmpDir)
	entries, err := os.ReadDir(tmp)
	if err != nil {
		return fsError("open", tmp, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process finished with it
		}
		if err != nil {
			return fsError("open", tmp, err)
		}
		if d.clock().Sub(info.ModTime()) <= leftoverAge {
			continue // it may be another process's write in progress
		}
		err = fsError("open", tmp, os.RemoveAll(filepath.Join(tmp, e.Name())))
		if errors.Is(err, objstore.ErrDenied) {
			return nil // opened to read only; a process that may write will sweep
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stands says whether the bucket is there at all, before absence is believed.
func (d *Driver) stands(op objstore.Op, key string) error {
	if _, err := os.Stat(filepath.Join(d.root, tmpDir)); err != nil {
		return &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrUnavailable, Err: fmt.Errorf(
			"the bucket's directory is not what it was (%w): is its file system mounted?", err)}
	}
	return nil
}

// begin holds every call to a living ctx and a sound key.
func begin(ctx context.Context, op objstore.Op, key string) error {
	if ctx.Err() != nil {
		return &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrUnavailable, Err: context.Cause(ctx)}
	}
	return objstore.CheckKey(key)
}

// Capabilities are all there are.
func (d *Driver) Capabilities() objstore.Capabilities {
	return objstore.Capabilities{OrderedList: true, StartAfter: true, RangeCopy: true, ConditionalComplete: true, ListUploads: true, MaxDeleteSet: maxDelete}
}

// Name is the directory as a URL.
func (d *Driver) Name() string { return "file://" + filepath.ToSlash(d.root) }

// Close has nothing to release: files and locks are held within calls only.
func (d *Driver) Close() error { return nil }
