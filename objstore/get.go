package objstore

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Head describes an object. Its ErrNotFound is what the store says; see standing
// for where a decision hangs on absence.
func (s *Store) Head(ctx context.Context, key string) (Info, error) {
	if err := CheckKey(key); err != nil {
		return Info{}, err
	}
	var info Info
	err := s.retry(ctx, OpHead, key, func(ctx context.Context) (err error) {
		info, err = s.driver.Head(ctx, key)
		return err
	})
	info.Key = key
	return info, err
}

// ReadRange returns exactly the n bytes at off, or an error: ErrRange if the
// object ends before. A body cut short is resumed under the first answer's ETag.
func (s *Store) ReadRange(ctx context.Context, key string, off, n int64) ([]byte, Info, error) {
	if off < 0 || n < 0 {
		return nil, Info{}, &Error{Op: "get", Key: key, Kind: ErrInvalid, Err: fmt.Errorf("range of %d bytes at %d", n, off)}
	}
	if n == 0 {
		info, err := s.Head(ctx, key)
		return nil, info, err
	}
	var buf []byte
	f := fill{s: s, key: key, size: -1, plan: func(int64) (int64, []byte, error) {
		// Only now: clearing megabytes takes as long as the store needs to send them, and
		// before the request it would be waited for.
		buf = make([]byte, n)
		return off, buf, nil
	}}
	if err := f.run(ctx, Range{Offset: off, Length: n}); err != nil {
		return nil, Info{}, err
	}
	return buf, f.info, nil
}

// ReadInto is ReadRange into the caller's buffer, all of which is filled. After an error
// its content is unknown. buf must not be empty.
func (s *Store) ReadInto(ctx context.Context, key string, off int64, buf []byte) (Info, error) {
	if off < 0 || len(buf) == 0 {
		return Info{}, &Error{Op: "get", Key: key, Kind: ErrInvalid, Err: fmt.Errorf("range of %d bytes at %d", len(buf), off)}
	}
	return s.readInto(ctx, key, off, buf, "")
}

// readInto fills buf from off, under ifMatch if that is given.
func (s *Store) readInto(ctx context.Context, key string, off int64, buf []byte, ifMatch string) (Info, error) {
	f := fill{s: s, key: key, size: -1, etag: ifMatch, pinned: ifMatch != "", plan: func(int64) (int64, []byte, error) {
		return off, buf, nil
	}}
	err := f.run(ctx, Range{Offset: off, Length: int64(len(buf))})
	return f.info, err
}

// ReadSuffix returns the last n bytes, or all of a shorter object. Info.Size is
// the size of the whole object.
func (s *Store) ReadSuffix(ctx context.Context, key string, n int64) ([]byte, Info, error) {
	if n < 0 {
		return nil, Info{}, &Error{Op: "get", Key: key, Kind: ErrInvalid, Err: fmt.Errorf("suffix of %d bytes", n)}
	}
	if n == 0 {
		info, err := s.Head(ctx, key)
		return nil, info, err
	}
	var out []byte
	f := fill{s: s, key: key, size: -1, plan: func(size int64) (int64, []byte, error) {
		out = make([]byte, min(n, size))
		return size - int64(len(out)), out, nil
	}}
	err := f.run(ctx, Suffix(n))
	if errors.Is(err, ErrRange) {
		// AWS answers 416 to a suffix of an empty object.
		info, herr := s.Head(ctx, key)
		if herr == nil && info.Size == 0 {
			return nil, info, nil
		}
		return nil, Info{}, errors.Join(err, herr)
	}
	if err != nil {
		return nil, Info{}, err
	}
	return out, f.info, nil
}

// ReadAll returns a whole object of at most limit bytes; a larger one is
// ErrInvalid and is not read.
func (s *Store) ReadAll(ctx context.Context, key string, limit int64) ([]byte, Info, error) {
	var out []byte
	f := fill{s: s, key: key, size: -1, plan: func(size int64) (int64, []byte, error) {
		if size > limit {
			return 0, nil, &Error{Op: "get", Key: key, Kind: ErrInvalid, Err: fmt.Errorf("%d bytes, the caller takes %d: read it by ranges", size, limit)}
		}
		out = make([]byte, size)
		return 0, out, nil
	}}
	if err := f.run(ctx, Whole); err != nil {
		return nil, Info{}, err
	}
	return out, f.info, nil
}

// progress is what an attempt must bring for the attempts to be counted anew, so
// that a long body over a bad line ends, and a trickle ends too.
const progress = 256 << 10

// fill reads a range across attempts. The first answer fixes the object's size
// and ETag and, through plan, where the bytes go; later attempts ask for the rest
// under that ETag.
type fill struct {
	s      *Store
	key    string
	pinned bool   // etag is the caller's condition
	etag   string // condition of the next attempt
	size   int64  // -1 until the first answer
	plan   func(size int64) (off int64, buf []byte, err error)

	info Info
	off  int64
	buf  []byte
	got  int
}

func (f *fill) run(ctx context.Context, first Range) error {
	if err := CheckKey(f.key); err != nil {
		return err
	}
	ctx, cancel := f.s.bounded(ctx)
	defer cancel()
	r, since := first, 0
	for n := 0; ; n++ {
		if f.size >= 0 {
			r = Range{Offset: f.off + int64(f.got), Length: int64(len(f.buf) - f.got)}
		}
		err := f.s.attempt(ctx, OpGet, f.key, func(ctx context.Context) error { return f.once(ctx, r) })
		if err == nil {
			return nil
		}
		if errors.Is(err, ErrPrecondition) && !f.pinned && f.size >= 0 {
			// The object (a mutable one) changed between attempts: start over.
			f.size, f.etag, f.got, r, since = -1, "", 0, first, 0
			err = &Error{Op: "get", Key: f.key, Kind: ErrUnavailable, Err: err}
		}
		if !again(OpGet, err) {
			return err
		}
		asked := RetryAfter(err)
		if f.got-since >= progress && asked == 0 {
			since, n = f.got, -1
			continue
		}
		if n+1 >= f.s.cfg.Attempts || f.s.pause(ctx, n, asked) != nil {
			return err
		}
	}
}

// once makes one attempt: open, learn or check the object's identity, read.
func (f *fill) once(ctx context.Context, r Range) (err error) {
	body, info, err := f.s.driver.Get(ctx, f.key, r, f.etag)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := body.Close(); err == nil && cerr != nil && f.got < len(f.buf) {
			err = f.short(cerr)
		}
	}()
	if err := f.identify(ctx, info); err != nil {
		return err
	}
	if want := f.off + int64(f.got); r.Offset >= 0 && r.Offset != want {
		return f.short(fmt.Errorf("asked from %d, need from %d", r.Offset, want))
	}
	n, err := io.ReadFull(body, f.buf[f.got:])
	f.got += n
	f.s.stats.bytesIn.Add(int64(n))
	if err != nil {
		return f.short(err)
	}
	return f.drain(body)
}

// identify takes size and ETag from the first answer and holds later ones to it.
func (f *fill) identify(ctx context.Context, info Info) error {
	info.Key = f.key
	if f.size >= 0 {
		if info.Size != f.size || (info.ETag != "" && f.etag != "" && info.ETag != f.etag) {
			return &Error{Op: "get", Key: f.key, Kind: ErrPrecondition, Err: errors.New("the object changed while it was read")}
		}
		return nil
	}
	if info.Size < 0 {
		// The store's Content-Range did not say ("bytes 0--1/0", or none).
		head, err := f.s.driver.Head(ctx, f.key)
		if err != nil {
			return err
		}
		if info.ETag != "" && info.ETag != head.ETag {
			return f.short(errors.New("the object changed while its size was asked"))
		}
		info.Size = head.Size
	}
	off, buf, err := f.plan(info.Size)
	if err != nil {
		return err
	}
	if off+int64(len(buf)) > info.Size {
		return &Error{Op: "get", Key: f.key, Kind: ErrRange, Err: fmt.Errorf(
			"%d bytes at %d of an object of %d", len(buf), off, info.Size)}
	}
	f.info, f.size, f.off, f.buf = info, info.Size, off, buf
	if !f.pinned {
		f.etag = info.ETag
	}
	return nil
}

// drain checks that the body ends where it should: one that goes on is another
// range than the one asked for (a store or proxy that ignores Range).
func (f *fill) drain(body io.Reader) error {
	var one [1]byte
	// All bytes are here: how the connection ends is nothing to us.
	if n, _ := io.ReadFull(body, one[:]); n > 0 {
		f.got = 0
		return &Error{Op: "get", Key: f.key, Kind: ErrUnsupported, Err: errors.New(
			"the store sent more than the range asked for: it ignores Range, run doctor on it")}
	}
	return nil
}

func (f *fill) short(err error) error {
	if errors.Is(err, ErrShort) || errors.Is(err, ErrUnavailable) {
		return err
	}
	return &Error{Op: "get", Key: f.key, Kind: ErrShort, Err: fmt.Errorf("%d of %d bytes: %w", f.got, len(f.buf), err)}
}
