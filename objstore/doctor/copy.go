package doctor

import (
	"bytes"
	"context"
	"errors"

	"github.com/strandline/strandline/objstore"
)

const (
	// copyBeyond is by how much the source of the copies passes what stores ask for, so
	// that parts of two lengths fit in it.
	copyBeyond = 8 << 10
	copyLength = 70_001
	smallCopy  = 4 << 10
	// s3MinCopy is AWS's rule: range copies want more than 5 MiB.
	s3MinCopy = 5 << 20
)

func copyChecks() []check {
	needs := []string{actPut, actGet, actAbort}
	return []check{
		{
			name: "range-copy", needs: needs, run: rangeCopy, lacks: noRangeCopy,
			proves: "a range of an object becomes a part within the store",
			breaks: "settled bytes go through the auditor: slower, and billed as traffic",
		},
		{
			name: "range-copy-stale", needs: needs, run: rangeCopyStale, lacks: noRangeCopy,
			proves: "a copy whose source is not the version named is refused",
			breaks: "I2: a settled object holds bytes that its refs do not describe",
		},
		{
			name: "range-copy-small", needs: needs, run: rangeCopySmall, lacks: func(c *objstore.Capabilities) { c.MinCopy = max(c.MinCopy, s3MinCopy) },
			proves: "small sources may be range-copied",
			breaks: "nothing: small sources are read and written again",
		},
		{
			name: "unequal-parts", needs: needs, run: unequalParts, lacks: func(c *objstore.Capabilities) { c.EqualParts = true },
			proves: "the parts of an upload may differ in length",
			breaks: "chunks cannot be copied within the store; they go through the auditor",
		},
	}
}

func noRangeCopy(c *objstore.Capabilities) { c.RangeCopy = false }

// fixtures are objects that several checks read; each is made when first asked for.
type fixtures struct {
	source objstore.Info
	shelf  []string
}

// copySource is an object that every store copies ranges of, and its bytes.
func (s *session) copySource(ctx context.Context) (objstore.Info, []byte, error) {
	caps := s.d.Capabilities()
	body := noise(max(caps.MinCopy, caps.MinPart, 1<<20) + copyBeyond)
	if s.source.Key != "" {
		return s.source, body, nil
	}
	info, err := s.make(ctx, s.dir+"source", body)
	if err == nil {
		s.source = info
	}
	return info, body, err
}

// copied publishes one part, copied from src, and reads it.
func (t *trial) copied(ctx context.Context, src objstore.CopySource, want []byte) error {
	key := t.key("copy")
	id, err := t.d.CreateUpload(ctx, key, nil)
	if err != nil {
		return err
	}
	part, err := t.d.CopyPart(ctx, key, id, 1, src)
	if err != nil {
		return err
	}
	if _, err := t.d.Complete(ctx, key, id, []objstore.Part{part}, objstore.PutOptions{}); err != nil {
		return err
	}
	return t.holds(ctx, key, want, "a copied part does not hold the range that was asked for")
}

func (t *trial) copies() error {
	if !t.d.Capabilities().RangeCopy {
		return skips("the driver does not declare it: bytes are read and written again")
	}
	return nil
}

func rangeCopy(ctx context.Context, t *trial) error {
	if err := t.copies(); err != nil {
		return err
	}
	src, body, err := t.copySource(ctx)
	if err != nil {
		return err
	}
	offset := src.Size / 3
	return t.copied(ctx, objstore.CopySource{Key: src.Key, ETag: src.ETag, Offset: offset, Length: copyLength}, body[offset:offset+copyLength])
}

func rangeCopyStale(ctx context.Context, t *trial) error {
	if err := t.copies(); err != nil {
		return err
	}
	src, _, err := t.copySource(ctx)
	if err != nil {
		return err
	}
	key := t.key("copy")
	id, err := t.d.CreateUpload(ctx, key, nil)
	if err != nil {
		return err
	}
	_, err = t.d.CopyPart(ctx, key, id, 1, objstore.CopySource{Key: src.Key, ETag: neverETag, Offset: 0, Length: copyLength})
	return errors.Join(
		refusedAs(err, objstore.ErrPrecondition, "the condition on a copy's source is ignored"),
		t.d.Abort(ctx, key, id))
}

func rangeCopySmall(ctx context.Context, t *trial) error {
	if err := t.copies(); err != nil {
		return err
	}
	body := noise(smallCopy)
	src, err := t.make(ctx, t.key("source"), body)
	if err != nil {
		return err
	}
	if t.d.Capabilities().MinCopy > smallCopy {
		t.detail = "it can, but the driver does not rely on it"
	}
	return t.copied(ctx, objstore.CopySource{Key: src.Key, ETag: src.ETag, Offset: 100, Length: 1000}, body[100:1100])
}

// unequalParts assembles what settle does: two copies of different lengths, and a short
// part of its own at the end.
func unequalParts(ctx context.Context, t *trial) error {
	caps := t.d.Capabilities()
	if caps.EqualParts {
		return skips("the driver declares that all parts must have one length")
	}
	src, body, err := t.copySource(ctx)
	if err != nil {
		return err
	}
	least := max(caps.MinPart, smallCopy)
	key := t.key("parts")
	id, err := t.d.CreateUpload(ctx, key, nil)
	if err != nil {
		return err
	}
	var parts []objstore.Part
	for i, piece := range [][]byte{body[:least], body[:least+smallCopy], body[:smallCopy-1]} {
		part, err := t.piece(ctx, key, id, i+1, src, piece)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	_, err = t.d.Complete(ctx, key, id, parts, objstore.PutOptions{})
	if err != nil {
		return err
	}
	want := bytes.Join([][]byte{body[:least], body[:least+smallCopy], body[:smallCopy-1]}, nil)
	return t.holds(ctx, key, want, "an upload of unequal parts is not its parts, one after the other")
}

// piece is a part that begins as the source does: the first two copied, where that can be.
func (t *trial) piece(ctx context.Context, key, id string, number int, src objstore.Info, b []byte) (objstore.Part, error) {
	if number < 3 && t.d.Capabilities().RangeCopy {
		return t.d.CopyPart(ctx, key, id, number, objstore.CopySource{Key: src.Key, ETag: src.ETag, Offset: 0, Length: int64(len(b))})
	}
	return t.d.UploadPart(ctx, key, id, number, bytes.NewReader(b), int64(len(b)))
}
