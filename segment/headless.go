package segment

import (
	"io"
)

// sectorBytes is the unit in which a disk keeps or loses a write.
const sectorBytes = 512

// JudgeHeadless looks at a newest file that has no whole header and
// SegmentStart. nil means that it may be moved aside: the crash fell between
// creating it and its first fdatasync, so it is short or zeros where those
// should stand, and nothing was ever acknowledged from it. Anything else is a
// *CorruptionError.
func JudgeHeadless(r io.ReaderAt, size int64) error {
	if size > MaxSegmentBytes {
		return corrupt(0, "segment of %d bytes, at most %d", size, int64(MaxSegmentBytes))
	}
	w := window{r: r, size: size}
	b, err := w.at(0, HeaderBytes)
	if err != nil {
		return err
	}
	if len(b) < HeaderBytes {
		return nil
	}
	if allZero(b) {
		return noAcknowledgedFrame(r, size)
	}
	h, err := ParseHeader(b)
	if err != nil {
		return err
	}
	if err := startTorn(&w, h.UUID); err != nil {
		return placed(err, h.UUID, 0, HeaderBytes)
	}
	// A frame of this segment that knows of synced bytes was written after the
	// first fdatasync, which the SegmentStart must have survived.
	_, err = findSynced(r, size, h.UUID, 0)
	return err
}

// startTorn says nil if the SegmentStart is short or zeros.
func startTorn(w *window, u UUID) error {
	b, err := w.at(HeaderBytes, FrameHeaderBytes)
	if err != nil {
		return err
	}
	if len(b) < FrameHeaderBytes || allZero(b) {
		return nil
	}
	if le.Uint32(b[16:]) == headerCRC(b, u, HeaderBytes) && plausible(b) {
		if b, err = w.at(HeaderBytes, FrameLen(b)); err != nil {
			return err
		}
	}
	f, _, perr := ParseFrame(b, u, HeaderBytes)
	if perr == nil {
		return corrupt(0, "the first frame is a whole %s: this file is not headless", f.Kind)
	}
	inv, _ := perr.(*InvalidFrameError) //nolint:errorlint // ParseFrame gives nothing else
	if inv.Fault == FaultShortPayload || inv.Fault == FaultPayloadCRC && lostSector(b) {
		return nil
	}
	return inv.Corruption(u, 0)
}

// lostSector says whether a whole sector of the SegmentStart b, or what lies in
// its last one, is zeros. No SegmentStart holds that many zeros of its own.
func lostSector(b []byte) bool {
	for at := sectorBytes - HeaderBytes; at < len(b); at += sectorBytes {
		if allZero(b[at:min(at+sectorBytes, len(b))]) {
			return true
		}
	}
	return false
}

// noAcknowledgedFrame looks through a file whose header is zeros, and with it
// the UUID that its frames' headers are sealed with. What remains to tell a
// frame is its payload CRC. The search is bounded: bytes so full of would-be
// frames that it would take longer are called corruption, unread.
func noAcknowledgedFrame(r io.ReaderAt, size int64) error {
	w := window{r: r, size: size}
	budget := 16*size + MaxFrameBytes
	for off := int64(HeaderBytes); off+FrameHeaderBytes <= size; off++ {
		b, err := w.at(off, FrameHeaderBytes)
		if err != nil {
			return err
		}
		synced := int64(le.Uint32(b[12:]))
		if synced == 0 || synced > off || !plausible(b) || off+FrameLen(b) > size {
			continue
		}
		n := FrameLen(b)
		if budget -= n; budget < 0 {
			return corrupt(0, "the header is zeros and what follows is not: too much of it looks like frames to tell")
		}
		p := make([]byte, n)
		if err := readFull(r, p, off); err != nil {
			return err
		}
		if _, _, err := parseChunkFrame(p, off); err == nil {
			return corrupt(0, "the header is zeros, yet a frame at %d was written when %d bytes were synced", off, synced)
		}
	}
	return nil
}
