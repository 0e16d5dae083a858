package client

import (
	"bytes"
	"encoding/base64"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/strandline/strandline/segment"
)

// The content types of rows.
const (
	rawType    = "text/plain"
	ndjsonType = "application/x-ndjson"
)

// body is rows as they are sent.
type body struct {
	kind     string
	bytes    []byte
	encoding Encoding // Identity: bytes are as they are
	plain    func() ([]byte, error)
}

// bodies encodes rows. Its room is used again only where no request can still be reading it.
type bodies struct {
	encoding Encoding
	room     sync.Pool // *[]byte
	once     sync.Once
	zstd     *zstd.Encoder
	err      error
}

// of encodes rows, compressed if that pays. from is the least size that is tried.
func (b *bodies) of(rows []segment.Row, exact bool, from int, plain bool) (body, error) {
	room, _ := b.room.Get().(*[]byte)
	if room == nil {
		room = new([]byte)
	}
	kind, raw := encodeRows((*room)[:0], rows, exact)
	if plain || b.encoding == Identity || len(raw) < from {
		return body{kind: kind, bytes: raw, encoding: Identity}, nil
	}
	small, err := b.pack(raw)
	if err != nil {
		return body{}, err
	}
	if len(small) > len(raw)-len(raw)/8 { // not worth the server's time
		return body{kind: kind, bytes: raw, encoding: Identity}, nil
	}
	*room = raw
	b.room.Put(room)
	return body{kind: kind, bytes: small, encoding: b.encoding, plain: func() ([]byte, error) {
		_, again := encodeRows(nil, rows, exact)
		return again, nil
	}}, nil
}

func (b *bodies) pack(raw []byte) ([]byte, error) {
	if b.encoding == Gzip {
		var out bytes.Buffer
		z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
		if err != nil {
			return nil, err
		}
		if _, err := z.Write(raw); err != nil {
			return nil, err
		}
		err = z.Close() // the last bytes are written here
		return out.Bytes(), err
	}
	b.once.Do(func() {
		// Without a destination it has no goroutines, and EncodeAll may be called at once from many.
		b.zstd, b.err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(true))
	})
	if b.err != nil {
		return nil, b.err
	}
	return b.zstd.EncodeAll(raw, make([]byte, 0, len(raw)/3)), nil
}

// encodeRows writes raw lines if that loses nothing, else NDJSON.
func encodeRows(dst []byte, rows []segment.Row, exact bool) (kind string, out []byte) {
	if !exact && allRaw(rows) {
		for i := range rows {
			dst = append(append(dst, rows[i].Payload...), '\n')
		}
		return rawType, dst
	}
	for i := range rows {
		dst = appendLine(dst, &rows[i], exact)
	}
	return ndjsonType, dst
}

// allRaw: a line is a payload only of rows that have nothing else, and no line end.
func allRaw(rows []segment.Row) bool {
	for i := range rows {
		if rows[i].Time != 0 || len(rows[i].Txn) > 0 || bytes.IndexByte(rows[i].Payload, '\n') >= 0 {
			return false
		}
	}
	return true
}

// appendLine writes a row so that it comes back byte for byte.
func appendLine(dst []byte, r *segment.Row, exact bool) []byte {
	dst = append(dst, '{')
	if exact || r.Time != 0 {
		dst = append(dst, `"ts":"`...)
		dst = time.Unix(0, r.Time).UTC().AppendFormat(dst, time.RFC3339Nano)
		dst = append(dst, `",`...)
	}
	if len(r.Txn) > 0 {
		dst = append(appendField(dst, "txn", r.Txn), ',')
	}
	return append(appendField(dst, "payload", r.Payload), '}', '\n')
}

// appendField writes text as it is, and other bytes in base64.
func appendField(dst []byte, name string, b []byte) []byte {
	dst = append(append(dst, '"'), name...)
	if utf8.Valid(b) {
		return appendString(append(dst, `":`...), b)
	}
	dst = base64.StdEncoding.AppendEncode(append(dst, `_base64":"`...), b)
	return append(dst, '"')
}

const hex = "0123456789abcdef"

// appendString writes valid UTF-8 as a JSON string.
func appendString(dst, b []byte) []byte {
	dst = append(dst, '"')
	from := 0
	for i, c := range b {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, b[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, b[from:]...), '"')
}
