package doctor

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/strandline/strandline/objstore"
)

// probeMeta is a metadata name like those that the Store uses.
const probeMeta = "strandline-doctor"

func integrityChecks() []check {
	needs := []string{actPut, actGet}
	return []check{
		{
			name: "metadata", required: true, needs: needs, run: metadata,
			proves: "metadata comes back as it was given, from HEAD and from GET",
			breaks: "a write whose answer was lost cannot be told from another's: every lost answer stays unknown",
		},
		{
			name: "head", required: true, needs: needs, run: head,
			proves: "HEAD tells size and ETag, and that a key is absent",
			breaks: "fencing and the orphan judge look by HEAD",
		},
		{
			name: "checksum", needs: needs, run: checksum,
			proves: "a body that changed on the way is refused",
			breaks: "a byte flipped on the way is found by the first reader, not by the writer that still has it",
		},
	}
}

func metadata(ctx context.Context, t *trial) error {
	key := t.key("key")
	const value = "0f9a Z~=/."
	_, err := t.put(ctx, key, []byte("x"), objstore.PutOptions{Meta: map[string]string{probeMeta: value}})
	if err != nil {
		return err
	}
	info, err := t.d.Head(ctx, key)
	if err != nil {
		return err
	}
	if got := info.Meta[probeMeta]; got != value {
		return lies("HEAD gives %q for metadata written as %q", got, value)
	}
	_, info, err = t.read(ctx, key, objstore.Whole, "")
	if err == nil && info.Meta[probeMeta] != value {
		err = lies("GET gives %q for metadata written as %q", info.Meta[probeMeta], value)
	}
	return err
}

func head(ctx context.Context, t *trial) error {
	key := t.key("key")
	put, err := t.make(ctx, key, tenBytes)
	if err != nil {
		return err
	}
	info, err := t.d.Head(ctx, key)
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		return lies("HEAD does not find what was just written")
	case err != nil:
		return err
	case info.Size != int64(len(tenBytes)) || info.ETag != put.ETag:
		return lies("HEAD tells %d bytes and ETag %q, the PUT wrote %d and answered %q", info.Size, info.ETag, len(tenBytes), put.ETag)
	}
	_, err = t.d.Head(ctx, t.key("absent"))
	return refusedAs(err, objstore.ErrNotFound, "HEAD finds a key that is not there")
}

func checksum(ctx context.Context, t *trial) error {
	key := t.key("key")
	body := &changing{Reader: bytes.NewReader(noise(10_000))}
	_, err := t.d.Put(ctx, key, body, 10_000, objstore.PutOptions{})
	switch {
	case !body.changed:
		return skips("the driver reads a body once: nothing can change between its checksum and its sending")
	case err == nil:
		return lacks("a body that changed after its checksum was taken is stored")
	case errors.Is(err, objstore.ErrDenied), errors.Is(err, objstore.ErrAmbiguous):
		return err
	}
	_, _, err = t.read(ctx, key, objstore.Whole, "")
	return refusedAs(err, objstore.ErrNotFound, "a body was refused for its checksum, and stands")
}

// changing is a body that reads differently in every pass but the first.
type changing struct {
	*bytes.Reader
	read, changed bool
	again         bool
}

func (c *changing) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if n > 0 {
		c.read = true
		if c.again {
			p[0] ^= 0x80
			c.changed = true
		}
	}
	return n, err
}

func (c *changing) Seek(offset int64, whence int) (int64, error) {
	at, err := c.Reader.Seek(offset, whence)
	if at == 0 && c.read && whence == io.SeekStart {
		c.again = true
	}
	return at, err
}

// WriteTo hides the reader's own, which would pass the changes by.
func (c *changing) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{c})
}
