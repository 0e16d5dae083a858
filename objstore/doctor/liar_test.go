package doctor_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/strandline/strandline/objstore"
)

// call is what a lie is told about.
type call struct {
	key, id string
	opts    *objstore.PutOptions
	src     *objstore.CopySource
	answer  *said
}

// said is what a call is answered with, after it was made.
type said struct{ err error }

// liar is a driver that lies in the way of real stores. A hook sees each call before it is
// made, may change it, or end it with an error.
type liar struct {
	objstore.Driver
	settings *objstore.Settings // nil: it is no Inspector that knows anything
	asked    error

	onPut      func(context.Context, call) error
	onComplete func(context.Context, call) error
	onCopy     func(call)
	onDelete   func(keys []string) []string // the keys that are really deleted
	results    func([]objstore.DeleteResult) []objstore.DeleteResult
	onList     func(p *string, after *string, limit int)
	page       func(prefix string, p objstore.Page) objstore.Page
	onInfo     func(objstore.Info) objstore.Info
	onGet      func(key string, r *objstore.Range, ifMatch *string)
	uploads    func([]objstore.Upload) []objstore.Upload
	onAbort    func() bool // false: not done, and answered with success
	denied     func(op objstore.Op) bool
}

func (l *liar) deny(op objstore.Op, key string) error {
	if l.denied != nil && l.denied(op) {
		return &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrDenied, Err: errors.New("403 AccessDenied")}
	}
	return nil
}

func (l *liar) Settings(context.Context) (objstore.Settings, error) {
	if l.settings == nil {
		return objstore.Settings{Date: time.Now()}, l.asked
	}
	s := *l.settings
	if s.Date.IsZero() {
		s.Date = time.Now()
	}
	return s, l.asked
}

func (l *liar) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	if err := l.deny(objstore.OpPut, key); err != nil {
		return objstore.Info{}, err
	}
	var answer said
	if l.onPut != nil {
		if err := l.onPut(ctx, call{key: key, opts: &opts, answer: &answer}); err != nil {
			return objstore.Info{}, err
		}
	}
	info, err := l.Driver.Put(ctx, key, body, size, opts)
	return info, cmp.Or(answer.err, err)
}

func (l *liar) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	if err := l.deny(objstore.OpGet, key); err != nil {
		return nil, objstore.Info{}, err
	}
	if l.onGet != nil {
		l.onGet(key, &r, &ifMatch)
	}
	body, info, err := l.Driver.Get(ctx, key, r, ifMatch)
	if err == nil && l.onInfo != nil {
		info = l.onInfo(info)
	}
	return body, info, err
}

func (l *liar) Head(ctx context.Context, key string) (objstore.Info, error) {
	if err := l.deny(objstore.OpHead, key); err != nil {
		return objstore.Info{}, err
	}
	info, err := l.Driver.Head(ctx, key)
	if err == nil && l.onInfo != nil {
		info = l.onInfo(info)
	}
	return info, err
}

func (l *liar) List(ctx context.Context, prefix, after, token string, limit int) (objstore.Page, error) {
	if err := l.deny(objstore.OpList, prefix); err != nil {
		return objstore.Page{}, err
	}
	asked := prefix
	if l.onList != nil {
		l.onList(&prefix, &after, limit)
	}
	page, err := l.Driver.List(ctx, prefix, after, token, limit)
	if err == nil && l.page != nil {
		page = l.page(asked, page)
	}
	return page, err
}

func (l *liar) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	if l.denied != nil && l.denied(objstore.OpDelete) { // as AWS does it: inside a 200
		var out []objstore.DeleteResult
		for _, k := range keys {
			out = append(out, objstore.DeleteResult{Key: k, Err: l.deny(objstore.OpDelete, k)})
		}
		return out, nil
	}
	really := keys
	if l.onDelete != nil {
		really = l.onDelete(slices.Clone(keys))
	}
	if _, err := l.Driver.Delete(ctx, really); err != nil {
		return nil, err
	}
	out := make([]objstore.DeleteResult, len(keys))
	for i, k := range keys {
		out[i].Key = k
	}
	if l.results != nil {
		out = l.results(out)
	}
	return out, nil
}

func (l *liar) CreateUpload(ctx context.Context, key string, meta map[string]string) (string, error) {
	if err := l.deny(objstore.OpCreateUpload, key); err != nil {
		return "", err
	}
	return l.Driver.CreateUpload(ctx, key, meta)
}

func (l *liar) CopyPart(ctx context.Context, key, id string, number int, src objstore.CopySource) (objstore.Part, error) {
	if l.onCopy != nil {
		l.onCopy(call{key: key, id: id, src: &src})
	}
	return l.Driver.CopyPart(ctx, key, id, number, src)
}

func (l *liar) Complete(ctx context.Context, key, id string, parts []objstore.Part, opts objstore.PutOptions) (objstore.Info, error) {
	var answer said
	if l.onComplete != nil {
		if err := l.onComplete(ctx, call{key: key, id: id, opts: &opts, answer: &answer}); err != nil {
			return objstore.Info{}, err
		}
	}
	info, err := l.Driver.Complete(ctx, key, id, parts, opts)
	return info, cmp.Or(answer.err, err)
}

func (l *liar) Abort(ctx context.Context, key, id string) error {
	if err := l.deny(objstore.OpAbort, key); err != nil {
		return err
	}
	if l.onAbort != nil && !l.onAbort() {
		return nil
	}
	return l.Driver.Abort(ctx, key, id)
}

func (l *liar) ListUploads(ctx context.Context, prefix string) ([]objstore.Upload, error) {
	if err := l.deny(objstore.OpListUploads, prefix); err != nil {
		return nil, err
	}
	ups, err := l.Driver.ListUploads(ctx, prefix)
	if err == nil && l.uploads != nil {
		ups = l.uploads(ups)
	}
	return ups, err
}
