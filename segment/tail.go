package segment

import "github.com/cespare/xxhash/v2"

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
