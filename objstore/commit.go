package objstore

import (
	"context"
	"errors"
	"fmt"
)

// Commit publishes the object create-once: one plain PUT if all bytes fit a part
// and nothing was copied, else the conditional complete of the upload. Errors are
// as of PutOnce, and two more, after which the caller begins a new Writer:
// ErrConflict (409 on a complete) and ErrNotFound (the upload is gone, and no
// object stands there).
//
// After every error but ErrAmbiguous the upload is aborted. After ErrAmbiguous it
// is left alone: the complete may yet land, and the recorded id is judged later.
func (w *Writer) Commit() (Info, error) {
	if err := w.usable(); err != nil {
		return Info{}, w.giveUp(err)
	}
	if w.id == "" {
		return w.commitPlain()
	}
	if len(w.cur) > 0 {
		if err := w.flush(); err != nil {
			return Info{}, w.giveUp(err)
		}
	}
	if w.err = w.parts.Wait(); w.err != nil {
		return Info{}, w.giveUp(w.err)
	}
	if err := w.before(); err != nil {
		return Info{}, w.giveUp(err)
	}
	// A crash here leaves a full upload under its recorded id, and no object.
	info, err := w.complete()
	switch {
	case err == nil:
		// A crash here leaves the object, and the record of an upload that is gone.
		w.closed = true
		w.gone()
		return info, nil
	case errors.Is(err, ErrAmbiguous):
		w.closed = true
		return Info{}, err
	}
	return Info{}, w.giveUp(err)
}

func (w *Writer) commitPlain() (Info, error) {
	w.closed = true
	if err := w.before(); err != nil {
		return Info{}, err
	}
	return w.s.publish(w.ctx, publication{op: OpPut, key: w.key, nonce: w.nonce, before: w.before, call: func(ctx context.Context) (Info, error) {
		return w.s.put(ctx, w.key, w.cur, PutOptions{IfNoneMatch: true, Meta: withNonce(w.opts.Meta, w.nonce)})
	}})
}

func (w *Writer) complete() (Info, error) {
	info, err := w.s.publish(w.ctx, publication{op: OpComplete, key: w.key, nonce: w.nonce, before: w.before, call: func(ctx context.Context) (Info, error) {
		return w.s.driver.Complete(ctx, w.key, w.id, w.done, PutOptions{IfNoneMatch: true})
	}})
	if err == nil {
		info.Size = w.size
	}
	return info, err
}

func (w *Writer) before() error {
	if w.opts.BeforeComplete == nil {
		return nil
	}
	return w.opts.BeforeComplete(w.ctx)
}

func (w *Writer) gone() {
	if w.opts.OnDone != nil {
		w.opts.OnDone(w.id)
	}
}

// giveUp aborts after err. The abort's own error is told, not wrapped: it must not
// change what errors.Is finds about the object.
func (w *Writer) giveUp(err error) error {
	if aerr := w.Abort(); aerr != nil {
		return fmt.Errorf("%w (upload %s stands unfinished: %s)", err, w.id, aerr.Error())
	}
	return err
}

// Abort gives the object up. It waits for parts in flight, then aborts the upload
// twice: a part that raced the first abort is cleared by the second. It works
// under a deadline of its own, also after ctx has ended. After Commit, and the
// second time, it does nothing.
func (w *Writer) Abort() error {
	if w.closed {
		return nil
	}
	w.closed = true
	// The error of a part is w.err's business; here only its end matters.
	_ = w.parts.Wait()
	w.cur = nil
	if w.id == "" {
		return nil
	}
	ctx := context.WithoutCancel(w.ctx)
	for range 2 {
		if err := w.s.Abort(ctx, w.key, w.id); err != nil {
			return err // the id stays recorded: the sweep aborts it again
		}
	}
	w.gone()
	return nil
}
