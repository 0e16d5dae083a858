package fsstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/strandline/strandline/objstore"
)

// Complete implements objstore.Driver: the parts are copied into one file, which
// is then published as a put's is.
func (d *Driver) Complete(ctx context.Context, key, id string, parts []objstore.Part, opts objstore.PutOptions) (objstore.Info, error) {
	const op = objstore.OpComplete
	desc, err := d.findUpload(ctx, op, key, id)
	if err != nil {
		return objstore.Info{}, err
	}
	size, err := d.checkParts(key, id, parts)
	if err != nil {
		return objstore.Info{}, err
	}
	r := d.newRecord(size, desc.Meta)
	tmp, err := d.writeTemp(op, r, true, func(to *os.File) error {
		for _, p := range parts {
			if err := d.appendPart(ctx, to, key, id, p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return objstore.Info{}, fsError(string(op), key, err)
	}
	if err := d.publish(ctx, op, key, tmp, opts); err != nil {
		return objstore.Info{}, err // a lost race leaves the upload alive
	}
	// A crash here leaves object and upload: a repeated complete finds the object,
	// and an abort drops the upload.
	if d.at("drop") == nil {
		// The object stands: that the parts could not be removed does not change it.
		// ListUploads keeps showing them to whoever sweeps uploads.
		_ = d.dropUpload(id)
	}
	return r.info(key), nil
}

// checkParts holds the list to what was uploaded and gives the object's size.
func (d *Driver) checkParts(key, id string, parts []objstore.Part) (size int64, err error) {
	const op = objstore.OpComplete
	if len(parts) == 0 {
		return 0, invalid(op, key, "no parts")
	}
	for i, p := range parts {
		if i > 0 && p.Number <= parts[i-1].Number {
			return 0, invalid(op, key, "part %d is out of order", p.Number)
		}
		f, r, err := d.openPart(key, id, p)
		if err != nil {
			return 0, err
		}
		if err := f.Close(); err != nil {
			return 0, fsError(string(op), key, err)
		}
		size += r.size
	}
	return size, nil
}

func (d *Driver) openPart(key, id string, p objstore.Part) (*os.File, record, error) {
	const op = objstore.OpComplete
	f, r, err := openRecord(filepath.Join(d.uploadPath(id), partName(p.Number)))
	if errors.Is(err, fs.ErrNotExist) {
		if _, serr := os.Stat(d.uploadPath(id)); errors.Is(serr, fs.ErrNotExist) {
			return nil, record{}, noUpload(op, key, id)
		}
		return nil, record{}, invalid(op, key, "part %d was not uploaded", p.Number)
	}
	if err != nil {
		return nil, record{}, fsError(string(op), key, err)
	}
	if r.info(key).ETag != p.ETag {
		return nil, record{}, errors.Join(invalid(op, key, "part %d is another than the one listed", p.Number), f.Close())
	}
	return f, r, nil
}

func (d *Driver) appendPart(ctx context.Context, to *os.File, key, id string, p objstore.Part) error {
	f, r, err := d.openPart(key, id, p)
	if err != nil {
		return err
	}
	if err := copyBody(ctx, to, f, r.size); err != nil {
		return errors.Join(fmt.Errorf("part %d: %w", p.Number, err), f.Close())
	}
	return f.Close()
}
