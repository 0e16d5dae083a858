package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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
	// The positions with the term whose history they belong to: give one to a read's
	// from or after, and it says if the history went on without it.
	FirstToken string `json:"first_token"`
	LastToken  string `json:"last_token"`
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
	producer, err := producerOf(r.URL.Query())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	stream := r.PathValue("stream")
	if err := segment.CheckStream(stream); err != nil {
		s.fail(w, r, err)
		return
	}
	room := bodyRoom(r)
	if !s.bodies.TryAcquire(room) {
		busy(w)
		return
	}
	defer s.bodies.Release(room)
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
	res, err := s.Writer.AppendAs(r.Context(), producer, stream, rows, ack)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, http.StatusOK, Appended{
		Stream: stream, Epoch: res.Epoch, Shard: res.Shard, Term: res.Term,
		First: res.First, Last: res.Last, Rows: len(rows),
		FirstToken: res.Token(res.First).String(), LastToken: res.Token(res.Last).String(),
	})
}

// producerOf reads ?producer=ID&sequence=N: a retry with the same number is answered
// with what the first attempt got.
func producerOf(q url.Values) (p localtier.Producer, err error) {
	if !q.Has("producer") && !q.Has("sequence") {
		return p, nil
	}
	p.ID = q.Get("producer")
	if err := segment.CheckProducer(p.ID); err != nil {
		return p, fmt.Errorf("producer: %w", err)
	}
	text := q.Get("sequence")
	if p.Sequence, err = strconv.ParseUint(text, 10, 64); err != nil || text[0] == '+' {
		return p, fmt.Errorf("%w: sequence=%q: give the producer's own number of this append, one more each time", errBadRequest, text)
	}
	return p, nil
}

// bodyRoom is what a body may take of MaxBodiesBytes.
func bodyRoom(r *http.Request) int64 {
	if n := r.ContentLength; n >= 0 && n < MaxBodyBytes {
		return n
	}
	return MaxBodyBytes
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
// line is {"payload": "...", "ts": RFC 3339, "txn": "..."}, with payload_base64 and txn_base64
// for what is no text; otherwise the line is the payload.
func parseRows(contentType string, body []byte, now time.Time) ([]segment.Row, error) {
	kind, _, _ := mime.ParseMediaType(contentType) // none: raw
	lines := bytes.Count(body, []byte{'\n'})
	if len(body) > 0 && body[len(body)-1] != '\n' {
		lines++
	}
	switch {
	case lines == 0:
		return nil, fmt.Errorf("%w: the body has no rows; a row a line", errBadRequest)
	case lines > MaxRows:
		return nil, fmt.Errorf("%w: %d rows; a request holds at most %d, send them in several", errTooManyRows, lines, MaxRows)
	}
	rows := make([]segment.Row, lines)
	for n := range rows {
		line, rest, _ := bytes.Cut(body, []byte{'\n'})
		body = rest
		rows[n] = segment.Row{Time: now.UnixNano(), Payload: line}
		if kind == "application/x-ndjson" {
			if err := decodeLine(line, &rows[n]); err != nil {
				return nil, fmt.Errorf("%w: line %d: %w", errBadRequest, n+1, err)
			}
		}
	}
	return rows, nil
}

// decodeLine reads one NDJSON row. What JSON would change silently is refused: a
// row's bytes are the client's.
func decodeLine(line []byte, row *segment.Row) error {
	var in struct {
		Payload *string    `json:"payload"`
		Base64  []byte     `json:"payload_base64"`
		Time    *time.Time `json:"ts"`
		Txn     string     `json:"txn"`
		TxnB64  []byte     `json:"txn_base64"`
	}
	if !utf8.Valid(line) {
		return errors.New("not UTF-8; give the payload as payload_base64")
	}
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
	if in.Payload != nil && replaced(line, *in.Payload+in.Txn) || in.Payload == nil && replaced(line, in.Txn) {
		return errors.New("half a surrogate pair; give the payload as payload_base64")
	}
	if in.Time != nil {
		row.Time = in.Time.UnixNano()
		if !time.Unix(0, row.Time).Equal(*in.Time) {
			return fmt.Errorf("ts %s: a time is between the years 1678 and 2262", in.Time.Format(time.RFC3339))
		}
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
