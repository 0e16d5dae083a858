package fsstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/uuid"

	"github.com/strandline/strandline/objstore"
)

// remakes bounds how often one put makes its directory again after deletes pruned
// it. Each time, some delete made progress.
const remakes = 1000

// Put implements objstore.Driver.
func (d *Driver) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	const op = objstore.OpPut
	if err := begin(ctx, op, key); err != nil {
		return objstore.Info{}, err
	}
	if size < 0 {
		return objstore.Info{}, invalid(op, key, "a body of %d bytes", size)
	}
	r := d.newRecord(size, opts.Meta)
	tmp, err := d.writeTemp(op, r, true, func(f *os.File) error { return copyBody(ctx, f, body, size) })
	if err != nil {
		return objstore.Info{}, fsError(string(op), key, err)
	}
	if err := d.publish(ctx, op, key, tmp, opts); err != nil {
		return objstore.Info{}, err
	}
	return r.info(key), nil
}

func invalid(op objstore.Op, key, format string, args ...any) error {
	return &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrInvalid, Err: fmt.Errorf(format, args...)}
}

// copyStep is how many bytes are copied between looks at ctx.
const copyStep = 32 << 20

// copyBody copies exactly size bytes into f. From file to file the kernel does it
// (copy_file_range), where it can.
func copyBody(ctx context.Context, f *os.File, body io.Reader, size int64) error {
	if b, ok := body.(*bytes.Reader); ok && int64(b.Len()) == size {
		_, err := b.WriteTo(f) // one write, no buffer
		return err
	}
	for left := size; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(f, body, min(left, copyStep))
		left -= n
		if errors.Is(err, io.EOF) {
			return &objstore.Error{Op: "put", Key: f.Name(), Kind: objstore.ErrInvalid, Err: fmt.Errorf(
				"the body ended %d bytes before its announced %d", left, size)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeTemp writes an object's file into @tmp, fsynced if durable is set. On an
// error nothing is left there.
func (d *Driver) writeTemp(op objstore.Op, r record, durable bool, write func(*os.File) error) (path string, err error) {
	tail, err := r.tail()
	if err != nil {
		return "", invalid(op, "metadata", "%w", err)
	}
	path = filepath.Join(d.root, tmpDir, string(op)+"-"+uuid.NewString())
	if err := d.at("create"); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return "", err
	}
	// A crash from here to publish leaves a file in @tmp, which Open sweeps later.
	err = errors.Join(d.fillTemp(f, tail, durable, write), f.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}

func (d *Driver) fillTemp(f *os.File, tail []byte, durable bool, write func(*os.File) error) error {
	if err := d.at("write"); err != nil {
		return err
	}
	if err := write(f); err != nil {
		return err
	}
	if _, err := f.Write(tail); err != nil {
		return err
	}
	if !durable {
		return nil
	}
	if err := d.at("sync"); err != nil {
		return err
	}
	return f.Sync()
}

// publish gives the file tmp its name under the conditions of opts, durably. tmp
// is gone after it, whatever the outcome.
func (d *Driver) publish(ctx context.Context, op objstore.Op, key, tmp string, opts objstore.PutOptions) error {
	place := d.replace
	if opts.IfNoneMatch {
		place = d.create
	}
	err := place(ctx, op, key, tmp, opts)
	// What cannot be removed here is a file that nothing refers to, or a second name
	// of the object; a later Open sweeps it. The outcome of the write stands.
	_ = os.Remove(tmp)
	return err
}

// create links tmp to the key's name: exactly one of all racers succeeds.
func (d *Driver) create(ctx context.Context, op objstore.Op, key, tmp string, _ objstore.PutOptions) error {
	path := d.objectPath(key)
	err := d.inDir(ctx, op, key, path, func() error {
		if err := d.at("link"); err != nil {
			return err
		}
		return os.Link(tmp, path)
	})
	if errors.Is(err, fs.ErrExist) {
		// The winner may not have synced yet: whoever acts on "exists" must be able
		// to rely on it after a power loss too.
		if err := d.settle(op, key, filepath.Dir(path)); err != nil {
			return err
		}
		return &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrExists, Err: err}
	}
	if errors.Is(err, syscall.EPERM) && d.writable() {
		err = &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrUnsupported, Err: fmt.Errorf("%w: %s", err, noLinks)}
	}
	if err != nil {
		return fsError(string(op), key, err)
	}
	// A crash here leaves the object visible and unacknowledged: the writer reads
	// back its nonce, or finds it under recovery.
	if err := d.settle(op, key, filepath.Dir(path)); err != nil {
		return err
	}
	return d.at("linked")
}

// writable tells a directory without links from one without rights: a rename
// within it, too, needs the right to write.
func (d *Driver) writable() bool {
	path := filepath.Join(d.root, "@probe-"+uuid.NewString())
	if os.Mkdir(path, 0o755) != nil {
		return false
	}
	return os.Remove(path) == nil
}

// replace renames tmp over the key's name if opts allow it, under the key's lock.
func (d *Driver) replace(ctx context.Context, op objstore.Op, key, tmp string, opts objstore.PutOptions) error {
	release, err := d.lock(ctx, op, key)
	if err != nil {
		return err
	}
	defer release()
	if opts.IfMatch != "" {
		if err := d.match(op, key, opts.IfMatch); err != nil {
			return err
		}
	}
	path := d.objectPath(key)
	err = d.inDir(ctx, op, key, path, func() error {
		if err := d.at("rename"); err != nil {
			return err
		}
		return os.Rename(tmp, path)
	})
	if err != nil {
		return fsError(string(op), key, err)
	}
	// A crash here: as in create.
	if err := d.settle(op, key, filepath.Dir(path)); err != nil {
		return err
	}
	return d.at("renamed")
}

// match holds the object to an ETag. The key's lock is held.
func (d *Driver) match(op objstore.Op, key, etag string) error {
	f, r, err := d.open(op, key)
	if errors.Is(err, objstore.ErrNotFound) {
		return &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrPrecondition, Err: errors.New("nothing stands there")}
	}
	if err != nil {
		return err
	}
	if got := r.info(key).ETag; got != etag {
		err = &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrPrecondition, Err: fmt.Errorf("the ETag is %s", got)}
	}
	return errors.Join(err, f.Close())
}

// inDir runs do, which gives a file its name in path's directory, making that
// directory as often as deletes prune it.
func (d *Driver) inDir(ctx context.Context, op objstore.Op, key, path string, do func() error) error {
	for range remakes {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := do()
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := d.stands(op, key); err != nil {
			return err
		}
		if err := d.at("mkdir"); err != nil {
			return err
		}
		// A crash here leaves an empty directory, which no listing shows and the next
		// delete in it prunes.
		if err := d.mkdirs(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrConflict, Err: errors.New("deletes keep pruning its directory: try again")}
}
