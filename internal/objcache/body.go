package objcache

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/strandline/strandline/internal/objcache/wire"
	"github.com/strandline/strandline/objstore"
)

// body is a range on its way from an instance. If the instance fails in the middle, the
// rest comes from the store under the same ETag; the reader does not notice.
type body struct {
	d      *Driver
	in     *instance
	ctx    context.Context // the caller's
	call   *call           // nil once it ended
	frames wire.Reader
	info   objstore.Info
	rest   io.ReadCloser // the store's
}

func (b *body) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if b.rest != nil {
		return b.rest.Read(p)
	}
	if b.call == nil {
		return 0, &objstore.Error{Op: "get", Key: b.info.Key, Kind: objstore.ErrShort, Err: errors.New("the body is closed")}
	}
	n, err := b.frames.Read(p)
	if err == nil {
		b.call.moved()
		b.d.stats.readBytes.Add(int64(n))
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		return 0, io.EOF
	}
	if err := b.failOver(err); err != nil {
		return 0, err
	}
	return b.rest.Read(p)
}

// failOver asks the store for what is missing.
func (b *body) failOver(cause error) error {
	b.call.close()
	b.call = nil
	short := func(err error) error {
		return &objstore.Error{Op: "get", Key: b.info.Key, Kind: objstore.ErrShort, Err: err}
	}
	if b.ctx.Err() != nil {
		return short(context.Cause(b.ctx))
	}
	b.d.broken(b.in, cause)
	b.d.stats.fallbacks.Add(1)
	off, end := b.frames.Off, b.frames.End
	rest, info, err := b.d.Driver.Get(b.ctx, b.info.Key, objstore.Range{Offset: off, Length: end - off}, b.info.ETag)
	if err != nil {
		// A body that was begun cannot end in "not there": the next call will say so.
		return short(fmt.Errorf("the instance failed at byte %d (%w), then the store: %w", off, cause, err))
	}
	if info.Size >= 0 && info.Size != b.info.Size {
		return errors.Join(short(fmt.Errorf("the instance said %d bytes, the store says %d", b.info.Size, info.Size)), rest.Close())
	}
	b.rest = rest
	return nil
}

func (b *body) Close() error {
	if b.call != nil {
		b.call.close()
		b.call = nil
	}
	if b.rest != nil {
		return b.rest.Close()
	}
	return nil
}
