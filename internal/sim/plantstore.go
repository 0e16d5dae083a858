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
		return Plant{Name: name, Rules: rules, plant: func(cfg *Config) {
			cfg.Hooks.Requests = func(_ string, d objstore.Driver) objstore.Driver { return wrap(d) }
		}}
	}
	return []Plant{
		requests("a listing error taken for an empty listing", []string{"I3", "I5"}, func(d objstore.Driver) objstore.Driver { return listsNothing{d} }),
		requests("bulk-delete per-key errors ignored", []string{"I3"}, func(d objstore.Driver) objstore.Driver { return deletesBlindly{d} }),
		requests("head not written before the first delete", []string{"03 §7"}, func(d objstore.Driver) objstore.Driver { return writesNoHead{d} }),
		requests("a 412 taken for one's own object", []string{"I1", "I2", "I8"}, func(d objstore.Driver) objstore.Driver { return existsIsMine{d} }),
		requests("an unknown outcome of a PUT taken for success", []string{"I2"}, func(d objstore.Driver) objstore.Driver { return putsBlindly{d} }),
	}
}

// listsNothing has a bucket that lists nothing, for all listings fail, and takes the
// errors for empty lists.
type listsNothing struct{ objstore.Driver }

func (d listsNothing) List(context.Context, string, string, string, int) (objstore.Page, error) {
	return objstore.Page{}, nil
}

func (d listsNothing) ListUploads(context.Context, string) ([]objstore.Upload, error) {
	return nil, nil
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
