package auditbench

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/objstore"
)

// under is a driver whose keys all lie under one directory of another's: a bucket within
// the bucket. It also keeps the time that deletes took.
type under struct {
	objstore.Driver
	dir string // ends in "/"

	deleting atomic.Int64 // nanoseconds
}

func (u *under) short(info objstore.Info) objstore.Info {
	info.Key = strings.TrimPrefix(info.Key, u.dir)
	return info
}

func (u *under) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, o objstore.PutOptions) (objstore.Info, error) {
	info, err := u.Driver.Put(ctx, u.dir+key, body, size, o)
	return u.short(info), err
}

func (u *under) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	body, info, err := u.Driver.Get(ctx, u.dir+key, r, ifMatch)
	return body, u.short(info), err
}

func (u *under) Head(ctx context.Context, key string) (objstore.Info, error) {
	info, err := u.Driver.Head(ctx, u.dir+key)
	return u.short(info), err
}

func (u *under) List(ctx context.Context, prefix, startAfter, token string, limit int) (objstore.Page, error) {
	if startAfter != "" {
		startAfter = u.dir + startAfter
	}
	page, err := u.Driver.List(ctx, u.dir+prefix, startAfter, token, limit)
	for i := range page.Objects {
		page.Objects[i] = u.short(page.Objects[i])
	}
	return page, err
}

func (u *under) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	full := make([]string, len(keys))
	for i, key := range keys {
		full[i] = u.dir + key
	}
	began := time.Now()
	out, err := u.Driver.Delete(ctx, full)
	u.deleting.Add(int64(time.Since(began)))
	for i := range out {
		out[i].Key = strings.TrimPrefix(out[i].Key, u.dir)
	}
	return out, err
}

func (u *under) CreateUpload(ctx context.Context, key string, meta map[string]string) (string, error) {
	return u.Driver.CreateUpload(ctx, u.dir+key, meta)
}

func (u *under) UploadPart(ctx context.Context, key, id string, n int, body io.ReadSeeker, size int64) (objstore.Part, error) {
	return u.Driver.UploadPart(ctx, u.dir+key, id, n, body, size)
}

func (u *under) CopyPart(ctx context.Context, key, id string, n int, src objstore.CopySource) (objstore.Part, error) {
	src.Key = u.dir + src.Key
	return u.Driver.CopyPart(ctx, u.dir+key, id, n, src)
}

func (u *under) Complete(ctx context.Context, key, id string, parts []objstore.Part, o objstore.PutOptions) (objstore.Info, error) {
	info, err := u.Driver.Complete(ctx, u.dir+key, id, parts, o)
	return u.short(info), err
}

func (u *under) Abort(ctx context.Context, key, id string) error {
	return u.Driver.Abort(ctx, u.dir+key, id)
}

func (u *under) ListUploads(ctx context.Context, prefix string) ([]objstore.Upload, error) {
	uploads, err := u.Driver.ListUploads(ctx, u.dir+prefix)
	for i := range uploads {
		uploads[i].Key = strings.TrimPrefix(uploads[i].Key, u.dir)
	}
	return uploads, err
}

func (u *under) Name() string { return u.Driver.Name() + "/" + strings.TrimSuffix(u.dir, "/") }

// Close leaves the driver below open: it is the caller's.
func (u *under) Close() error { return nil }
