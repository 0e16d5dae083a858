package faultstore

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/strandline/strandline/objstore"
)

// ErrInjected is the cause of every error made here.
var ErrInjected = errors.New("injected fault")

// Call is one driver call about to be made.
type Call struct {
	N   int // from 1, over all calls of this Driver
	Op  objstore.Op
	Key string // first key of a delete, prefix of a list
}

// Kind is what goes wrong.
type Kind int

const (
	None          Kind = iota
	NotApplied         // the call is not made and ends in Err (default ErrUnavailable)
	AnswerLost         // the call is made, and ends in Err (default ErrAmbiguous; ErrUnavailable for reads)
	ShortBody          // Get: the body ends after Keep bytes, as ErrShort
	WrongBytes         // Get: the first byte of the body is another
	DeleteFails        // Delete: keys that Keys selects are not deleted and answer Err (default ErrUnavailable)
	TruncatedList      // List: Keep objects come with Err (default ErrUnavailable)
	Crash              // not applied, and so is every later call until Revive
	CrashAfter         // applied, the answer lost, and every later call fails until Revive
)

// Fault is the fate of one call. Its zero value is none.
type Fault struct {
	Kind Kind
	Err  error                 // kind of the error; nil for the default
	Keep int64                 // ShortBody: bytes; TruncatedList: objects
	Keys func(key string) bool // DeleteFails; nil: all

	// Before runs before the call and After once it was made, answer not yet given:
	// to wait there, or to let another actor act between. Both also run with None.
	Before, After func()
}

// Driver is a driver with faults. It is safe for concurrent use.
type Driver struct {
	objstore.Driver

	mu      sync.Mutex // all below; also held while pick runs
	pick    func(Call) Fault
	calls   int
	hits    int
	crashed bool
}

var _ objstore.Driver = (*Driver)(nil)

// Wrap puts pick before every call of d. Calls of pick come one at a time; a pick
// that is nil injects nothing. A fault that does not fit its call (ShortBody on a
// Put) is none.
func Wrap(d objstore.Driver, pick func(Call) Fault) *Driver {
	if pick == nil {
		pick = func(Call) Fault { return Fault{} }
	}
	return &Driver{Driver: d, pick: pick}
}

// Hits counts the faults injected so far; a test whose fault was not hit proved
// nothing. Calls refused by a crash are not counted again.
func (d *Driver) Hits() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hits
}

// Revive ends a crash.
func (d *Driver) Revive() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.crashed = false
}

// fits says whether a fault of kind k can befall op.
func (k Kind) fits(op objstore.Op) bool {
	switch k {
	case None:
		return false
	case ShortBody, WrongBytes:
		return op == objstore.OpGet
	case DeleteFails:
		return op == objstore.OpDelete
	case TruncatedList:
		return op == objstore.OpList
	}
	return true
}

// next decides the fate of a call.
func (d *Driver) next(op objstore.Op, key string) Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crashed {
		return Fault{Kind: NotApplied}
	}
	d.calls++
	f := d.pick(Call{N: d.calls, Op: op, Key: key})
	if !f.Kind.fits(op) {
		f.Kind = None
		return f
	}
	d.hits++
	d.crashed = f.Kind == Crash || f.Kind == CrashAfter
	return f
}

// fail is the error of a fault: kind, unless the test chose another.
func (f Fault) fail(op objstore.Op, key string, kind error) error {
	if f.Err != nil {
		kind = f.Err
	}
	return &objstore.Error{Op: string(op), Key: key, Kind: kind, Err: ErrInjected}
}

// through asks for the fate of a call and lets it have it.
func through[T any](d *Driver, op objstore.Op, key string, call func() (T, error)) (T, Fault, error) {
	return apply(d.next(op, key), op, key, call)
}

// apply makes a call, or not, as f says.
func apply[T any](f Fault, op objstore.Op, key string, call func() (T, error)) (T, Fault, error) {
	if f.Before != nil {
		f.Before()
	}
	var none T
	if f.Kind == NotApplied || f.Kind == Crash {
		return none, f, f.fail(op, key, objstore.ErrUnavailable)
	}
	out, err := call()
	if f.After != nil {
		f.After()
	}
	if f.Kind == AnswerLost || f.Kind == CrashAfter {
		kind := objstore.ErrUnavailable
		if op.Mutation() {
			kind = objstore.ErrAmbiguous
		}
		return out, f, f.fail(op, key, kind)
	}
	return out, f, err
}

// Put implements objstore.Driver.
func (d *Driver) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	info, _, err := through(d, objstore.OpPut, key, func() (objstore.Info, error) {
		return d.Driver.Put(ctx, key, body, size, opts)
	})
	return onError(info, err)
}

// onError drops a result that the caller must not see beside an error.
func onError[T any](v T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return v, nil
}

type opened struct {
	body io.ReadCloser
	info objstore.Info
}

// Get implements objstore.Driver.
func (d *Driver) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	o, f, err := through(d, objstore.OpGet, key, func() (opened, error) {
		body, info, err := d.Driver.Get(ctx, key, r, ifMatch)
		return opened{body, info}, err
	})
	if err != nil {
		if o.body != nil {
			err = errors.Join(err, o.body.Close())
		}
		return nil, objstore.Info{}, err
	}
	switch f.Kind {
	case ShortBody:
		return &shortBody{ReadCloser: o.body, left: f.Keep, err: f.fail(objstore.OpGet, key, objstore.ErrShort)}, o.info, nil
	case WrongBytes:
		return &wrongBody{ReadCloser: o.body}, o.info, nil
	}
	return o.body, o.info, nil
}

type shortBody struct {
	io.ReadCloser
	left int64
	err  error
}

func (b *shortBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

type wrongBody struct {
	io.ReadCloser
	done bool
}

func (b *wrongBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && !b.done {
		p[0] ^= 0x80
		b.done = true
	}
	return n, err
}

// Head implements objstore.Driver.
func (d *Driver) Head(ctx context.Context, key string) (objstore.Info, error) {
	info, _, err := through(d, objstore.OpHead, key, func() (objstore.Info, error) { return d.Driver.Head(ctx, key) })
	return onError(info, err)
}

// List implements objstore.Driver. A truncated page comes with its error, to catch
// callers that look at the page first.
func (d *Driver) List(ctx context.Context, prefix, startAfter, token string, limit int) (objstore.Page, error) {
	page, f, err := through(d, objstore.OpList, prefix, func() (objstore.Page, error) {
		return d.Driver.List(ctx, prefix, startAfter, token, limit)
	})
	if err == nil && f.Kind == TruncatedList {
		page.Objects = page.Objects[:min(int64(len(page.Objects)), f.Keep)]
		page.Next = ""
		return page, f.fail(objstore.OpList, prefix, objstore.ErrUnavailable)
	}
	return onError(page, err)
}

// Delete implements objstore.Driver.
func (d *Driver) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	first := ""
	if len(keys) > 0 {
		first = keys[0]
	}
	f := d.next(objstore.OpDelete, first)
	if f.Kind == DeleteFails {
		return d.deleteSome(ctx, keys, f)
	}
	out, _, err := apply(f, objstore.OpDelete, first, func() ([]objstore.DeleteResult, error) { return d.Driver.Delete(ctx, keys) })
	return onError(out, err)
}

func (d *Driver) deleteSome(ctx context.Context, keys []string, f Fault) ([]objstore.DeleteResult, error) {
	var pass []string
	fails := func(key string) bool { return f.Keys == nil || f.Keys(key) }
	for _, key := range keys {
		if !fails(key) {
			pass = append(pass, key)
		}
	}
	done, _, err := apply(f, objstore.OpDelete, keys[0], func() ([]objstore.DeleteResult, error) { return d.Driver.Delete(ctx, pass) })
	if err != nil {
		return nil, err
	}
	out := make([]objstore.DeleteResult, 0, len(keys))
	for _, key := range keys {
		if fails(key) {
			out = append(out, objstore.DeleteResult{Key: key, Err: f.fail(objstore.OpDelete, key, objstore.ErrUnavailable)})
			continue
		}
		out, done = append(out, done[0]), done[1:]
	}
	return out, nil
}

// CreateUpload implements objstore.Driver.
func (d *Driver) CreateUpload(ctx context.Context, key string, meta map[string]string) (string, error) {
	id, _, err := through(d, objstore.OpCreateUpload, key, func() (string, error) { return d.Driver.CreateUpload(ctx, key, meta) })
	return onError(id, err)
}

// UploadPart implements objstore.Driver.
func (d *Driver) UploadPart(ctx context.Context, key, id string, number int, body io.ReadSeeker, size int64) (objstore.Part, error) {
	part, _, err := through(d, objstore.OpUploadPart, key, func() (objstore.Part, error) {
		return d.Driver.UploadPart(ctx, key, id, number, body, size)
	})
	return onError(part, err)
}

// CopyPart implements objstore.Driver.
func (d *Driver) CopyPart(ctx context.Context, key, id string, number int, src objstore.CopySource) (objstore.Part, error) {
	part, _, err := through(d, objstore.OpCopyPart, key, func() (objstore.Part, error) {
		return d.Driver.CopyPart(ctx, key, id, number, src)
	})
	return onError(part, err)
}

// Complete implements objstore.Driver.
func (d *Driver) Complete(ctx context.Context, key, id string, parts []objstore.Part, opts objstore.PutOptions) (objstore.Info, error) {
	info, _, err := through(d, objstore.OpComplete, key, func() (objstore.Info, error) {
		return d.Driver.Complete(ctx, key, id, parts, opts)
	})
	return onError(info, err)
}

// Abort implements objstore.Driver.
func (d *Driver) Abort(ctx context.Context, key, id string) error {
	_, _, err := through(d, objstore.OpAbort, key, func() (struct{}, error) { return struct{}{}, d.Driver.Abort(ctx, key, id) })
	return err
}

// ListUploads implements objstore.Driver.
func (d *Driver) ListUploads(ctx context.Context, prefix string) ([]objstore.Upload, error) {
	ups, _, err := through(d, objstore.OpListUploads, prefix, func() ([]objstore.Upload, error) { return d.Driver.ListUploads(ctx, prefix) })
	return onError(ups, err)
}
