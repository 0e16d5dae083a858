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
	c := cutter{raw: raw, from: from, to: to}
	for off := 0; off < len(raw); {
		f, n, err := nextBatch(raw, off)
		if err != nil {
			return nil, Tally{}, err
		}
		if err := c.take(f.Payload, off, n); err != nil {
			return nil, Tally{}, placed(err, UUID{}, 0, int64(off))
		}
		off += n
	}
	if c.out == nil {
		c.out = raw[c.begin:c.end:c.end]
	}
	c.sum.Raw = int64(len(c.out))
	return c.out, c.sum.Tally, nil
}

// cutter gathers what CutRows takes. While out is nil, that is the run of raw
// from begin to end; the frames that are taken are neighbours.
type cutter struct {
	raw        []byte
	from, to   Seq
	begin, end int
	out        []byte
	sum        tallier
}

// take looks at the frame of n bytes at off.
func (c *cutter) take(payload []byte, off, n int) error {
	h, rows := openBatch(payload)
	switch {
	case rows.r.err != nil:
		return rows.r.err
	case h.last() < c.from || h.first > c.to:
		return nil
	case h.first >= c.from && h.last() <= c.to:
		return c.verbatim(payload, off, n)
	}
	if c.out == nil {
		c.out = make([]byte, 0, len(c.raw)+FrameHeaderBytes)
		c.out = append(c.out, c.raw[c.begin:c.end]...)
	}
	var err error
	c.out, err = cutFrame(c.out, payload, c.from, c.to, &c.sum)
	return err
}

func (c *cutter) verbatim(payload []byte, off, n int) error {
	if err := c.sum.add(payload); err != nil {
		return err
	}
	if c.out != nil {
		c.out = append(c.out, c.raw[off:off+n]...)
		return nil
	}
	if c.begin == c.end {
		c.begin = off
	}
	c.end = off + n
	return nil
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
