package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// Appended is the answer to an append.
type Appended struct {
	Stream string        `json:"stream"`
	Epoch  segment.Epoch `json:"epoch"`
	Shard  segment.Shard `json:"shard"`
	Term   segment.Term  `json:"term"`
	First  segment.Seq   `json:"first"`
	Last   segment.Seq   `json:"last"`
	Rows   int           `json:"rows"`
}

// append takes one body as one append call: all of its rows get consecutive seqs
// and are durable when the answer comes, or none is acknowledged.
func (s *server) append(w http.ResponseWriter, r *http.Request) {
	if s.Writer == nil {
		writeProblem(w, problem{Status: http.StatusNotImplemented, Code: "read-only", Title: "this process takes no rows"})
		return
	}
	ack := localtier.Ack(r.URL.Query().Get("ack"))
	if ack != localtier.AckDefault && ack != localtier.AckLocal && ack != localtier.AckShared {
		s.fail(w, r, fmt.Errorf("%w: ack=%s: give local or shared", errBadRequest, ack))
		return
	}
	body, err := readBody(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	rows, err := parseRows(r.Header.Get("Content-Type"), body, time.Now())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	stream := r.PathValue("stream")
	res, err := s.Writer.Append(r.Context(), stream, rows, ack)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, http.StatusOK, Appended{
		Stream: stream, Epoch: res.Epoch, Shard: res.Shard, Term: res.Term,
		First: res.First, Last: res.Last, Rows: len(rows),
	})
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	var buf bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= MaxBodyBytes {
		buf.Grow(int(n))
	}
	_, err := io.Copy(&buf, http.MaxBytesReader(w, r.Body, MaxBodyBytes))
	if err != nil {
		return nil, fmt.Errorf("%w: read the body: %w", errBadRequest, err)
	}
	return buf.Bytes(), nil
}

// parseRows splits a body: a row a line. With content type application/x-ndjson a
// line is {"payload": "...", "ts": RFC 3339, "txn": "..."}; otherwise the line is the payload.
func parseRows(contentType string, body []byte, now time.Time) ([]segment.Row, error) {
	kind, _, _ := mime.ParseMediaType(contentType) // none: raw
	rows := make([]segment.Row, 0, bytes.Count(body, []byte{'\n'})+1)
	for n := 1; len(body) > 0; n++ {
		line, rest, _ := bytes.Cut(body, []byte{'\n'})
		body = rest
		row := segment.Row{Time: now.UnixNano(), Payload: line}
		if kind == "application/x-ndjson" {
			if err := decodeLine(line, &row); err != nil {
				return nil, fmt.Errorf("%w: line %d: %w", errBadRequest, n, err)
			}
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: the body has no rows; a row a line", errBadRequest)
	}
	return rows, nil
}

func decodeLine(line []byte, row *segment.Row) error {
	var in struct {
		Payload *string    `json:"payload"`
		Base64  []byte     `json:"payload_base64"`
		Time    *time.Time `json:"ts"`
		Txn     string     `json:"txn"`
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return err
	}
	switch {
	case in.Payload != nil && in.Base64 != nil:
		return fmt.Errorf("give payload or payload_base64, not both")
	case in.Payload != nil:
		row.Payload = []byte(*in.Payload)
	case in.Base64 != nil:
		row.Payload = in.Base64
	default:
		return fmt.Errorf("no payload")
	}
	if in.Time != nil {
		row.Time = in.Time.UnixNano()
	}
	row.Txn = []byte(in.Txn)
	return nil
}
