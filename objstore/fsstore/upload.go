package fsstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/objstore"
)

// describes is the file of an upload's directory that says what it will be.
const describes = "upload"

// description is that file. Nothing of an upload is durable before Complete.
type description struct {
	Key       string            `json:"key"`
	Meta      map[string]string `json:"meta"`
	Initiated time.Time         `json:"initiated"`
}

func (d *Driver) uploadPath(id string) string { return filepath.Join(d.root, uploadsDir, id) }

func partName(number int) string { return fmt.Sprintf("%05d", number) }

// CreateUpload implements objstore.Driver.
func (d *Driver) CreateUpload(ctx context.Context, key string, meta map[string]string) (string, error) {
	const op = objstore.OpCreateUpload
	if err := begin(ctx, op, key); err != nil {
		return "", err
	}
	b, err := json.Marshal(description{Key: key, Meta: meta, Initiated: d.clock()})
	if err != nil {
		return "", invalid(op, key, "metadata: %w", err)
	}
	id := uuid.NewString()
	tmp := filepath.Join(d.root, tmpDir, string(op)+"-"+id)
	if err := d.at("create-upload"); err != nil {
		return "", fsError(string(op), key, err)
	}
	err = os.Mkdir(tmp, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(tmp, describes), b, 0o644)
	}
	if err == nil {
		err = os.Rename(tmp, d.uploadPath(id)) // whole from the first moment it is seen
	}
	if err != nil {
		return "", fsError(string(op), key, errors.Join(err, os.RemoveAll(tmp)))
	}
	return id, nil
}

// findUpload reads an upload's description, holding it to its key.
func (d *Driver) findUpload(ctx context.Context, op objstore.Op, key, id string) (description, error) {
	if err := begin(ctx, op, key); err != nil {
		return description{}, err
	}
	if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id {
		return description{}, noUpload(op, key, id)
	}
	desc, err := readDescription(d.uploadPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.stands(op, key); err != nil {
			return description{}, err
		}
	}
	if errors.Is(err, fs.ErrNotExist) || (err == nil && desc.Key != key) {
		return description{}, noUpload(op, key, id)
	}
	return desc, fsError(string(op), key, err)
}

func readDescription(dir string) (description, error) {
	b, err := os.ReadFile(filepath.Join(dir, describes))
	if err != nil {
		return description{}, err
	}
	var desc description
	if json.Unmarshal(b, &desc) != nil || objstore.CheckKey(desc.Key) != nil {
		return description{}, errRecord
	}
	return desc, nil
}

func noUpload(op objstore.Op, key, id string) error {
	return &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrNotFound, Err: fmt.Errorf("no upload %s: completed or aborted; begin a new one", id)}
}

// UploadPart implements objstore.Driver.
func (d *Driver) UploadPart(ctx context.Context, key, id string, number int, body io.ReadSeeker, size int64) (objstore.Part, error) {
	const op = objstore.OpUploadPart
	if _, err := d.findUpload(ctx, op, key, id); err != nil {
		return objstore.Part{}, err
	}
	if size < 0 {
		return objstore.Part{}, invalid(op, key, "a part of %d bytes", size)
	}
	return d.addPart(op, key, id, objstore.Part{Number: number, Size: size}, func(f *os.File) error {
		return copyBody(ctx, f, body, size)
	})
}

// CopyPart implements objstore.Driver.
func (d *Driver) CopyPart(ctx context.Context, key, id string, number int, src objstore.CopySource) (objstore.Part, error) {
	const op = objstore.OpCopyPart
	if _, err := d.findUpload(ctx, op, key, id); err != nil {
		return objstore.Part{}, err
	}
	f, err := d.source(key, src)
	if err != nil {
		return objstore.Part{}, err
	}
	part, err := d.addPart(op, key, id, objstore.Part{Number: number, Size: src.Length}, func(to *os.File) error {
		return copyBody(ctx, to, f, src.Length)
	})
	return part, errors.Join(err, fsError(string(op), key, f.Close()))
}

// source opens the object to copy from, at the range's start.
func (d *Driver) source(key string, src objstore.CopySource) (*os.File, error) {
	const op = objstore.OpCopyPart
	if src.ETag == "" {
		return nil, invalid(op, key, "a copy of %s without its ETag", src.Key)
	}
	if err := objstore.CheckKey(src.Key); err != nil {
		return nil, err
	}
	f, rec, err := d.open(op, src.Key)
	if err != nil {
		return nil, err
	}
	switch etag := rec.info(src.Key).ETag; {
	case etag != src.ETag:
		err = &objstore.Error{Op: string(op), Key: src.Key, Kind: objstore.ErrPrecondition, Err: fmt.Errorf("the source's ETag is %s", etag)}
	case src.Offset < 0 || src.Length <= 0 || src.Offset > rec.size-src.Length:
		err = &objstore.Error{Op: string(op), Key: src.Key, Kind: objstore.ErrRange, Err: fmt.Errorf(
			"%d bytes at %d of a source of %d", src.Length, src.Offset, rec.size)}
	default:
		_, err = f.Seek(src.Offset, io.SeekStart)
	}
	if err != nil {
		return nil, fsError(string(op), key, errors.Join(err, f.Close()))
	}
	return f, nil
}

// addPart writes a part's file and moves it into the upload, over an earlier one
// of the same number.
func (d *Driver) addPart(op objstore.Op, key, id string, p objstore.Part, write func(*os.File) error) (objstore.Part, error) {
	if p.Number < 1 || p.Number > 10_000 {
		return objstore.Part{}, invalid(op, key, "part number %d: give 1 to 10,000", p.Number)
	}
	r := d.newRecord(p.Size, nil)
	tmp, err := d.writeTemp(op, r, false, write)
	if err != nil {
		return objstore.Part{}, fsError(string(op), key, err)
	}
	if err := os.Rename(tmp, filepath.Join(d.uploadPath(id), partName(p.Number))); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = noUpload(op, key, id) // aborted meanwhile
		}
		return objstore.Part{}, fsError(string(op), key, errors.Join(err, os.Remove(tmp)))
	}
	p.ETag = r.info(key).ETag
	return p, nil
}

// Abort implements objstore.Driver. The upload leaves in one step; a part still
// being written then finds no directory to move into.
func (d *Driver) Abort(ctx context.Context, key, id string) error {
	_, err := d.findUpload(ctx, objstore.OpAbort, key, id)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return fsError("abort", key, d.dropUpload(id))
}

func (d *Driver) dropUpload(id string) error {
	gone := filepath.Join(d.root, tmpDir, "dropped-"+uuid.NewString())
	if err := os.Rename(d.uploadPath(id), gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A crash here leaves the parts in @tmp, which Open sweeps later.
	return os.RemoveAll(gone)
}

// ListUploads implements objstore.Driver.
func (d *Driver) ListUploads(ctx context.Context, prefix string) ([]objstore.Upload, error) {
	const op = "list-uploads"
	entries, err := os.ReadDir(filepath.Join(d.root, uploadsDir))
	if err != nil {
		return nil, fsError(op, prefix, errors.Join(err, d.stands(op, prefix)))
	}
	var ups []objstore.Upload
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, fsError(op, prefix, err)
		}
		if !e.IsDir() {
			continue // nothing that this package makes
		}
		desc, err := readDescription(d.uploadPath(e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // completed or aborted since
		}
		if err != nil {
			return nil, fsError(op, e.Name(), err)
		}
		if strings.HasPrefix(desc.Key, prefix) {
			ups = append(ups, objstore.Upload{Key: desc.Key, ID: e.Name(), Initiated: desc.Initiated})
		}
	}
	slices.SortFunc(ups, func(a, b objstore.Upload) int { return strings.Compare(a.Key+"\x00"+a.ID, b.Key+"\x00"+b.ID) })
	return ups, nil
}
