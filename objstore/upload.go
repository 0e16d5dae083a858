package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
)

const (
	// maxPart and maxParts are S3's limits.
	maxPart  = 5 << 30
	maxParts = 10_000
)

// UploadOptions are the hooks of a Writer. All may be nil.
type UploadOptions struct {
	Meta map[string]string
	// OnCreate is called with the upload's id before the first part is sent, e.g.
	// to record it durably. Its error fails the Writer and aborts the upload.
	OnCreate func(uploadID string) error
	// OnDone is called when the upload no longer exists: completed or aborted.
	// After an outcome that stayed unknown, or a failed abort, it is not called.
	OnDone func(uploadID string)
	// BeforeComplete is asked right before each request that would publish the
	// object, repeats included; its error aborts.
	BeforeComplete func(ctx context.Context) error
}

// Writer creates one object of a length not known ahead: what is written and the
// ranges that are copied server-side follow each other in call order. The object
// is published by Commit, create-once, or not at all.
//
// On a store that does not honour a completing request's condition
// (Capabilities.ConditionalComplete) only what fits one part is written, by one
// conditional PUT; more is ErrUnsupported, and no upload is begun.
//
// Memory is bounded by (Concurrency+1) x PartSize. A Writer is used by one
// goroutine. Every Writer ends in Commit or Abort.
type Writer struct {
	s     *Store
	ctx   context.Context // of NewWriter: parts, create, complete
	key   string
	opts  UploadOptions
	nonce string

	// caps and part are fixed when the Writer begins: a plan that changes between two
	// parts fits neither rule.
	caps Capabilities
	part int64 // Config.PartSize, or the store's least part if that is larger

	cur  []byte // bytes not sent yet, at most part
	id   string // empty until the upload is created
	next int    // number of the next part

	parts   *errgroup.Group
	partCtx context.Context
	mu      sync.Mutex
	done    []Part // by number; mu

	size, through, serverSide int64

	err    error // the first failure; every later call returns it
	closed bool  // Commit or Abort was called
}

// NewWriter begins an object; nothing is sent before the first full part.
func (s *Store) NewWriter(ctx context.Context, key string, opts UploadOptions) *Writer {
	w := &Writer{s: s, ctx: ctx, key: key, opts: opts, nonce: s.cfg.Nonce(), next: 1, err: CheckKey(key), caps: s.Capabilities()}
	w.part = max(s.cfg.PartSize, w.caps.MinPart) // doctor may have found a larger minimum than the driver told
	w.parts, w.partCtx = errgroup.WithContext(ctx)
	w.parts.SetLimit(s.cfg.Concurrency)
	return w
}

// Size is the length of the object so far.
func (w *Writer) Size() int64 { return w.size }

// PartSize is the length of a written part.
func (w *Writer) PartSize() int64 { return w.part }

// Moved says how many bytes went through this process and how many were copied
// within the store.
func (w *Writer) Moved() (through, serverSide int64) { return w.through, w.serverSide }

// Write appends p. It blocks while all buffers are in flight.
func (w *Writer) Write(p []byte) (int, error) {
	if err := w.usable(); err != nil {
		return 0, err
	}
	var n int
	for n < len(p) {
		if err := w.room(); err != nil {
			return n, err
		}
		k := min(len(p)-n, int(w.part)-len(w.cur))
		w.grow(k)
		w.cur = append(w.cur, p[n:n+k]...)
		n += k
		w.size += int64(k)
		w.through += int64(k)
	}
	return n, nil
}

func (w *Writer) usable() error {
	if w.err == nil && w.closed {
		return &Error{Op: "upload", Key: w.key, Kind: ErrInvalid, Err: errors.New("the writer was committed or aborted: begin a new one")}
	}
	if w.err == nil && w.partCtx.Err() != nil {
		w.err = w.parts.Wait() // a part failed, or ctx ended
		if w.err == nil {
			w.err = notStarted(w.ctx, OpUploadPart, w.key)
		}
	}
	return w.err
}

// room makes sure that cur can take a byte, sending it if it is full.
func (w *Writer) room() error {
	if int64(len(w.cur)) < w.part {
		return nil
	}
	return w.flush()
}

// grow gives cur space for k more bytes, fourfold each time and never beyond a part.
func (w *Writer) grow(k int) {
	need := len(w.cur) + k
	if need <= cap(w.cur) {
		return
	}
	size := int(w.part)
	if w.id == "" { // small objects, most of all, never fill a part
		size = min(max(need, 4*cap(w.cur), 64<<10), size)
	}
	w.cur = append(w.s.buffer(size), w.cur...)
}

// flush sends cur as the next part, in the background.
func (w *Writer) flush() error {
	n, err := w.number()
	if err != nil {
		return err
	}
	buf := w.cur
	w.cur = nil
	w.parts.Go(func() error {
		part, tries, err := w.send(n, buf)
		if err != nil {
			return err
		}
		w.finished(part)
		// The connection of an attempt that broke may be reading the body still.
		if tries == 1 {
			w.s.spent(buf)
		}
		return nil
	})
	return nil
}

// number takes the next part number, creating the upload before the first.
func (w *Writer) number() (int, error) {
	if err := w.usable(); err != nil {
		return 0, err
	}
	if w.id == "" {
		if w.err = w.create(); w.err != nil {
			return 0, w.err
		}
	}
	if w.next > maxParts {
		w.err = &Error{Op: "upload", Key: w.key, Kind: ErrInvalid, Err: fmt.Errorf(
			"more than %d parts: raise Config.PartSize or write smaller objects", maxParts)}
		return 0, w.err
	}
	w.next++
	return w.next - 1, nil
}

func (w *Writer) create() error {
	if !w.caps.ConditionalComplete {
		return &Error{Op: "upload", Key: w.key, Kind: ErrUnsupported, Err: fmt.Errorf(
			"the store does not honour a condition on completing an upload, so that more than one part (%d bytes) could overwrite another's object: write smaller objects, raise Config.PartSize, or use a store that passes doctor", w.part)}
	}
	var id string
	// A lost answer leaves an upload that nobody recorded; it holds no parts, and
	// the sweep of unfinished uploads finds it where the store lists them.
	err := w.s.retry(w.ctx, OpCreateUpload, w.key, func(ctx context.Context) (err error) {
		id, err = w.s.driver.CreateUpload(ctx, w.key, withNonce(w.opts.Meta, w.nonce))
		return err
	})
	if err != nil {
		return err
	}
	w.id = id
	// A crash here leaves an empty upload that is not recorded: as above.
	if w.opts.OnCreate != nil {
		return w.opts.OnCreate(id)
	}
	return nil
}

// send also tells how many attempts it took.
func (w *Writer) send(n int, body []byte) (part Part, tries int, err error) {
	err = w.s.retry(w.partCtx, OpUploadPart, w.key, func(ctx context.Context) (err error) {
		tries++
		part, err = w.s.driver.UploadPart(ctx, w.key, w.id, n, bytes.NewReader(body), int64(len(body)))
		return err
	})
	if err != nil {
		return Part{}, tries, err
	}
	w.s.stats.bytesOut.Add(int64(len(body)))
	part, err = w.sane(part, n, int64(len(body)))
	return part, tries, err
}

// sane refuses a part without an ETag: SDKs decode some failed copies as success.
func (w *Writer) sane(part Part, n int, size int64) (Part, error) {
	if part.ETag == "" {
		return Part{}, &Error{Op: "upload-part", Key: w.key, Kind: ErrUnavailable, Err: fmt.Errorf("part %d came back without an ETag", n)}
	}
	return Part{Number: n, ETag: part.ETag, Size: size}, nil
}

func (w *Writer) finished(p Part) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.done) < p.Number {
		w.done = append(w.done, Part{})
	}
	w.done[p.Number-1] = p
}

// buffer is an empty one with room for size bytes. Whole parts' buffers go from Writer to
// Writer: a slot every few seconds would leave five of them to the collector each time.
func (s *Store) buffer(size int) []byte {
	if int64(size) >= s.cfg.PartSize {
		if b, ok := s.spare.Get().(*[]byte); ok && cap(*b) >= size {
			return (*b)[:0]
		}
	}
	return make([]byte, 0, size)
}

// spent takes a buffer back that no request reads any more.
func (s *Store) spent(buf []byte) {
	if int64(cap(buf)) >= s.cfg.PartSize {
		s.spare.Put(&buf)
	}
}
