package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// Line is a row as NDJSON.
type Line struct {
	Stream  string        `json:"stream"`
	Epoch   segment.Epoch `json:"epoch"`
	Seq     segment.Seq   `json:"seq"`
	Time    time.Time     `json:"ts"`
	Txn     string        `json:"txn,omitempty"`
	Payload *string       `json:"payload,omitempty"`
	Base64  []byte        `json:"payload_base64,omitempty"` // when the payload is not UTF-8
}

// LineOf turns a row into its line.
func LineOf(stream string, row *coldload.Row) Line {
	l := Line{
		Stream: stream, Epoch: row.Epoch, Seq: row.Seq,
		Time: time.Unix(0, row.Row.Time).UTC(), Txn: string(row.Txn),
	}
	if utf8.Valid(row.Payload) {
		p := string(row.Payload)
		l.Payload = &p
	} else {
		l.Base64 = row.Payload
	}
	return l
}

// read streams NDJSON. An error after the first row ends the body with a line
// {"error": problem}: a body without it is complete.
func (s *server) read(w http.ResponseWriter, r *http.Request) {
	stream := r.PathValue("stream")
	from, to, limit, err := s.bounds(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	enc := json.NewEncoder(w)
	sent := 0
	for row, err := range s.rows(r.Context(), stream, from, to) {
		if err != nil {
			if sent == 0 {
				s.fail(w, r, err)
				return
			}
			_ = enc.Encode(map[string]problem{"error": problemOf(err)}) // the client may be gone
			return
		}
		if sent == 0 {
			w.Header().Set("Content-Type", "application/x-ndjson")
		}
		if sent == limit || enc.Encode(LineOf(stream, &row)) != nil {
			return
		}
		sent++
	}
	if sent == 0 {
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.WriteHeader(http.StatusOK)
	}
}

func (s *server) bounds(r *http.Request) (from, to segment.Pos, limit int, err error) {
	q := r.URL.Query()
	limit = math.MaxInt
	if from, err = s.position(q.Get("from")); err != nil {
		return from, to, limit, err
	}
	if to, err = s.position(q.Get("to")); err != nil {
		return from, to, limit, err
	}
	if l := q.Get("limit"); l != "" {
		if limit, err = strconv.Atoi(l); err != nil || limit < 1 {
			return from, to, limit, fmt.Errorf("%w: limit=%s: give a number from 1", errBadRequest, l)
		}
	}
	return from, to, limit, nil
}

func (s *server) position(text string) (segment.Pos, error) {
	if text == "" {
		return segment.Pos{}, nil
	}
	seq, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return segment.Pos{}, fmt.Errorf("%w: position %q: give a seq", errBadRequest, text)
	}
	return segment.Pos{Epoch: s.Epoch, Seq: segment.Seq(seq)}, nil
}

// rows reads what is absorbed from the bucket, then what only this writer has yet.
// Between the two, segments are absorbed and unlinked: then the reader goes back to the
// bucket, which by then has everything below the first local seq.
func (s *server) rows(ctx context.Context, stream string, from, to segment.Pos) iter.Seq2[coldload.Row, error] {
	return func(yield func(coldload.Row, error) bool) {
		rd := &mixed{server: s, stream: stream, next: from, to: to, yield: yield}
		if err := rd.run(ctx); err != nil && !rd.over {
			yield(coldload.Row{}, err)
		}
	}
}

// mixed is one read of bucket and local files.
type mixed struct {
	*server
	stream string
	next   segment.Pos // the first position not delivered yet
	to     segment.Pos
	yield  func(coldload.Row, error) bool
	over   bool // the caller's loop ended
}

// maxTurns bounds how often a reader is sent back to the bucket.
const maxTurns = 10

func (m *mixed) run(ctx context.Context) error {
	unknown, err := m.begin(ctx)
	if err != nil {
		return err
	}
	first := m.next
	for range maxTurns {
		var notLocal *localtier.NotLocalError
		if err := m.cold(ctx); err != nil {
			return err
		}
		if m.over || m.Writer == nil {
			return unknown
		}
		err := m.deliver(m.local(ctx, m.stream, m.next, m.to))
		switch {
		case errors.As(err, &notLocal):
			if err := m.cold(ctx); err != nil {
				return err
			}
			if p := (segment.Pos{Epoch: m.Epoch, Seq: notLocal.First}); m.next.Less(p) {
				m.next = p // the bucket had all below it
			}
		case err == nil, errors.Is(err, localtier.ErrNotOwner):
			if m.next == first {
				return unknown
			}
			return nil
		default:
			return err
		}
	}
	return fmt.Errorf("%w: local segments went faster than they could be read; try again", catalog.ErrUnavailable)
}

// begin finds the first live position, which local files do not know. unknown is
// what to answer if the writer has no rows of the stream either.
func (m *mixed) begin(ctx context.Context) (unknown, err error) {
	p, err := m.Plans.Plan(ctx, catalog.PlanRequest{Stream: m.stream, Limit: 1})
	if errors.Is(err, catalog.ErrNotFound) {
		return fmt.Errorf("stream %q: %w", m.stream, err), nil
	}
	if err != nil {
		return nil, err
	}
	if m.next == (segment.Pos{}) {
		m.next = p.LiveFrom
	}
	return nil, nil
}

// cold delivers what the bucket has; of a stream that nothing is absorbed of, nothing.
func (m *mixed) cold(ctx context.Context) error {
	err := m.deliver(m.Reader.Rows(ctx, m.stream, m.next, m.to))
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	return err
}

// deliver passes rows on until there are no more or the caller wants no more.
func (m *mixed) deliver(rows iter.Seq2[coldload.Row, error]) error {
	for row, err := range rows {
		if err != nil {
			return err
		}
		if !m.yield(row, nil) {
			m.over = true
			return nil
		}
		m.next = row.Pos().Next()
	}
	return nil
}

// local reads from the writer, which knows only its own epoch.
func (s *server) local(ctx context.Context, stream string, from, to segment.Pos) iter.Seq2[coldload.Row, error] {
	return func(yield func(coldload.Row, error) bool) {
		if to != (segment.Pos{}) && to.Epoch < s.Epoch {
			return
		}
		first, last := segment.Seq(0), segment.Seq(math.MaxUint64)
		if from.Epoch == s.Epoch {
			first = from.Seq
		}
		if to.Epoch == s.Epoch {
			last = to.Seq
		}
		for row, err := range s.Writer.Read(ctx, stream, first, last) {
			if !yield(coldload.Row{Epoch: s.Epoch, Row: row}, err) {
				return
			}
		}
	}
}
