package segment

import (
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// ReadFooter reads an object's footer through read, which returns the object's
// last n bytes (all of a shorter one) and its size. Most footers take one read,
// larger ones a second; there is never a third.
//
// An error of read comes back as it is. Bytes that were read whole and are no
// footer are ErrCorrupt or ErrShortObject, as of OpenTail. A read that gave other
// bytes than were asked for, and no error, is ErrTailRead: no verdict on the object.
func ReadFooter(read func(n int64) (tail []byte, size int64, err error)) (*Footer, error) {
	ask, before := int64(TailBytes), int64(-1)
	for {
		tail, size, err := read(ask)
		if err != nil {
			return nil, err
		}
		if int64(len(tail)) != min(ask, size) {
			return nil, fmt.Errorf("%w: %d bytes came of the last %d of %d", ErrTailRead, len(tail), ask, size)
		}
		if before >= 0 && size != before {
			return nil, fmt.Errorf("%w: the object had %d bytes, then %d", ErrTailRead, before, size)
		}
		f, need, err := OpenTail(tail, size)
		if err != nil || need == 0 {
			return f, err
		}
		if before >= 0 {
			return nil, fmt.Errorf("%w: the last %d bytes asked for %d more at the second read", ErrTailRead, ask, need)
		}
		ask, before = need, size
	}
}

// OpenTail reads an object's footer out of its last bytes. If they are too few
// it says how many last bytes to read before calling again: need > 0, and
// neither footer nor error. A first read of TailBytes holds most footers.
func OpenTail(tail []byte, size int64) (f *Footer, need int64, err error) {
	if int64(len(tail)) > size {
		return nil, 0, corrupt(0, "%d last bytes of an object of %d", len(tail), size)
	}
	if size >= TrailerBytes && len(tail) < TrailerBytes {
		return nil, min(size, TailBytes), nil
	}
	t, err := ParseTrailer(tail, size)
	if err != nil {
		return nil, 0, err
	}
	whole := int64(t.FooterLen) + TrailerBytes
	if int64(len(tail)) < whole {
		return nil, whole, nil
	}
	b := tail[int64(len(tail))-whole : len(tail)-TrailerBytes]
	if crcUpdate(0, b) != t.FooterCRC || xxhash.Sum64(b) != t.FooterSum {
		return nil, 0, corrupt(t.FooterOffset, "footer of %d bytes does not match its CRC and digest", len(b))
	}
	if f, err = DecodeFooter(b); err != nil {
		return nil, 0, shifted(err, t.FooterOffset)
	}
	if end := f.ChunksEnd(); end != t.FooterOffset {
		return nil, 0, corrupt(t.FooterOffset, "chunks end at %d, the footer begins at %d", end, t.FooterOffset)
	}
	return f, 0, nil
}

// ChunksEnd is where the footer begins: the chunks lie side by side from 0 on.
func (f *Footer) ChunksEnd() int64 {
	if len(f.Chunks) == 0 {
		return 0
	}
	return f.Chunks[len(f.Chunks)-1].End()
}
