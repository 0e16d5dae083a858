package fsstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/strandline/strandline/objstore"
)

// Get implements objstore.Driver. The body stays readable if the object is
// deleted or replaced meanwhile.
func (d *Driver) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	const op = objstore.OpGet
	if err := begin(ctx, op, key); err != nil {
		return nil, objstore.Info{}, err
	}
	f, rec, err := d.open(op, key)
	if err != nil {
		return nil, objstore.Info{}, err
	}
	info := rec.info(key)
	body, err := section(f, info, r, ifMatch)
	if err != nil {
		return nil, objstore.Info{}, errors.Join(err, f.Close())
	}
	return body, info, nil
}

func section(f *os.File, info objstore.Info, r objstore.Range, ifMatch string) (io.ReadCloser, error) {
	if ifMatch != "" && ifMatch != info.ETag {
		return nil, &objstore.Error{Op: "get", Key: info.Key, Kind: objstore.ErrPrecondition, Err: fmt.Errorf("the ETag is %s", info.ETag)}
	}
	off, n, err := r.Resolve(info.Size)
	if err != nil {
		return nil, &objstore.Error{Op: "get", Key: info.Key, Kind: err, Err: fmt.Errorf("%+v of %d bytes", r, info.Size)}
	}
	return &body{f: f, key: info.Key, off: off, left: n}, nil
}

// body reads a range of a file.
type body struct {
	f         *os.File
	key       string
	off, left int64
}

func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.f.ReadAt(p[:min(int64(len(p)), b.left)], b.off)
	b.off, b.left = b.off+int64(n), b.left-int64(n)
	if errors.Is(err, io.EOF) {
		err = &objstore.Error{Op: "get", Key: b.key, Kind: objstore.ErrShort, Err: fmt.Errorf("%d bytes are missing: was the file cut?", b.left)}
	}
	return n, fsError("get", b.key, err)
}

func (b *body) Close() error { return fsError("get", b.key, b.f.Close()) }

// Head implements objstore.Driver.
func (d *Driver) Head(ctx context.Context, key string) (objstore.Info, error) {
	const op = objstore.OpHead
	if err := begin(ctx, op, key); err != nil {
		return objstore.Info{}, err
	}
	f, rec, err := d.open(op, key)
	if err != nil {
		return objstore.Info{}, err
	}
	if err := f.Close(); err != nil {
		return objstore.Info{}, fsError(string(op), key, err)
	}
	return rec.info(key), nil
}
