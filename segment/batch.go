package segment

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// Batch is the rows of one append call (or of a part of it): one stream,
// consecutive seqs from First on.
type Batch struct {
	Stream   string
	First    Seq
	Producer string // "" if the append was not idempotent
	Sequence uint64
	Rows     []Row // AppendBatch takes their seqs as First, First+1 …
}

// Last is the seq of the last row.
func (b *Batch) Last() Seq { return b.First + Seq(len(b.Rows)) - 1 }

const (
	batchHasProducer = 1 << 0
	batchFlagsKnown  = batchHasProducer
	minRowBytes      = 3 // time delta, txn length, payload length
)

// BatchBytes is the exact length of AppendBatch's output.
func BatchBytes(b *Batch) int {
	n := 1 + uvarintLen(uint64(len(b.Stream))) + len(b.Stream) +
		uvarintLen(uint64(b.First)) + uvarintLen(uint64(len(b.Rows)))
	if b.Producer != "" {
		n += uvarintLen(uint64(len(b.Producer))) + len(b.Producer) + uvarintLen(b.Sequence)
	}
	var prev int64
	for i := range b.Rows {
		r := &b.Rows[i]
		n += varintLen(r.Time-prev) +
			uvarintLen(uint64(len(r.Txn))) + len(r.Txn) +
			uvarintLen(uint64(len(r.Payload))) + len(r.Payload)
		prev = r.Time
	}
	return n
}

// AppendBatch appends a batch frame's payload. It allocates nothing when dst has
// room. What the format cannot hold is refused before anything is appended.
func AppendBatch(dst []byte, b *Batch) ([]byte, error) {
	if err := checkBatch(b); err != nil {
		return dst, err
	}
	var flags byte
	if b.Producer != "" {
		flags |= batchHasProducer
	}
	dst = append(dst, flags)
	dst = appendText(dst, b.Stream)
	dst = binary.AppendUvarint(dst, uint64(b.First))
	dst = binary.AppendUvarint(dst, uint64(len(b.Rows)))
	if b.Producer != "" {
		dst = appendText(dst, b.Producer)
		dst = binary.AppendUvarint(dst, b.Sequence)
	}
	// The first delta is from 0, the others from the row before. The difference
	// wraps, and so holds any two times.
	var prev int64
	for i := range b.Rows {
		r := &b.Rows[i]
		dst = appendVarint(dst, r.Time-prev)
		dst = appendText(dst, r.Txn)
		dst = appendText(dst, r.Payload)
		prev = r.Time
	}
	return dst, nil
}

func checkBatch(b *Batch) error {
	if err := checkAnyStream(b.Stream); err != nil {
		return err
	}
	if b.Producer != "" {
		if err := CheckProducer(b.Producer); err != nil {
			return err
		}
	}
	if len(b.Rows) == 0 || b.First == 0 || uint64(b.First) > math.MaxUint64-uint64(len(b.Rows)) {
		return fmt.Errorf("%w: batch of %d rows from seq %d", ErrInvalid, len(b.Rows), b.First)
	}
	if n := BatchBytes(b); n > MaxFrameBytes {
		return fmt.Errorf("%w: batch of %d bytes, at most %d; append fewer rows at once", ErrTooLarge, n, MaxFrameBytes)
	}
	return nil
}

// batchHead is a batch payload down to its rows.
type batchHead struct {
	stream, producer []byte
	first            Seq
	rows             int
	sequence         uint64
}

func (h *batchHead) last() Seq { return h.first + Seq(h.rows) - 1 }

func readBatchHead(r *reader) (h batchHead) {
	flags := r.u8()
	if flags&^batchFlagsKnown != 0 {
		r.fail("unknown flags %#x", flags)
	}
	h.stream = r.text(MaxStreamName, "stream name")
	h.first = Seq(r.uvarint())
	h.rows = r.count(minRowBytes, "rows")
	if flags&batchHasProducer != 0 {
		h.producer = r.text(MaxProducerName, "producer id")
		h.sequence = r.uvarint()
	}
	if r.err != nil {
		return h
	}
	if h.rows == 0 || h.first == 0 || uint64(h.first) > math.MaxUint64-uint64(h.rows) {
		r.fail("%d rows from seq %d", h.rows, h.first)
	}
	if !plainName(h.stream) {
		if err := checkAnyStream(string(h.stream)); err != nil {
			r.fail("%v", err)
		}
	}
	if flags&batchHasProducer != 0 {
		if err := CheckProducer(string(h.producer)); err != nil {
			r.fail("%v", err)
		}
	}
	return h
}

// plainName is the usual case of checkAnyStream, for bytes.
func plainName(name []byte) bool {
	return len(name) > 0 && len(name) <= MaxStreamName && name[0] != '~' && utf8.Valid(name)
}

// RowReader yields a batch's rows one by one, without allocating.
type RowReader struct {
	r    reader
	seq  Seq
	left int
	time int64
}

// Next reads the next row into row, whose Txn and Payload alias the frame's payload.
// False is the end of the rows, or an error, which is Err's to tell.
func (rr *RowReader) Next(row *Row) bool {
	if rr.left == 0 || rr.r.err != nil {
		return false
	}
	rr.time += rr.r.varint()
	row.Seq, row.Time = rr.seq, rr.time
	row.Txn = rr.r.text(MaxFrameBytes, "transaction id")
	if len(row.Txn) == 0 {
		row.Txn = nil
	}
	row.Payload = rr.r.text(MaxFrameBytes, "payload")
	rr.seq++
	rr.left--
	return rr.r.err == nil
}

// Err is what is wrong with the payload, once Next said false.
func (rr *RowReader) Err() error { return rr.r.done() }

func openBatch(p []byte) (batchHead, RowReader) {
	r := newReader(p, "batch")
	h := readBatchHead(&r)
	return h, RowReader{r: r, seq: h.first, left: h.rows}
}

// DecodeBatch reads a batch frame's payload. The rows' Txn and Payload alias p.
func DecodeBatch(p []byte) (Batch, error) {
	var b Batch
	err := DecodeBatchInto(p, &b)
	return b, err
}

// DecodeBatchInto is DecodeBatch with the room of b.Rows used again.
func DecodeBatchInto(p []byte, b *Batch) error {
	h, rows := openBatch(p)
	if err := rows.r.err; err != nil {
		return err
	}
	if b.Stream != string(h.stream) {
		b.Stream = string(h.stream)
	}
	if b.Producer != string(h.producer) {
		b.Producer = string(h.producer)
	}
	b.First, b.Sequence = h.first, h.sequence
	if cap(b.Rows) < h.rows {
		b.Rows = make([]Row, h.rows)
	}
	b.Rows = b.Rows[:h.rows]
	for i := range b.Rows {
		rows.Next(&b.Rows[i])
	}
	return rows.Err()
}

// BatchSpan reads only what a scan needs of a batch frame's payload.
func BatchSpan(p []byte) (stream string, first Seq, rows int, err error) {
	r := newReader(p, "batch")
	h := readBatchHead(&r)
	return string(h.stream), h.first, h.rows, r.err
}
