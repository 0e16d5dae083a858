package absorb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// copyPiece bounds the memory of a copy between buckets.
const copyPiece = 8 << 20

// Copies brings the other buckets of the set up to what stands in the first, before
// the slot is absorbed: a ref promises all of them. Create-once everywhere; a copy
// that differs is reported in the audit table and left alone (readers verify, and
// the first bucket decides).
func Copies(ctx context.Context, cat Catalog, b Bucket, key string) error {
	for _, to := range b.Set[1:] {
		differs, err := copyTo(ctx, b.Set.First(), to, key)
		if err != nil {
			return fmt.Errorf("copy %s to %s: %w", key, to.Name(), err)
		}
		if !differs {
			continue
		}
		detail := fmt.Sprintf("the copy in %s differs from %s: it was not touched", to.Name(), b.Set.First().Name())
		if err := cat.Audit(ctx, "damage", key, detail); err != nil {
			return fmt.Errorf("record that a copy of %s differs: %w", key, err)
		}
	}
	return nil
}

// copyTo makes one copy, or finds that one stands.
func copyTo(ctx context.Context, from, to *objstore.Store, key string) (differs bool, err error) {
	_, err = to.Head(ctx, key)
	if err == nil {
		return compare(ctx, from, to, key)
	}
	if !errors.Is(err, objstore.ErrNotFound) {
		return false, err
	}
	// HEAD's "not found" only saves the bytes of a copy that stands: the create-once
	// write below has the word.
	err = stream(ctx, from, to, key)
	if errors.Is(err, objstore.ErrExists) {
		return compare(ctx, from, to, key)
	}
	return false, err
}

func stream(ctx context.Context, from, to *objstore.Store, key string) error {
	info, err := from.Head(ctx, key)
	if err != nil {
		return err
	}
	meta := maps.Clone(info.Meta)
	delete(meta, objstore.MetaNonce)
	w := to.NewWriter(ctx, key, objstore.UploadOptions{Meta: meta})
	for off := int64(0); off < info.Size; off += copyPiece {
		piece, _, err := from.ReadRange(ctx, key, off, min(copyPiece, info.Size-off))
		if err == nil {
			_, err = w.Write(piece)
		}
		if err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	_, err = w.Commit()
	return err
}

// compare holds two objects against each other by their trailers: a trailer carries
// the length and the digest of a footer that carries the checksum of every chunk.
func compare(ctx context.Context, a, b *objstore.Store, key string) (differs bool, err error) {
	x, xi, err := a.ReadSuffix(ctx, key, segment.TrailerBytes)
	if err != nil {
		return false, err
	}
	y, yi, err := b.ReadSuffix(ctx, key, segment.TrailerBytes)
	if err != nil {
		return false, err
	}
	return xi.Size != yi.Size || !bytes.Equal(x, y), nil
}
