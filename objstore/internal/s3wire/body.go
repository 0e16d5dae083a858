package s3wire

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/strandline/strandline/objstore"
)

// Body is an object's body that must hold exactly the promised bytes. Neither client
// library resumes a cut body, and one that is closed early may look like its end.
type Body struct {
	ctx    context.Context
	body   io.ReadCloser
	key    string
	wanted int64
	got    int64
}

// NewBody wraps the body of an answer that promised n bytes.
func NewBody(ctx context.Context, key string, body io.ReadCloser, n int64) *Body {
	return &Body{ctx: ctx, body: body, key: key, wanted: n}
}

func (b *Body) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.got += int64(n)
	switch {
	case b.got > b.wanted:
		return n, b.fail(objstore.ErrUnavailable, fmt.Errorf("more than the promised %d bytes", b.wanted))
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF) && b.got == b.wanted:
		return n, io.EOF
	case b.ctx.Err() != nil:
		return n, b.fail(objstore.ErrUnavailable, b.ctx.Err())
	default:
		return n, b.fail(objstore.ErrShort, fmt.Errorf("after %d of %d bytes: %w", b.got, b.wanted, unexpected(err)))
	}
}

// Close gives the connection back; a body read to its end leaves it reusable.
func (b *Body) Close() error { return b.body.Close() }

func (b *Body) fail(kind, cause error) error {
	return &objstore.Error{Op: string(objstore.OpGet), Key: b.key, Kind: kind, Err: cause}
}

// unexpected keeps io.EOF out of the chain: to a caller it would mean a proper end.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
