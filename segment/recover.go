package segment

import "io"

// Tail is the verdict on what stands behind the last valid frame of a chain's
// newest segment.
type Tail struct {
	End  int64  // length of the valid prefix
	Torn bool   // something stands behind it, and it is the end of the log
	Kept []byte // cut bytes that look like a frame of this segment, at most TornKeepMax
	Cut  int64  // bytes behind End
}

// JudgeTail applies the rule of the torn tail to a newest segment whose valid
// prefix ends at end. What stands there is the end of the log iff no frame of
// this segment that begins after end was written when more than end was
// fsynced, and index.json (known, 0 for none) does not say that the segment is
// longer. Else rows that were acknowledged may be gone: *CorruptionError.
//
// A frame counts as one of this segment by its header alone: the header's CRC is
// seeded with the segment's UUID and the frame's offset, and a header that was
// written after end was fsynced proves that, whatever became of its payload.
func JudgeTail(r io.ReaderAt, size int64, u UUID, end, known int64) (Tail, error) {
	t := Tail{End: end, Cut: max(0, size-end)}
	if known > end {
		e := corrupt(end, "no valid frame, yet index.json knows this segment to be %d bytes long", known)
		e.UUID = u
		return t, e
	}
	if size <= end {
		return t, nil
	}
	t.Torn = true
	ours, frame, err := judgeEnd(r, size, u, end)
	if err != nil {
		return t, err
	}
	found, err := findSynced(r, size, u, end)
	if err != nil {
		return t, err
	}
	switch {
	case found || ours && frame == 0:
		t.Kept, err = keepTail(r, size, end)
	case ours:
		t.Kept, err = keepTail(r, end+frame, end)
	}
	return t, err
}

// judgeEnd looks at what stands exactly at end, and says whether it looks like
// a frame of this segment. One whose payload is whole and whose header is of
// another place is most likely a stale one of a recycled file, with others
// behind it: then frame is its length, and it alone is worth keeping.
func judgeEnd(r io.ReaderAt, size int64, u UUID, end int64) (ours bool, frame int64, err error) {
	w := window{r: r, size: size}
	b, err := w.at(end, FrameHeaderBytes)
	if err != nil {
		return false, 0, err
	}
	if len(b) < FrameHeaderBytes {
		return !allZero(b), 0, nil
	}
	if le.Uint32(b[16:]) != headerCRC(b, u, end) {
		if !plausible(b) || oneBitOff(b, u, end) {
			return oneBitOff(b, u, end), 0, nil
		}
		if b, err = w.at(end, FrameLen(b)); err != nil {
			return false, 0, err
		}
		if _, n, perr := parseChunkFrame(b, end); perr == nil {
			return true, int64(n), nil
		}
		return true, 0, nil
	}
	if b, err = w.at(end, FrameHeaderBytes+min(int64(le.Uint32(b)), MaxFrameBytes)); err != nil {
		return false, 0, err
	}
	_, _, perr := ParseFrame(b, u, end)
	f, invalid := perr.(*InvalidFrameError) //nolint:errorlint // ParseFrame gives nothing else
	switch {
	case !invalid:
		return true, 0, placed(corrupt(0, "a valid frame stands where the log was said to end"), u, 0, end)
	case f.Fault.Written():
		// The header's CRC is right: this was written so, by a newer build or by a
		// fault in one. It is no torn write, and cutting it would lose it.
		return true, 0, f.Corruption(u, 0)
	}
	return true, 0, nil
}

// oneBitOff says that a header of this segment stands here with one flipped bit:
// not the writing of any torn write, and worth keeping whatever the bit was.
func oneBitOff(header []byte, u UUID, off int64) bool {
	h := [FrameHeaderBytes]byte(header)
	for bit := range len(h) * 8 {
		h[bit/8] ^= 1 << (bit % 8)
		if le.Uint32(h[16:]) == headerCRC(h[:], u, off) {
			return true
		}
		h[bit/8] ^= 1 << (bit % 8)
	}
	return false
}

// findSynced goes through every byte offset after end for a header of this
// segment. One that was written when more than end was synced is corruption;
// any other only says that the cut bytes are worth keeping.
func findSynced(r io.ReaderAt, size int64, u UUID, end int64) (found bool, err error) {
	w := window{r: r, size: size}
	for off := end + 1; off+FrameHeaderBytes <= size; {
		b, err := w.at(off, min(scanWindow, size-off))
		if err != nil {
			return found, err
		}
		last := len(b) - FrameHeaderBytes
		for i := 0; i <= last; i++ {
			h := b[i : i+FrameHeaderBytes]
			// Zeros and other people's bytes leave here: an unknown kind byte of 0,
			// or a pad that is not zero.
			if h[4] == 0 || h[5]|h[6]|h[7] != 0 {
				continue
			}
			at := off + int64(i)
			synced := int64(le.Uint32(h[12:]))
			if synced > at || le.Uint32(h[16:]) != headerCRC(h, u, at) {
				continue
			}
			if found = true; synced > end {
				e := corrupt(end, "no valid frame, yet the frame at %d was written when %d bytes were synced", at, synced)
				e.UUID = u
				return true, e
			}
		}
		off += int64(last) + 1
	}
	return found, nil
}

// keepTail reads the cut bytes, without the zeros at their end.
func keepTail(r io.ReaderAt, size, end int64) ([]byte, error) {
	b := make([]byte, min(size-end, TornKeepMax))
	if err := readFull(r, b, end); err != nil {
		return nil, err
	}
	n := len(b)
	for n > 0 && b[n-1] == 0 {
		n--
	}
	return b[:n], nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
