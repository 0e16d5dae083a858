package doctor

import (
	"context"
	"errors"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/strandline/strandline/objstore"
)

// ledger is the driver as the checks see it. It counts the requests, remembers what was
// made before it is made, and which actions were denied.
type ledger struct {
	objstore.Driver
	grace time.Duration // for a mutation under way when its ctx ends

	mu       sync.Mutex // all below
	requests map[objstore.Op]int64
	keys     map[string]bool          // objects that may stand
	wrote    bool                     // anything at all
	uploads  map[objstore.Upload]bool // uploads that may stand: Key and ID
	began    map[string]int           // by key: uploads whose id is unknown
	actions  map[string]error         // nil: allowed; an error: denied
}

func newLedger(d objstore.Driver, grace time.Duration) *ledger {
	return &ledger{
		Driver: d, grace: grace, requests: map[objstore.Op]int64{}, keys: map[string]bool{},
		uploads: map[objstore.Upload]bool{}, began: map[string]int{}, actions: map[string]error{},
	}
}

// begin is the context of a mutation. An ended ctx starts none; one that is under way when
// ctx ends still gets its answer, within the grace: a request that is cut off may land after
// the cleanup has looked.
func (l *ledger) begin(ctx context.Context, op objstore.Op, key string) (context.Context, func(), error) {
	if ctx.Err() != nil {
		return nil, nil, &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrUnavailable, Err: context.Cause(ctx)}
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(l.grace):
			cancel()
		case <-own.Done():
		}
	})
	return own, func() { stop(); cancel() }, nil
}

// note counts an answer and what it says of a permission.
func (l *ledger) note(op objstore.Op, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests[op]++
	l.allow(actionOf(op), err)
}

// allow records what an answer says of an action. One denial counts, whatever else went
// well: a policy may name prefixes. l.mu is held.
func (l *ledger) allow(action string, err error) {
	switch {
	case action == "":
	case errors.Is(err, objstore.ErrDenied):
		l.actions[action] = err
	case errors.Is(err, objstore.ErrUnavailable), errors.Is(err, objstore.ErrAmbiguous):
		// It says nothing: the store may not have looked at the credentials at all.
	default:
		if _, known := l.actions[action]; !known {
			l.actions[action] = nil
		}
	}
}

func (l *ledger) remember(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

func (l *ledger) total() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int64
	for _, v := range l.requests {
		n += v
	}
	return n
}

func (l *ledger) spent() map[objstore.Op]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.requests)
}

// Put implements objstore.Driver.
func (l *ledger) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	ctx, end, err := l.begin(ctx, objstore.OpPut, key)
	if err != nil {
		return objstore.Info{}, err
	}
	defer end()
	l.remember(func() { l.keys[key], l.wrote = true, true }) // before: the answer may be lost
	info, err := l.Driver.Put(ctx, key, body, size, opts)
	l.note(objstore.OpPut, err)
	return info, err
}

// Get implements objstore.Driver.
func (l *ledger) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	body, info, err := l.Driver.Get(ctx, key, r, ifMatch)
	l.note(objstore.OpGet, err)
	return body, info, err
}

// Head implements objstore.Driver.
func (l *ledger) Head(ctx context.Context, key string) (objstore.Info, error) {
	info, err := l.Driver.Head(ctx, key)
	l.note(objstore.OpHead, err)
	return info, err
}

// List implements objstore.Driver.
func (l *ledger) List(ctx context.Context, prefix, startAfter, token string, limit int) (objstore.Page, error) {
	page, err := l.Driver.List(ctx, prefix, startAfter, token, limit)
	l.note(objstore.OpList, err)
	return page, err
}

// Delete implements objstore.Driver. What is reported gone leaves the books; the cleanup
// lists what stands all the same.
func (l *ledger) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	results, err := l.Driver.Delete(ctx, keys)
	l.note(objstore.OpDelete, err)
	l.remember(func() {
		for _, r := range results {
			l.allow(actionOf(objstore.OpDelete), r.Err)
			if r.Err == nil {
				delete(l.keys, r.Key)
			}
		}
	})
	return results, err
}

// CreateUpload implements objstore.Driver.
func (l *ledger) CreateUpload(ctx context.Context, key string, meta map[string]string) (string, error) {
	ctx, end, err := l.begin(ctx, objstore.OpCreateUpload, key)
	if err != nil {
		return "", err
	}
	defer end()
	l.remember(func() { l.began[key]++ })
	id, err := l.Driver.CreateUpload(ctx, key, meta)
	l.note(objstore.OpCreateUpload, err)
	if err == nil {
		l.remember(func() {
			l.uploads[objstore.Upload{Key: key, ID: id}] = true
			if l.began[key]--; l.began[key] == 0 {
				delete(l.began, key)
			}
		})
	}
	return id, err
}

// UploadPart implements objstore.Driver.
func (l *ledger) UploadPart(ctx context.Context, key, id string, number int, body io.ReadSeeker, size int64) (objstore.Part, error) {
	ctx, end, err := l.begin(ctx, objstore.OpUploadPart, key)
	if err != nil {
		return objstore.Part{}, err
	}
	defer end()
	part, err := l.Driver.UploadPart(ctx, key, id, number, body, size)
	l.note(objstore.OpUploadPart, err)
	return part, err
}

// CopyPart implements objstore.Driver.
func (l *ledger) CopyPart(ctx context.Context, key, id string, number int, src objstore.CopySource) (objstore.Part, error) {
	ctx, end, err := l.begin(ctx, objstore.OpCopyPart, key)
	if err != nil {
		return objstore.Part{}, err
	}
	defer end()
	part, err := l.Driver.CopyPart(ctx, key, id, number, src)
	l.note(objstore.OpCopyPart, err)
	return part, err
}

// Complete implements objstore.Driver.
func (l *ledger) Complete(ctx context.Context, key, id string, parts []objstore.Part, opts objstore.PutOptions) (objstore.Info, error) {
	ctx, end, err := l.begin(ctx, objstore.OpComplete, key)
	if err != nil {
		return objstore.Info{}, err
	}
	defer end()
	l.remember(func() { l.keys[key], l.wrote = true, true })
	info, err := l.Driver.Complete(ctx, key, id, parts, opts)
	l.note(objstore.OpComplete, err)
	if err == nil {
		l.remember(func() { delete(l.uploads, objstore.Upload{Key: key, ID: id}) })
	}
	return info, err
}

// Abort implements objstore.Driver.
func (l *ledger) Abort(ctx context.Context, key, id string) error {
	err := l.Driver.Abort(ctx, key, id)
	l.note(objstore.OpAbort, err)
	if err == nil {
		l.remember(func() { delete(l.uploads, objstore.Upload{Key: key, ID: id}) })
	}
	return err
}

// ListUploads implements objstore.Driver.
func (l *ledger) ListUploads(ctx context.Context, prefix string) ([]objstore.Upload, error) {
	ups, err := l.Driver.ListUploads(ctx, prefix)
	l.note(objstore.OpListUploads, err)
	return ups, err
}
