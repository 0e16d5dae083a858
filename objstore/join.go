package objstore

import (
	"context"
	"errors"
	"fmt"
)

// leastCopy is the shortest range copied as a part of its own where the store
// names no minimum: below it a request costs more than its bytes.
const leastCopy = 64 << 10

// CopyRange appends a range of another object of the same store, copied by the
// store itself as far as its rules allow. What may not be a part of its own
// passes through this process: all of it, where the store copies no ranges, cannot
// complete an upload of ours, or the source is small (Capabilities.MinCopy); else the
// head that fills up a short part before it, and a remainder below the minimum.
//
//	written 2 MiB | range of 20 MiB          MinPart 5 MiB
//	[ 2 + head 3 ][ copied 17             ]
//
// Where all parts but the last must have one length (Capabilities.EqualParts), it is
// PartSize: the head fills up the part before, whole parts are copied one by one, and
// what is left of the range begins the next part.
//
//	written 2 MiB | range of 48 MiB          PartSize 16 MiB, EqualParts
//	[ 2 + head 14 ][ copied 16 ][ copied 16 ][ 2 ...
func (w *Writer) CopyRange(src CopySource) error {
	if err := w.usable(); err != nil {
		return err
	}
	if err := src.check(); err != nil {
		w.err = err
		return err
	}
	ok, err := w.copyable(src)
	if err != nil {
		w.err = err
		return err
	}
	head, copied := src.Length, int64(0)
	if ok {
		head, copied = w.plan(src.Length)
	}
	if err := w.pull(src, head); err != nil {
		return err
	}
	src.Offset, src.Length = src.Offset+head, src.Length-head
	if copied > 0 {
		if err := w.copyAll(src, copied); err != nil {
			return err
		}
		src.Offset, src.Length = src.Offset+copied, src.Length-copied
	}
	return w.pull(src, src.Length)
}

func (c CopySource) check() error {
	if err := CheckKey(c.Key); err != nil {
		return err
	}
	if c.ETag == "" || c.Offset < 0 || c.Length < 0 {
		return &Error{Op: string(OpCopyPart), Key: c.Key, Kind: ErrInvalid, Err: fmt.Errorf(
			"%d bytes at %d under ETag %q: name a range and the source's ETag", c.Length, c.Offset, c.ETag)}
	}
	return nil
}

// copyable asks whether the store would copy a range of this source at all.
func (w *Writer) copyable(src CopySource) (bool, error) {
	if !w.caps.RangeCopy || !w.caps.ConditionalComplete || src.Length < w.least() {
		return false, nil
	}
	if w.next > maxParts/2 && src.Length < w.part {
		return false, nil // part numbers run short: only whole part sizes are worth one
	}
	if w.caps.MinCopy == 0 || src.Offset+src.Length > w.caps.MinCopy {
		return true, nil
	}
	info, err := w.s.Head(w.ctx, src.Key)
	return info.Size > w.caps.MinCopy, err
}

// least is the size of the smallest part that is not the last.
func (w *Writer) least() int64 {
	switch {
	case w.caps.EqualParts:
		return w.part
	case w.caps.MinPart > 0:
		return w.caps.MinPart
	}
	return min(leastCopy, w.part)
}

// plan splits a range of length bytes: head is pulled through first, to fill up the
// pending part; then copied bytes are copied; what is left is pulled through, too.
func (w *Writer) plan(length int64) (head, copied int64) {
	if n := int64(len(w.cur)); n > 0 {
		head = max(0, w.least()-n)
	}
	copied = length - head
	if copied < w.least() {
		return length, 0
	}
	if w.caps.EqualParts {
		copied -= copied % w.part
	}
	return head, copied
}

// pull reads n bytes of src through this process, straight into part buffers.
func (w *Writer) pull(src CopySource, n int64) error {
	for n > 0 {
		if err := w.room(); err != nil {
			return err
		}
		at := len(w.cur)
		k := min(n, w.part-int64(at))
		w.grow(int(k))
		if _, w.err = w.s.readInto(w.ctx, src.Key, src.Offset, w.cur[at:at+int(k)], src.ETag); w.err != nil {
			return w.err
		}
		w.cur = w.cur[:at+int(k)]
		src.Offset, n = src.Offset+k, n-k
		w.size += k
		w.through += k
	}
	return nil
}

// copyAll sends what is pending and copies the first n bytes of src behind it: in as
// few parts as the size limit allows, of about equal size, so that none of them is a
// short one; or in parts of the one size that the store wants.
func (w *Writer) copyAll(src CopySource, n int64) error {
	if len(w.cur) > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	pieces := (n + maxPart - 1) / maxPart
	if w.caps.EqualParts {
		pieces = n / w.part
	}
	for ; pieces > 0; pieces-- {
		piece := src
		piece.Length = n / pieces
		number, err := w.number()
		if err != nil {
			return err
		}
		w.parts.Go(func() error {
			part, err := w.copyPart(number, piece)
			if err == nil {
				w.finished(part)
			}
			return err
		})
		src.Offset, n = src.Offset+piece.Length, n-piece.Length
		w.size += piece.Length
		w.serverSide += piece.Length
	}
	return nil
}

func (w *Writer) copyPart(number int, src CopySource) (Part, error) {
	var part Part
	err := w.s.retry(w.partCtx, OpCopyPart, w.key, func(ctx context.Context) (err error) {
		part, err = w.s.driver.CopyPart(ctx, w.key, w.id, number, src)
		return err
	})
	if err != nil {
		return Part{}, err
	}
	if part.Size != 0 && part.Size != src.Length {
		return Part{}, &Error{Op: string(OpCopyPart), Key: w.key, Kind: ErrShort, Err: errors.New("the store copied another length than asked")}
	}
	w.s.stats.bytesCopied.Add(src.Length)
	return w.sane(part, number, src.Length)
}
