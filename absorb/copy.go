package absorb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

const (
	// copyPiece bounds the memory of a copy between buckets.
	copyPiece = 8 << 20
	// copyPatience is how long an absorb waits for one bucket's copy: a slot of 64 MiB at
	// 7 MiB/s. What takes longer goes on without it.
	copyPatience = 10 * time.Second
)

// Copies brings the other buckets of the set up to what stands in the first, before
// the slot is absorbed: an acknowledgement of it then survives the loss of any bucket
// but one. Create-once everywhere; a copy that differs is reported in the audit table and
// left alone (readers verify, and the first bucket decides).
//
// A copy that fails, or takes longer than copyPatience, holds nothing back: the first
// bucket has decided, and what it holds is absorbed and acknowledged without the copy. The
// bucket that missed it is behind then, and no absorb waits for it again until it has
// caught up (Owed). Copies fails only if ctx ends, or if a difference cannot be recorded.
//
//	cut here                         what is missing           who mends it
//	before the first bucket's PUT    nothing stands            the owner publishes again
//	after it, before a copy          copies of this slot       whoever absorbs it: it is not absorbed yet
//	in the middle of a copy          that copy (an upload may  as above; the sweep aborts the upload
//	                                 be left unfinished)
//	after the absorb, a copy owed    that copy                 the owner (Owed, until it dies), the
//	                                                           auditor's absorb-check (Mend)
//
// A copy made after its slot was trimmed, by a process that stalled in between, is a stray
// below trimmed in that bucket; the daily look for strays lists every bucket of the set.
func Copies(ctx context.Context, cat Catalog, b Bucket, key string) error {
	for _, to := range b.others() {
		if b.Owed.behind(to) {
			b.Owed.add(to, key)
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, copyPatience)
		_, differs, err := copyTo(bounded, b.Set.First(), to, key)
		cancel()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			b.Owed.add(to, key)
		case differs:
			if err := reportDiffers(ctx, cat, b, to, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// others are the buckets that get copies.
func (b Bucket) others() objstore.Set {
	if len(b.Set) == 0 {
		return nil
	}
	return b.Set[1:]
}

func reportDiffers(ctx context.Context, cat Catalog, b Bucket, to *objstore.Store, key string) error {
	detail := fmt.Sprintf("the copy in %s differs from %s: it was not touched", to.Name(), b.Set.First().Name())
	if err := cat.Audit(ctx, "damage", key, detail); err != nil {
		return fmt.Errorf("record that a copy of %s differs: %w", key, err)
	}
	return nil
}

// copyTo makes one copy, or finds that one stands.
func copyTo(ctx context.Context, from, to *objstore.Store, key string) (made, differs bool, err error) {
	// HEAD's "not found" only saves the bytes of a copy that stands: the create-once
	// write has the word.
	_, err = to.Head(ctx, key)
	if errors.Is(err, objstore.ErrNotFound) {
		if err = stream(ctx, from, to, key); err == nil {
			return true, false, nil
		}
		if !errors.Is(err, objstore.ErrExists) {
			return false, false, err
		}
		err = nil
	}
	if errors.Is(err, objstore.ErrCorrupt) {
		return false, true, nil // what stands there is damaged: it holds up no other copy
	}
	if err == nil {
		differs, err = compare(ctx, from, to, key)
	}
	return false, differs, err
}

// sourceError: the bucket that is copied from failed, not the one that is copied to.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

func stream(ctx context.Context, from, to *objstore.Store, key string) error {
	info, err := from.Head(ctx, key)
	if err != nil {
		return &sourceError{err}
	}
	meta := maps.Clone(info.Meta)
	delete(meta, objstore.MetaNonce)
	w := to.NewWriter(ctx, key, objstore.UploadOptions{Meta: meta})
	for off := int64(0); off < info.Size; off += copyPiece {
		piece, _, err := from.ReadRange(ctx, key, off, min(copyPiece, info.Size-off))
		if err != nil {
			err = &sourceError{err}
		} else {
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
		return false, &sourceError{err}
	}
	y, yi, err := b.ReadSuffix(ctx, key, segment.TrailerBytes)
	if errors.Is(err, objstore.ErrCorrupt) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return xi.Size != yi.Size || !bytes.Equal(x, y), nil
}
