package absorb

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Standing is a slot as it stands in the first bucket of its set.
type Standing struct {
	Key    string
	Info   objstore.Info
	Footer *segment.Footer
}

// Read reads the footer of the slot at a position and checks that it belongs
// there. objstore.ErrNotFound: nothing stands there. *Finding: what stands there was read
// in full, twice, and is no slot of this position. Anything else: not known.
func Read(ctx context.Context, b Bucket, c segment.Chain, id segment.ID) (Standing, error) {
	s, err := readOnce(ctx, b, c, id)
	if !segment.IsStructural(err) {
		return s, err
	}
	// One read may have met a proxy's or a disk's bad moment; a verdict that voids
	// rows is not built on it.
	s, again := readOnce(ctx, b, c, id)
	if !segment.IsStructural(again) {
		return s, again
	}
	return s, &Finding{Chain: c, ID: id, Key: s.Key, Size: s.Info.Size, Meta: s.Info.Meta, Footer: s.Footer, Err: again}
}

func readOnce(ctx context.Context, b Bucket, c segment.Chain, id segment.ID) (Standing, error) {
	s := Standing{Key: segment.SlotKey(c, id)}
	var err error
	if s.Footer, s.Info, err = readTail(ctx, b.Set.First(), s.Key); err != nil {
		return s, segment.InFile(err, s.Key, id)
	}
	return s, checkPlace(s, c, id)
}

// readTail reads a slot's footer, and what the store says of the object.
func readTail(ctx context.Context, store *objstore.Store, key string) (footer *segment.Footer, info objstore.Info, err error) {
	footer, err = segment.ReadFooter(func(n int64) (tail []byte, _ int64, err error) {
		if tail, info, err = store.ReadSuffix(ctx, key, n); err != nil {
			err = fmt.Errorf("read the tail of %s: %w", key, err)
		}
		return tail, info.Size, err
	})
	return footer, info, err
}

// checkPlace holds a footer against the key and the metadata it was found under.
func checkPlace(s Standing, c segment.Chain, id segment.ID) error {
	f := s.Footer
	misplaced := func(format string, args ...any) error {
		return &segment.CorruptionError{File: s.Key, Segment: id, Offset: s.Info.Size, Reason: fmt.Sprintf(format, args...)}
	}
	if f.Kind != segment.ObjSlot || f.Slot == nil {
		return misplaced("the footer is not a slot's")
	}
	if f.Slot.Chain != c || f.Slot.ID != id {
		return misplaced("the footer is that of position %d of chain %s", f.Slot.ID, f.Slot.Chain)
	}
	meta, err := segment.ParseMeta(s.Info.Meta)
	if err != nil {
		return misplaced("its metadata does not name a segment: %v", err)
	}
	if meta.UUID != f.Slot.UUID || meta.Digest != f.Slot.Digest || meta.Length != f.Slot.Length {
		return misplaced("metadata names segment %s, the footer %s", meta.UUID, f.Slot.UUID)
	}
	return nil
}
