package httpapi

import (
	"bytes"
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/strandline/strandline/segment"
)

// Nearly every NDJSON row is an object of a few strings, each name once. plainLine reads
// those without reflection and, as far as nothing is escaped, without a copy: measured, a
// row of 200 bytes takes a twelfth of what encoding/json takes. It says no to whatever is
// not plain, before it has changed anything, and decodeLine judges that.

// textSpan is a JSON string between its quotes.
type textSpan struct {
	raw     []byte
	given   bool
	escaped bool
}

// plainRow is the strings of a row.
type plainRow struct{ payload, base64, ts, txn, txnBase64 textSpan }

func (p *plainRow) field(name []byte) *textSpan {
	switch string(name) {
	case "payload":
		return &p.payload
	case "ts":
		return &p.ts
	case "txn":
		return &p.txn
	case "payload_base64":
		return &p.base64
	case "txn_base64":
		return &p.txnBase64
	}
	return nil
}

// plainLine is decodeLine for a line that is plain; false: it is not, or not right. The row
// refers to the line, whose escapes are resolved in place.
func plainLine(line []byte, row *segment.Row) bool {
	var p plainRow
	if !utf8.Valid(line) || !p.scan(line) || p.payload.given == p.base64.given || p.txn.given && p.txnBase64.given {
		return false
	}
	if p.base64.escaped || p.txnBase64.escaped || p.ts.escaped {
		return false
	}
	if p.ts.given {
		var t time.Time
		if t.UnmarshalText(p.ts.raw) != nil {
			return false
		}
		if row.Time = t.UnixNano(); !time.Unix(0, row.Time).Equal(t) || row.Time == noTime {
			row.Time = noTime
			return false
		}
	}
	payload, txn := p.payload.raw, p.txn.raw
	if p.base64.given && !decode64(p.base64.raw, &payload) || p.txnBase64.given && !decode64(p.txnBase64.raw, &txn) {
		row.Time = noTime
		return false
	}
	// From here on the line is changed, and nothing can be wrong any more.
	if p.payload.escaped {
		payload = unescape(payload)
	}
	if p.txn.escaped {
		txn = unescape(txn)
	}
	row.Payload, row.Txn = payload, txn
	return true
}

func decode64(raw []byte, to *[]byte) bool {
	out := make([]byte, base64.StdEncoding.DecodedLen(len(raw)))
	n, err := base64.StdEncoding.Decode(out, raw)
	*to = out[:n]
	return err == nil
}

// scan finds the members of {"name": "text", …}.
func (p *plainRow) scan(b []byte) bool {
	b, ok := after(b, '{')
	for ok {
		var name, text textSpan
		if name, b, ok = scanText(b); !ok || name.escaped {
			return false
		}
		if b, ok = after(b, ':'); !ok {
			return false
		}
		to := p.field(name.raw)
		if text, b, ok = scanText(b); !ok || to == nil || to.given {
			return false
		}
		*to = text
		if rest, end := after(b, '}'); end {
			return len(bytes.TrimLeft(rest, " \t\r")) == 0
		}
		b, ok = after(b, ',')
	}
	return false
}

// after is what stands behind white space and c.
func after(b []byte, c byte) ([]byte, bool) {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	if len(b) == 0 || b[0] != c {
		return nil, false
	}
	return b[1:], true
}

// scanText reads a string whose escapes unescape knows.
func scanText(b []byte) (t textSpan, rest []byte, ok bool) {
	if b, ok = after(b, '"'); !ok {
		return t, nil, false
	}
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			t.raw, t.given = b[:i:i], true
			return t, b[i+1:], true
		case c < ' ':
			return t, nil, false
		case c == '\\':
			t.escaped = true
			n := escapeLen(b[i:])
			if n == 0 {
				return t, nil, false
			}
			i += n - 1
		}
	}
	return t, nil, false
}

// short are the escapes of one letter and what they stand for.
var short = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escapeLen is the length of the escape that b begins with; 0: it is not plain. Surrogates
// are decodeLine's.
func escapeLen(b []byte) int {
	switch {
	case len(b) < 2:
		return 0
	case short[b[1]] != 0:
		return 2
	case b[1] != 'u' || len(b) < 6:
		return 0
	}
	if r, ok := hex4(b[2:6]); !ok || 0xd800 <= r && r < 0xe000 {
		return 0
	}
	return 6
}

func hex4(b []byte) (r rune, ok bool) {
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape resolves the escapes of a text that scanText took, in place: none is shorter
// than what it stands for.
func unescape(b []byte) []byte {
	out := b[:0]
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return append(out, b...)
		}
		out = append(out, b[:i]...)
		n := escapeLen(b[i:])
		if n == 2 {
			out = append(out, short[b[i+1]])
		} else {
			r, _ := hex4(b[i+2 : i+6])
			out = utf8.AppendRune(out, r)
		}
		b = b[i+n:]
	}
	return out
}
