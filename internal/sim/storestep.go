package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"time"

	"github.com/strandline/strandline/objstore"
)

// stepStore makes every request of a process a step. It stands below objstore.Store, so
// that the retries are the real ones.
type stepStore struct {
	objstore.Driver
	p      *process
	bucket *bucket
}

// request makes one request. late says whether it may still happen once its caller has
// given it up: do must not touch what is the caller's by then.
func request[T any](ctx context.Context, d *stepStore, op objstore.Op, key, about string, do func(context.Context, fate) (T, error)) (T, fate, error) {
	var none, out T
	if err := ctx.Err(); err != nil {
		return none, fate{}, notMade(ctx, op, key)
	}
	var err error
	c := &call{p: d.p, what: d.bucket.op(op), key: key + about, object: key, mutates: op.Mutation(), op: op, bucket: d.bucket}
	c.apply = func(f fate) { out, err = do(context.WithoutCancel(ctx), f) }
	f := d.p.sim.park(ctx, c)
	switch f.kind {
	case FaultNone, FaultShort, FaultTruncated, FaultSome:
		return out, f, err
	}
	if f.kind == faultUnmade {
		return none, f, notMade(ctx, op, key)
	}
	e := &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrUnavailable, Err: errors.Join(errInjected, errors.New(string(f.kind)))}
	switch f.kind {
	case FaultThrottled:
		e.Throttled, e.RetryAfter = true, f.ask
	case FaultConflict:
		e.Kind = objstore.ErrConflict
	case FaultLost, FaultLate, FaultTimeout, FaultDead, FaultCrashAfter:
		if c.mutates {
			e.Kind = objstore.ErrAmbiguous
		}
	}
	return none, f, e
}

// notMade is the answer to a caller whose ctx is over.
func notMade(ctx context.Context, op objstore.Op, key string) error {
	return &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrUnavailable, Err: context.Cause(ctx)}
}

// Put implements objstore.Driver.
func (d *stepStore) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	b, err := io.ReadAll(body)
	if err != nil {
		return objstore.Info{}, &objstore.Error{Op: string(objstore.OpPut), Key: key, Kind: objstore.ErrInvalid, Err: err}
	}
	info, _, err := request(ctx, d, objstore.OpPut, key, "", func(ctx context.Context, _ fate) (objstore.Info, error) {
		return d.Driver.Put(ctx, key, bytes.NewReader(b), size, opts)
	})
	return info, err
}

func rangeOf(r objstore.Range) string {
	if r == objstore.Whole {
		return ""
	}
	return fmt.Sprintf(" [%d, %d]", r.Offset, r.Length)
}

type opened struct {
	body io.ReadCloser
	info objstore.Info
}

// Get implements objstore.Driver.
func (d *stepStore) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	o, f, err := request(ctx, d, objstore.OpGet, key, rangeOf(r), func(ctx context.Context, _ fate) (opened, error) {
		body, info, err := d.Driver.Get(ctx, key, r, ifMatch)
		return opened{body, info}, err
	})
	if err == nil && f.kind == FaultShort {
		all, _ := io.ReadAll(o.body) // of memory
		short := &objstore.Error{Op: string(objstore.OpGet), Key: key, Kind: objstore.ErrShort, Err: errInjected}
		o.body = io.NopCloser(&cutBody{left: all[:f.arg%uint64(len(all)+1)], err: short})
	}
	return o.body, o.info, err
}

// cutBody ends in an error where the rest should be.
type cutBody struct {
	left []byte
	err  error
}

func (b *cutBody) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		return 0, b.err
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// Head implements objstore.Driver.
func (d *stepStore) Head(ctx context.Context, key string) (objstore.Info, error) {
	info, _, err := request(ctx, d, objstore.OpHead, key, "", func(ctx context.Context, _ fate) (objstore.Info, error) {
		return d.Driver.Head(ctx, key)
	})
	return info, err
}

// List implements objstore.Driver.
func (d *stepStore) List(ctx context.Context, prefix, startAfter, token string, limit int) (objstore.Page, error) {
	page, f, err := request(ctx, d, objstore.OpList, prefix, " after "+startAfter+token, func(ctx context.Context, _ fate) (objstore.Page, error) {
		return d.Driver.List(ctx, prefix, startAfter, token, limit)
	})
	if err == nil && f.kind == FaultTruncated {
		page.Objects, page.Next = page.Objects[:f.arg%uint64(len(page.Objects)+1)], ""
		err = &objstore.Error{Op: string(objstore.OpList), Key: prefix, Kind: objstore.ErrUnavailable, Err: errInjected}
	}
	return page, err
}

// Delete implements objstore.Driver.
func (d *stepStore) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	keys = append([]string(nil), keys...)
	first := ""
	if len(keys) > 0 {
		first = keys[0]
	}
	out, _, err := request(ctx, d, objstore.OpDelete, first, fmt.Sprintf(" and %d more", len(keys)-1), func(ctx context.Context, f fate) ([]objstore.DeleteResult, error) {
		d.p.sim.asked(d.p, keys)
		d.p.sim.check.deleting(d, f, keys)
		defer d.p.sim.check.deleted(d.bucket, keys)
		if f.kind == FaultSome {
			return d.deleteSome(ctx, keys, f.arg)
		}
		return d.Driver.Delete(ctx, keys)
	})
	return out, err
}

// deleteSome lets a third of the keys fail, and a third go without an answer.
func (d *stepStore) deleteSome(ctx context.Context, keys []string, arg uint64) ([]objstore.DeleteResult, error) {
	out := make([]objstore.DeleteResult, 0, len(keys))
	for _, key := range keys {
		h := fnv.New64a()
		_, _ = h.Write([]byte(key))
		r := objstore.DeleteResult{Key: key}
		fail := func(kind error) error {
			return &objstore.Error{Op: string(objstore.OpDelete), Key: key, Kind: kind, Err: errInjected}
		}
		n := (h.Sum64() ^ arg) % 3
		if n == 0 {
			r.Err = fail(objstore.ErrUnavailable)
			out = append(out, r)
			continue
		}
		done, err := d.Driver.Delete(ctx, []string{key})
		if err != nil {
			return nil, err
		}
		r = done[0]
		if n == 1 {
			r.Err = fail(objstore.ErrAmbiguous)
		}
		out = append(out, r)
	}
	return out, nil
}

// CreateUpload implements objstore.Driver.
func (d *stepStore) CreateUpload(ctx context.Context, key string, meta map[string]string) (string, error) {
	id, _, err := request(ctx, d, objstore.OpCreateUpload, key, "", func(ctx context.Context, _ fate) (string, error) {
		return d.Driver.CreateUpload(ctx, key, meta)
	})
	return id, err
}

// UploadPart implements objstore.Driver.
func (d *stepStore) UploadPart(ctx context.Context, key, id string, number int, body io.ReadSeeker, size int64) (objstore.Part, error) {
	b, err := io.ReadAll(body)
	if err != nil {
		return objstore.Part{}, &objstore.Error{Op: string(objstore.OpUploadPart), Key: key, Kind: objstore.ErrInvalid, Err: err}
	}
	part, _, err := request(ctx, d, objstore.OpUploadPart, key, fmt.Sprintf(" part %d", number), func(ctx context.Context, _ fate) (objstore.Part, error) {
		return d.Driver.UploadPart(ctx, key, id, number, bytes.NewReader(b), size)
	})
	return part, err
}

// CopyPart implements objstore.Driver.
func (d *stepStore) CopyPart(ctx context.Context, key, id string, number int, src objstore.CopySource) (objstore.Part, error) {
	part, _, err := request(ctx, d, objstore.OpCopyPart, key, fmt.Sprintf(" part %d", number), func(ctx context.Context, _ fate) (objstore.Part, error) {
		return d.Driver.CopyPart(ctx, key, id, number, src)
	})
	return part, err
}

// Complete implements objstore.Driver.
func (d *stepStore) Complete(ctx context.Context, key, id string, parts []objstore.Part, opts objstore.PutOptions) (objstore.Info, error) {
	parts = append([]objstore.Part(nil), parts...)
	info, _, err := request(ctx, d, objstore.OpComplete, key, "", func(ctx context.Context, _ fate) (objstore.Info, error) {
		return d.Driver.Complete(ctx, key, id, parts, opts)
	})
	return info, err
}

// Abort implements objstore.Driver.
func (d *stepStore) Abort(ctx context.Context, key, id string) error {
	_, _, err := request(ctx, d, objstore.OpAbort, key, "", func(ctx context.Context, _ fate) (struct{}, error) {
		return struct{}{}, d.Driver.Abort(ctx, key, id)
	})
	return err
}

// ListUploads implements objstore.Driver.
func (d *stepStore) ListUploads(ctx context.Context, prefix string) ([]objstore.Upload, error) {
	ups, _, err := request(ctx, d, objstore.OpListUploads, prefix, "", func(ctx context.Context, _ fate) ([]objstore.Upload, error) {
		return d.Driver.ListUploads(ctx, prefix)
	})
	return ups, err
}

// newStore is the real Store of a process over its steps at a bucket.
func newStore(p *process, b *bucket) (*objstore.Store, error) {
	h := &p.sim.cfg.Hooks
	return objstore.New(h.requests(p.name, &stepStore{Driver: h.store(p.name, b), p: p, bucket: b}), objstore.Config{
		Attempts: 3, PartSize: p.sim.cfg.PartSize, Concurrency: 1, CallTimeout: 10 * time.Second, TotalTimeout: time.Minute,
		Jitter: p.jitter,
	})
}
