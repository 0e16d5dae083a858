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
// A segment that was absorbed and unlinked in between sends the reader back to the bucket.
func (s *server) rows(ctx context.Context, stream string, from, to segment.Pos) iter.Seq2[coldload.Row, error] {
	return func(yield func(coldload.Row, error) bool) {
		next := from
		// deliver passes rows on and says whether the caller wants more.
		deliver := func(rows iter.Seq2[coldload.Row, error]) (bool, error) {
			for row, err := range rows {
				if err != nil {
					return true, err
				}
				if !yield(row, nil) {
					return false, nil
				}
				next = row.Pos().Next()
			}
			return true, nil
		}
		for range maxTurns {
			more, err := deliver(s.Reader.Rows(ctx, stream, next, to))
			unknown := errors.Is(err, catalog.ErrNotFound) // nothing of it is absorbed yet
			if !more {
				return
			}
			if err != nil && !unknown {
				yield(coldload.Row{}, err)
				return
			}
			if s.Writer == nil {
				if unknown {
					yield(coldload.Row{}, err)
				}
				return
			}
			before := next
			more, localErr := deliver(s.Writer.Read(ctx, stream, next, to))
			switch {
			case !more:
				return
			case errors.Is(localErr, localtier.ErrNotLocal):
				continue
			case errors.Is(localErr, localtier.ErrNotOwner), localErr == nil:
				if unknown && next == before {
					yield(coldload.Row{}, err)
				}
				return
			default:
				yield(coldload.Row{}, localErr)
				return
			}
		}
		yield(coldload.Row{}, fmt.Errorf("%w: local segments went faster than they could be read; try again", catalog.ErrUnavailable))
	}
}

// maxTurns bounds how often a reader is sent back to the bucket.
const maxTurns = 10
