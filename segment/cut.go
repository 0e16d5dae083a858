package segment

// CutRows takes the rows from seq from to seq to, both included, out of a
// chunk's raw bytes. Frames wholly inside move verbatim; one that straddles an
// end is encoded again with the rows inside only. out aliases raw if nothing
// had to be encoded. Everything that is taken is verified; a span without rows
// gives no bytes and an empty tally.
func CutRows(raw []byte, from, to Seq) (out []byte, t Tally, err error) {
	if from > to {
		return nil, Tally{}, nil
	}
	var sum tallier
	begin, end := -1, 0 // of the verbatim run in raw, while out is nil
	for off := 0; off < len(raw); {
		f, n, err := nextBatch(raw, off)
		if err != nil {
			return nil, Tally{}, err
		}
		h, rows := openBatch(f.Payload)
		if rows.r.err != nil {
			return nil, Tally{}, placed(rows.r.err, UUID{}, 0, int64(off))
		}
		switch {
		case h.last() < from || h.first > to:
		case h.first >= from && h.last() <= to:
			if err := sum.add(f.Payload); err != nil {
				return nil, Tally{}, placed(err, UUID{}, 0, int64(off))
			}
			if out != nil {
				out = append(out, raw[off:off+n]...)
				break
			}
			if begin < 0 {
				begin = off
			}
			end = off + n
		default:
			if out == nil {
				out = make([]byte, 0, len(raw)+FrameHeaderBytes)
				if begin >= 0 {
					out = append(out, raw[begin:end]...)
				}
			}
			if out, err = cutFrame(out, f.Payload, from, to, &sum); err != nil {
				return nil, Tally{}, placed(err, UUID{}, 0, int64(off))
			}
		}
		off += n
	}
	if out == nil && begin >= 0 {
		out = raw[begin:end:end]
	}
	sum.Raw = int64(len(out))
	return out, sum.Tally, nil
}

// cutFrame encodes the batch again with the rows from from to to. The new
// frame stands in no segment: its header CRC is that of no segment at 0, and
// nothing looks at it.
func cutFrame(out, payload []byte, from, to Seq, sum *tallier) ([]byte, error) {
	b, err := DecodeBatch(payload)
	if err != nil {
		return nil, err
	}
	last := b.Last()
	lo, hi := max(from, b.First), min(to, last)
	b.Rows = b.Rows[lo-b.First : hi-b.First+1]
	b.First = lo
	out, mark := BeginFrame(out)
	if out, err = AppendBatch(out, &b); err != nil {
		return nil, err
	}
	if err := sum.add(out[mark+FrameHeaderBytes:]); err != nil {
		return nil, err
	}
	return EndFrame(out, mark, UUID{}, 0, KindBatch, 0)
}

// SplitFrames cuts a chunk's raw bytes at the last frame boundary within target
// bytes; the first frame always goes in front. It reads lengths only: what it
// gives is verified by whoever counts it.
func SplitFrames(raw []byte, target int64) (head, rest []byte, err error) {
	off := 0
	for off < len(raw) {
		if len(raw)-off < FrameHeaderBytes || FrameLen(raw[off:]) > int64(len(raw)-off) {
			return nil, nil, corrupt(int64(off), "a chunk ends within a frame")
		}
		n := int(FrameLen(raw[off:]))
		if off > 0 && int64(off+n) > target {
			break
		}
		off += n
	}
	return raw[:off:off], raw[off:], nil
}
