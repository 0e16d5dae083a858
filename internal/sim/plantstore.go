package sim

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// storePlants are processes that misread what the bucket answers, or leave a request out.
func storePlants() []Plant {
	requests := func(name string, rules []string, wrap func(d objstore.Driver) objstore.Driver) Plant {
		return Plant{name, rules, func(cfg *Config) {
			cfg.Hooks.Requests = func(_ string, d objstore.Driver) objstore.Driver { return wrap(d) }
		}}
	}
	return []Plant{
		requests("a listing error taken for an empty listing", []string{"I3", "I5"}, func(d objstore.Driver) objstore.Driver { return listsNothing{d} }),
		requests("a truncated listing taken as whole", []string{"I1", "I3", "I5", "03 §9"}, func(d objstore.Driver) objstore.Driver { return listsOnePage{d} }),
		requests("bulk-delete per-key errors ignored", []string{"I3"}, func(d objstore.Driver) objstore.Driver { return deletesBlindly{d} }),
		requests("head not written before the first delete", []string{"03 §7"}, func(d objstore.Driver) objstore.Driver { return writesNoHead{d} }),
		requests("short body accepted", []string{"I1", "I2", "I7"}, func(d objstore.Driver) objstore.Driver { return readsShort{d} }),
		requests("a 412 taken for one's own object", []string{"I1", "I2", "I8"}, func(d objstore.Driver) objstore.Driver { return existsIsMine{d} }),
		requests("an unknown outcome of a PUT taken for success", []string{"I2"}, func(d objstore.Driver) objstore.Driver { return putsBlindly{d} }),
	}
}

// listsNothing takes an error for the end of the list.
type listsNothing struct{ objstore.Driver }

func (d listsNothing) List(ctx context.Context, prefix, startAfter, token string, limit int) (objstore.Page, error) {
	page, err := d.Driver.List(ctx, prefix, startAfter, token, limit)
	if err != nil {
		return objstore.Page{}, nil //nolint:nilerr // the planted bug
	}
	return page, nil
}

func (d listsNothing) ListUploads(ctx context.Context, prefix string) ([]objstore.Upload, error) {
	ups, err := d.Driver.ListUploads(ctx, prefix)
	if err != nil {
		return nil, nil //nolint:nilerr // the planted bug
	}
	return ups, nil
}

// listsOnePage follows no continuation.
type listsOnePage struct{ objstore.Driver }

func (d listsOnePage) List(ctx context.Context, prefix, startAfter, token string, limit int) (objstore.Page, error) {
	page, err := d.Driver.List(ctx, prefix, startAfter, token, limit)
	page.Next = ""
	return page, err
}

// deletesBlindly looks at no key's own result.
type deletesBlindly struct{ objstore.Driver }

func (d deletesBlindly) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	out, err := d.Driver.Delete(ctx, keys)
	for i := range out {
		out[i].Err = nil
	}
	return out, err
}

// writesNoHead leaves the heads as they are.
type writesNoHead struct{ objstore.Driver }

func (d writesNoHead) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	if strings.HasPrefix(key, segment.RWPrefix) {
		return objstore.Info{Key: key, Size: size, ETag: "never written", Modified: time.Now()}, nil
	}
	return d.Driver.Put(ctx, key, body, size, opts)
}

// readsShort takes a body that was cut for one that ended.
type readsShort struct{ objstore.Driver }

func (d readsShort) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	body, info, err := d.Driver.Get(ctx, key, r, ifMatch)
	if err == nil {
		body = &endsEarly{body}
	}
	return body, info, err
}

type endsEarly struct{ io.ReadCloser }

func (b *endsEarly) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, objstore.ErrShort) {
		err = io.EOF
	}
	return n, err
}

// existsIsMine takes whatever stands under its key for what it sent.
type existsIsMine struct{ objstore.Driver }

func (d existsIsMine) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	info, err := d.Driver.Put(ctx, key, body, size, opts)
	if opts.IfNoneMatch && errors.Is(err, objstore.ErrExists) {
		return d.Driver.Head(ctx, key)
	}
	return info, err
}

func (d existsIsMine) Complete(ctx context.Context, key, id string, parts []objstore.Part, opts objstore.PutOptions) (objstore.Info, error) {
	info, err := d.Driver.Complete(ctx, key, id, parts, opts)
	if errors.Is(err, objstore.ErrExists) {
		return d.Driver.Head(ctx, key)
	}
	return info, err
}

// putsBlindly takes a PUT whose answer was lost for one that happened.
type putsBlindly struct{ objstore.Driver }

func (d putsBlindly) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	info, err := d.Driver.Put(ctx, key, body, size, opts)
	if errors.Is(err, objstore.ErrAmbiguous) {
		return objstore.Info{Key: key, Size: size, ETag: "unknown", Modified: time.Now()}, nil
	}
	return info, err
}
