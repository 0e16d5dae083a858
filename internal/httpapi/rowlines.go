package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/strandline/strandline/segment"
)

// noTime is of rows that say none: they get the time of their append. A row may not say
// it, for no time that JSON has lies there.
const noTime = math.MinInt64

// rowBytes is what a row takes beside its payload.
const rowBytes = int64(unsafe.Sizeof(segment.Row{}))

// rowsOf is a body's rows. What splitting and appending it takes counts in held: the rows, once
// more the body, for the frames that the log makes of it, and of NDJSON once again, for
// payloads that are written otherwise there.
func rowsOf(contentType string, body []byte, held *room) ([]segment.Row, error) {
	kind, _, _ := mime.ParseMediaType(contentType) // none: raw
	ndjson := kind == ndjsonType
	lines, err := countRows(body)
	if err != nil {
		return nil, err
	}
	extra := int64(lines)*rowBytes + int64(len(body))
	if ndjson {
		extra += int64(len(body))
	}
	if err := held.grow(held.held + extra); err != nil {
		return nil, err
	}
	return parseRows(ndjson, body, lines)
}

func countRows(body []byte) (int, error) {
	lines := bytes.Count(body, []byte{'\n'})
	if len(body) > 0 && body[len(body)-1] != '\n' {
		lines++
	}
	switch {
	case lines == 0:
		return 0, fmt.Errorf("%w: the body has no rows; a row a line", errBadRequest)
	case lines > MaxRows:
		return 0, fmt.Errorf("%w: %d rows; a request holds at most %d, send them in several", errTooManyRows, lines, MaxRows)
	}
	return lines, nil
}

// parseRows splits a body: a row a line. As NDJSON a line is {"payload": "...",
// "ts": RFC 3339, "txn": "..."}, with payload_base64 and txn_base64 for what is no text;
// otherwise the line is the payload. Rows refer to the body, and may change it.
func parseRows(ndjson bool, body []byte, lines int) ([]segment.Row, error) {
	rows := make([]segment.Row, lines)
	for n := range rows {
		line, rest, _ := bytes.Cut(body, []byte{'\n'})
		body = rest
		rows[n].Time = noTime
		if !ndjson {
			rows[n].Payload = line
		} else if !plainLine(line, &rows[n]) {
			if err := decodeLine(line, &rows[n]); err != nil {
				return nil, fmt.Errorf("%w: line %d: %w", errBadRequest, n+1, err)
			}
		}
	}
	return rows, nil
}

// jsonRow is an NDJSON row as it is written.
type jsonRow struct {
	Payload *string    `json:"payload"`
	Base64  []byte     `json:"payload_base64"`
	Time    *time.Time `json:"ts"`
	Txn     string     `json:"txn"`
	TxnB64  []byte     `json:"txn_base64"`
}

// decodeLine reads one NDJSON row, however it is written. What JSON would change silently is refused: a
// row's bytes are the client's.
func decodeLine(line []byte, row *segment.Row) error {
	if !utf8.Valid(line) {
		return errors.New("not UTF-8; give the payload as payload_base64")
	}
	var in jsonRow
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); errors.Is(err, io.EOF) {
		return errors.New("an empty line")
	} else if err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something stands behind the row; a row a line")
	}
	if err := in.bytes(row); err != nil {
		return err
	}
	if in.Payload != nil && replaced(line, *in.Payload+in.Txn) || in.Payload == nil && replaced(line, in.Txn) {
		return errors.New("half a surrogate pair; give the payload as payload_base64")
	}
	if in.Time != nil {
		row.Time = in.Time.UnixNano()
		if !time.Unix(0, row.Time).Equal(*in.Time) || row.Time == noTime {
			return fmt.Errorf("ts %s: a time is between the years 1678 and 2262", in.Time.Format(time.RFC3339))
		}
	}
	return nil
}

// bytes takes payload and transaction in the one form in which each is given.
func (in *jsonRow) bytes(row *segment.Row) error {
	switch {
	case in.Payload != nil && in.Base64 != nil:
		return errors.New("give payload or payload_base64, not both")
	case in.Payload != nil:
		row.Payload = []byte(*in.Payload)
	case in.Base64 != nil:
		row.Payload = in.Base64
	default:
		return errors.New("no payload")
	}
	if in.Txn != "" && in.TxnB64 != nil {
		return errors.New("give txn or txn_base64, not both")
	}
	row.Txn = []byte(in.Txn)
	if in.TxnB64 != nil {
		row.Txn = in.TxnB64
	}
	return nil
}

// replaced says whether decoding put more U+FFFD into text than the line has: that
// is what becomes of half a surrogate pair.
func replaced(line []byte, text string) bool {
	const mark = "\uFFFD"
	n := strings.Count(text, mark)
	return n > 0 && n > bytes.Count(line, []byte(mark))+bytes.Count(bytes.ToLower(line), []byte(`\ufffd`))
}
