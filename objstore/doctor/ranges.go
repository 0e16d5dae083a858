package doctor

import (
	"bytes"
	"context"
	"errors"

	"github.com/strandline/strandline/objstore"
)

func rangeChecks() []check {
	needs := []string{actPut, actGet}
	return []check{
		{
			name: "range-middle", required: true, needs: needs, run: rangeMiddle,
			proves: "a range gives exactly its bytes, and the size of the whole object",
			breaks: "I7: every read by range fails its checksum",
		},
		{
			name: "range-suffix", required: true, needs: needs, run: rangeSuffix,
			proves: "the last bytes are read without knowing the size, also if they are more than there are",
			breaks: "no footer can be found: nothing settles, nothing is probed",
		},
		{
			name: "range-beyond", required: true, needs: needs, run: rangeBeyond,
			proves: "a range beyond the end is refused",
			breaks: "I7: a truncated object reads as a whole one",
		},
		{
			name: "get-if-match", required: true, needs: needs, run: getIfMatch,
			proves: "a read of a version that is not there any more is refused",
			breaks: "I7: a read that goes on after a cut may go on in other bytes",
		},
	}
}

// tenBytes is the body that the ranges are read of; it is never changed.
var tenBytes = []byte("0123456789")

// span wants a range of the ten bytes.
func (t *trial) span(ctx context.Context, key string, r objstore.Range, want []byte) error {
	got, info, err := t.read(ctx, key, r, "")
	switch {
	case err != nil:
		return err
	case !bytes.Equal(got, want):
		return lies("the range %+v of %q is answered with %.20q", r, tenBytes, got)
	case info.Size != int64(len(tenBytes)):
		return lies("a range tells a size of %d for an object of %d bytes", info.Size, len(tenBytes))
	}
	return nil
}

func rangeMiddle(ctx context.Context, t *trial) error {
	key := t.key("key")
	if _, err := t.make(ctx, key, tenBytes); err != nil {
		return err
	}
	if err := t.span(ctx, key, objstore.Range{Offset: 3, Length: 4}, tenBytes[3:7]); err != nil {
		return err
	}
	return t.span(ctx, key, objstore.Range{Offset: 5, Length: -1}, tenBytes[5:])
}

func rangeSuffix(ctx context.Context, t *trial) error {
	key := t.key("key")
	if _, err := t.make(ctx, key, tenBytes); err != nil {
		return err
	}
	if err := t.span(ctx, key, objstore.Suffix(4), tenBytes[6:]); err != nil {
		return err
	}
	return t.span(ctx, key, objstore.Suffix(100), tenBytes)
}

func rangeBeyond(ctx context.Context, t *trial) error {
	key := t.key("key")
	if _, err := t.make(ctx, key, tenBytes); err != nil {
		return err
	}
	_, _, err := t.read(ctx, key, objstore.Range{Offset: 100, Length: 10}, "")
	return refusedAs(err, objstore.ErrRange, "a range beyond the end is answered with success")
}

func getIfMatch(ctx context.Context, t *trial) error {
	key := t.key("key")
	info, err := t.make(ctx, key, tenBytes)
	if err != nil {
		return err
	}
	if _, _, err := t.read(ctx, key, objstore.Range{Offset: 0, Length: 5}, info.ETag); err != nil {
		if errors.Is(err, objstore.ErrPrecondition) {
			return lacks("a read with the ETag that the PUT answered is refused: %v", err)
		}
		return err
	}
	_, _, err = t.read(ctx, key, objstore.Range{Offset: 0, Length: 5}, neverETag)
	return refusedAs(err, objstore.ErrPrecondition, "If-Match is ignored on reads")
}
