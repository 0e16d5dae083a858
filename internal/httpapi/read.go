package httpapi

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/access"
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
	TxnB64  []byte        `json:"txn_base64,omitempty"` // when it is not UTF-8
	Payload *string       `json:"payload,omitempty"`
	Base64  []byte        `json:"payload_base64,omitempty"` // when the payload is not UTF-8
	Token   string        `json:"token,omitempty"`          // of rows that a consumer pulled: what it acknowledges
}

// LineOf turns a row into its line.
func LineOf(stream string, row *coldload.Row) Line {
	l := Line{
		Stream: stream, Epoch: row.Epoch, Seq: row.Seq,
		Time: time.Unix(0, row.Row.Time).UTC(),
	}
	if utf8.Valid(row.Txn) {
		l.Txn = string(row.Txn)
	} else {
		l.TxnB64 = row.Txn
	}
	if utf8.Valid(row.Payload) {
		p := string(row.Payload)
		l.Payload = &p
	} else {
		l.Base64 = row.Payload
	}
	return l
}

// read streams NDJSON, or follows. An error after the first row ends the body with a line
// {"error": problem}: a body without it is complete.
func (s *server) read(w http.ResponseWriter, r *http.Request) {
	stream := r.PathValue("stream")
	b, err := asksOf(r, s.Epoch)
	if err == nil {
		err = checkName(stream)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if b.follow {
		s.follow(w, r, &streamSource{server: s, name: stream}, b)
		return
	}
	s.reading(func(w http.ResponseWriter, r *http.Request) {
		s.servedBy(w, segment.Chain{Epoch: s.Epoch, Shard: segment.ShardOf(stream, max(s.Shards, 1))})
		rows := coldload.Checked(s.rows(r.Context(), stream, b.from, b.to), b.token, func(tok segment.Token) error {
			return s.Reader.Check(r.Context(), stream, tok)
		})
		s.stream(w, r, b.limit, rowSeq{rows: streamRows(stream, rows)})
	}).ServeHTTP(w, r)
}

func streamRows(stream string, rows iter.Seq2[coldload.Row, error]) iter.Seq2[coldload.ShardRow, error] {
	return func(yield func(coldload.ShardRow, error) bool) {
		for row, err := range rows {
			if !yield(coldload.ShardRow{Stream: stream, Epoch: row.Epoch, Row: row.Row}, err) {
				return
			}
		}
	}
}

// rowSeq is rows to send, each with the token of this term; the zero term: with none.
type rowSeq struct {
	rows iter.Seq2[coldload.ShardRow, error]
	term segment.Term
}

func (q *rowSeq) token(row *coldload.ShardRow) string {
	if q.term == 0 {
		return ""
	}
	return segment.Token{Epoch: row.Epoch, Term: q.term, Seq: row.Seq}.String()
}

// stream writes lines until there are no more, the limit is met, or one is an error.
func (s *server) stream(w http.ResponseWriter, r *http.Request, limit int, all rowSeq) {
	if err := mustAccept(r.Header, ndjsonType, jsonType); err != nil {
		s.fail(w, r, err)
		return
	}
	if r.Method == http.MethodHead {
		limit = 1 // whether it can be read, and not all of it for nothing
	}
	out := newRowWriter(w)
	sent := 0
	for row, err := range all.rows {
		if cause := context.Cause(r.Context()); err != nil && errors.Is(cause, access.ErrRevoked) {
			err = cause // whatever a read that is cut calls it
		}
		if err != nil && sent == 0 {
			s.fail(w, r, err)
			return
		}
		if sent == 0 {
			w.Header().Set("Content-Type", ndjsonType)
		}
		if err != nil {
			p := problemOf(err)
			p.RequestID = requestID(w)
			s.log(w, r, p, err)
			out.buf = append(append(out.buf, errorLine(p)...), '\n')
			break
		}
		out.buf = appendLine(out.buf, &row, all.token(&row))
		if out.full() != nil {
			return // the client is gone
		}
		if sent++; sent == limit {
			break
		}
	}
	if sent == 0 {
		w.Header().Set("Content-Type", ndjsonType)
		w.WriteHeader(http.StatusOK)
	}
	_ = out.write() // the client may be gone
}

// checkName accepts the names that may be read: the reserved ones, too.
func checkName(stream string) error {
	if err := segment.CheckStream(stream); err != nil && segment.CheckReserved(stream) != nil {
		return err
	}
	return nil
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
	known  bool // the catalog has the stream, or a row of it was delivered
	// deleted is what the bucket said of a stream that was asked for from its first row on;
	// rows that were appended to it again may be local.
	deleted error
}

// maxTurns bounds how often a reader is sent back to the bucket.
const maxTurns = 10

func (m *mixed) run(ctx context.Context) error {
	for range maxTurns {
		if err := m.cold(ctx); err != nil || m.over {
			return err
		}
		if m.Writer == nil {
			return m.unknown(nil)
		}
		if err := m.begin(ctx); err != nil {
			return err
		}
		err := m.deliver(m.local(ctx, m.stream, m.next, m.to))
		var notLocal *localtier.NotLocalError
		switch {
		case m.over:
			return nil
		case errors.As(err, &notLocal):
			// What is not local any more was absorbed, before this look at the bucket.
			if err := m.cold(ctx); err != nil || m.over {
				return err
			}
			if p := (segment.Pos{Epoch: m.Epoch, Seq: notLocal.First}); m.next.Less(p) {
				m.next = p // the bucket had all below it
			}
		case err == nil:
			return m.unknown(nil)
		case errors.Is(err, localtier.ErrNotOwner):
			return m.unknown(err) // its owner may know it
		default:
			return err
		}
	}
	return fmt.Errorf("%w: local segments went faster than they could be read; try again", catalog.ErrUnavailable)
}

// unknown is the answer if neither bucket nor writer has the stream.
func (m *mixed) unknown(otherwise error) error {
	switch {
	case m.known:
		return nil
	case m.deleted != nil:
		return m.deleted
	case otherwise != nil:
		return otherwise
	}
	return fmt.Errorf("stream %q: %w", m.stream, catalog.ErrNotFound)
}

// begin puts a read that comes from before the writer's epoch at its first live position
// there, which local files do not know: the bucket had all of the epochs before.
func (m *mixed) begin(ctx context.Context) error {
	if m.next.Epoch >= m.Epoch {
		return nil
	}
	p, err := m.Catalog.Plan(ctx, catalog.PlanRequest{Stream: m.stream, From: segment.Pos{Epoch: m.Epoch, Seq: 1}, Limit: 1})
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	if m.next.Less(p.LiveFrom) {
		m.next = p.LiveFrom
	}
	return err
}

// cold delivers what the bucket has; of a stream that nothing is absorbed of, nothing.
func (m *mixed) cold(ctx context.Context) error {
	if m.to != (segment.Pos{}) && m.to.Less(m.next) {
		return nil // all delivered
	}
	err := m.deliver(m.Reader.Rows(ctx, m.stream, m.next, m.to))
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	if gone := (*coldload.ReadError)(nil); m.Writer != nil && m.next == (segment.Pos{}) && errors.Is(err, coldload.ErrDeleted) && errors.As(err, &gone) {
		m.deleted, m.next = err, gone.First
		return nil
	}
	m.known = m.known || err == nil && m.deleted == nil
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
		m.next, m.known = row.Pos().Next(), true
	}
	return nil
}

// local reads from the writer, which knows only its own epoch.
func (s *server) local(ctx context.Context, stream string, from, to segment.Pos) iter.Seq2[coldload.Row, error] {
	return func(yield func(coldload.Row, error) bool) {
		if to != (segment.Pos{}) && (to.Epoch < s.Epoch || to.Less(from)) {
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
