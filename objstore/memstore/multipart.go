package memstore

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
)

type upload struct {
	key       string
	meta      map[string]string
	initiated time.Time
	parts     map[int]object
}

// CreateUpload implements objstore.Driver.
func (d *Driver) CreateUpload(ctx context.Context, key string, meta map[string]string) (string, error) {
	if err := begin(ctx, objstore.OpCreateUpload, key); err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := "up-" + d.newETag()
	d.uploads[id] = &upload{key: key, meta: maps.Clone(meta), initiated: d.opts.Clock(), parts: map[int]object{}}
	return id, nil
}

// find gives the upload of key and id. d.mu is held.
func (d *Driver) findUpload(op objstore.Op, key, id string) (*upload, error) {
	u := d.uploads[id]
	if u == nil || u.key != key {
		return nil, fail(op, key, objstore.ErrNotFound, "no upload %s", id)
	}
	return u, nil
}

// UploadPart implements objstore.Driver.
func (d *Driver) UploadPart(ctx context.Context, key, id string, number int, body io.ReadSeeker, size int64) (objstore.Part, error) {
	if err := begin(ctx, objstore.OpUploadPart, key); err != nil {
		return objstore.Part{}, err
	}
	b, err := take(objstore.OpUploadPart, key, body, size)
	if err != nil {
		return objstore.Part{}, err
	}
	return d.addPart(objstore.OpUploadPart, key, id, number, b)
}

func (d *Driver) addPart(op objstore.Op, key, id string, number int, b []byte) (objstore.Part, error) {
	if number < 1 || number > 10_000 {
		return objstore.Part{}, fail(op, key, objstore.ErrInvalid, "part number %d: give 1 to 10,000", number)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	u, err := d.findUpload(op, key, id)
	if err != nil {
		return objstore.Part{}, err
	}
	o := object{body: b, etag: d.newETag()}
	u.parts[number] = o
	return objstore.Part{Number: number, ETag: o.etag, Size: int64(len(b))}, nil
}

// CopyPart implements objstore.Driver.
func (d *Driver) CopyPart(ctx context.Context, key, id string, number int, src objstore.CopySource) (objstore.Part, error) {
	op := objstore.OpCopyPart
	if err := begin(ctx, op, key); err != nil {
		return objstore.Part{}, err
	}
	if src.ETag == "" {
		return objstore.Part{}, fail(op, key, objstore.ErrInvalid, "copy of %s without its ETag", src.Key)
	}
	o, err := d.find(op, src.Key, src.ETag)
	if err != nil {
		return objstore.Part{}, err
	}
	size := int64(len(o.body))
	if src.Offset < 0 || src.Length <= 0 || src.Offset+src.Length > size {
		return objstore.Part{}, fail(op, key, objstore.ErrRange, "%d bytes at %d of %s, which has %d", src.Length, src.Offset, src.Key, size)
	}
	if d.opts.MinCopy > 0 && size <= d.opts.MinCopy {
		return objstore.Part{}, fail(op, key, objstore.ErrInvalid, "range copy of %s: %d bytes are too few", src.Key, size)
	}
	return d.addPart(op, key, id, number, slices.Clone(o.body[src.Offset:src.Offset+src.Length]))
}

// Complete implements objstore.Driver. A lost race and a refused part list leave
// the upload alive, as on AWS.
func (d *Driver) Complete(ctx context.Context, key, id string, parts []objstore.Part, opts objstore.PutOptions) (objstore.Info, error) {
	if err := begin(ctx, objstore.OpComplete, key); err != nil {
		return objstore.Info{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	u, err := d.findUpload(objstore.OpComplete, key, id)
	if err != nil {
		return objstore.Info{}, err
	}
	body, err := u.assemble(parts, d.opts)
	if err != nil {
		return objstore.Info{}, fail(objstore.OpComplete, key, objstore.ErrInvalid, "%w", err)
	}
	if d.opts.BlindComplete {
		opts = objstore.PutOptions{}
	}
	info, err := d.publish(objstore.OpComplete, key, body, u.meta, opts)
	if err == nil || d.opts.AbortsLosers {
		delete(d.uploads, id)
	}
	return info, err
}

func (u *upload) assemble(parts []objstore.Part, opts Options) ([]byte, error) {
	if len(parts) == 0 {
		return nil, fmt.Errorf("no parts")
	}
	var body []byte
	for i, p := range parts {
		o, ok := u.parts[p.Number]
		n, last := int64(len(o.body)), i == len(parts)-1
		switch {
		case !ok || o.etag != p.ETag:
			return nil, fmt.Errorf("part %d is not of this upload", p.Number)
		case i > 0 && p.Number <= parts[i-1].Number:
			return nil, fmt.Errorf("part %d is out of order", p.Number)
		case !last && n < opts.MinPart:
			return nil, fmt.Errorf("part %d has %d bytes, the least is %d", p.Number, n, opts.MinPart)
		case opts.EqualParts && !last && n != int64(len(u.parts[parts[0].Number].body)):
			return nil, fmt.Errorf("part %d differs in length", p.Number)
		}
		body = append(body, o.body...)
	}
	return body, nil
}

// Abort implements objstore.Driver.
func (d *Driver) Abort(ctx context.Context, key, id string) error {
	if err := begin(ctx, objstore.OpAbort, key); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if u := d.uploads[id]; u != nil && u.key == key {
		delete(d.uploads, id)
	}
	return nil
}

// ListUploads implements objstore.Driver.
func (d *Driver) ListUploads(ctx context.Context, prefix string) ([]objstore.Upload, error) {
	if err := ctx.Err(); err != nil {
		return nil, fail(objstore.OpListUploads, prefix, objstore.ErrUnavailable, "%w", err)
	}
	if err := d.checkPrefix(objstore.OpListUploads, prefix); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var ups []objstore.Upload
	for id, u := range d.uploads {
		if strings.HasPrefix(u.key, prefix) {
			ups = append(ups, objstore.Upload{Key: u.key, ID: id, Initiated: u.initiated})
		}
	}
	slices.SortFunc(ups, func(a, b objstore.Upload) int {
		return strings.Compare(a.Key+"\x00"+a.ID, b.Key+"\x00"+b.ID)
	})
	return ups, nil
}
