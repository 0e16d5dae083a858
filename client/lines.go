package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/strandline/strandline/segment"
)

// The headers of a read: the chain's term that its owner knows rows in.
const (
	termHeader  = "Strandline-Term"
	epochHeader = "Strandline-Epoch"
)

// maxLine bounds one line: a row of 16 MiB, each byte of it escaped sixfold.
const maxLine = 6*segment.MaxFrameBytes + 4096

// readRoom is read at once.
const readRoom = 64 << 10

var (
	// errEnd: the body ended, whole.
	errEnd = errors.New("end")
	// errAlive: a heartbeat.
	errAlive = errors.New("heartbeat")
)

// lines reads the NDJSON of one answer.
type lines struct {
	in     *bufio.Reader
	a      *answer
	epoch  segment.Epoch // with term: that of the answer's headers
	term   segment.Term
	long   []byte // a line that is longer than in's room
	guard  *time.Timer
	silent time.Duration
}

// newLines reads an answer. silence 0: it may take its time.
func newLines(a *answer, silence time.Duration) *lines {
	l := &lines{in: bufio.NewReaderSize(a.lines, readRoom), a: a, silent: silence}
	e, err1 := strconv.ParseUint(a.header.Get(epochHeader), 10, 32)
	t, err2 := strconv.ParseUint(a.header.Get(termHeader), 10, 64)
	if err1 == nil && err2 == nil {
		l.epoch, l.term = segment.Epoch(e), segment.Term(t)
	}
	if silence > 0 {
		l.guard = time.AfterFunc(silence, a.cut)
	}
	return l
}

func (l *lines) stop() {
	if l.guard != nil {
		l.guard.Stop()
	}
}

// wireLine is a row, or the problem that ends a body.
type wireLine struct {
	Stream  string          `json:"stream"`
	Epoch   segment.Epoch   `json:"epoch"`
	Seq     segment.Seq     `json:"seq"`
	Time    time.Time       `json:"ts"`
	Txn     string          `json:"txn"`
	TxnB64  []byte          `json:"txn_base64"`
	Payload *string         `json:"payload"`
	Base64  []byte          `json:"payload_base64"`
	Token   string          `json:"token"`
	Error   json.RawMessage `json:"error"`
}

// next is the next row, errAlive, errEnd, a *Problem that the server ended the body with,
// ErrCut, or ErrAnswer.
func (l *lines) next() (Row, error) {
	text, err := l.line()
	if l.guard != nil {
		l.guard.Reset(l.silent)
	}
	switch {
	case err != nil:
		return Row{}, err
	case len(bytes.TrimSpace(text)) == 0:
		return Row{}, errAlive
	}
	var w wireLine
	if err := json.Unmarshal(text, &w); err != nil {
		return Row{}, fmt.Errorf("%w: %s: a line that is no JSON: %.100q", ErrAnswer, l.a.server, text)
	}
	if w.Error != nil {
		p := problemOf(l.a.server, 0, l.a.header, w.Error)
		p.Status = statusIn(w.Error)
		return Row{}, p
	}
	return l.row(&w)
}

// statusIn is the status that a problem says of itself: the answer's own was 200 by then.
func statusIn(text []byte) int {
	var p struct{ Status int }
	_ = json.Unmarshal(text, &p) // 0 is what no status is
	return p.Status
}

func (l *lines) row(w *wireLine) (Row, error) {
	r := Row{Stream: w.Stream, Epoch: w.Epoch}
	r.Seq, r.Time, r.Txn, r.Payload = w.Seq, w.Time.UnixNano(), w.TxnB64, w.Base64
	if w.Txn != "" {
		r.Txn = []byte(w.Txn)
	}
	if w.Payload != nil {
		r.Payload = []byte(*w.Payload)
	}
	if w.Seq == 0 || w.Epoch == 0 {
		return r, fmt.Errorf("%w: %s: a row without a position", ErrAnswer, l.a.server)
	}
	if tok, err := segment.ParseToken(w.Token); err == nil {
		r.Term = tok.Term
	} else if w.Token == "" && w.Epoch == l.epoch {
		r.Term = l.term
	}
	return r, nil
}

// line is one line without its end. A body that ends within a line, or is cut, is ErrCut.
func (l *lines) line() ([]byte, error) {
	l.long = l.long[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		switch {
		case err == nil && len(l.long) == 0:
			return part[:len(part)-1], nil
		case err == nil:
			return append(l.long, part[:len(part)-1]...), nil
		case errors.Is(err, bufio.ErrBufferFull) && len(l.long) < maxLine:
			l.long = append(l.long, part...)
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("%w: %s: a line of more than %d bytes", ErrAnswer, l.a.server, maxLine)
		case errors.Is(err, io.EOF) && len(part)+len(l.long) == 0:
			return nil, errEnd
		default:
			return nil, fmt.Errorf("%w: %s: %w", ErrCut, l.a.server, err)
		}
	}
}
