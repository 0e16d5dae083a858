package httpapi

import (
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// pull streams the rows after a consumer's cursor, each with its token. The cursor stays.
func (s *server) pull(w http.ResponseWriter, r *http.Request, c segment.Chain) error {
	limit, err := pullLimit(r.URL.Query())
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	if !s.mine(c) {
		got, err := s.consumer(r.Context(), c, name)
		if err != nil {
			return err
		}
		s.stream(w, r, limit, shardLines(s.source(c).Rows(r.Context(), c, got.Cursor+1, 0)))
		return nil
	}
	rows, err := s.Writer.Pull(r.Context(), c.Shard, name, limit)
	var notLocal *localtier.NotLocalError
	if errors.As(err, &notLocal) {
		// Pull made the consumer if there was none. What is before its local rows is in the bucket.
		got, err := s.consumer(r.Context(), c, name)
		if err != nil {
			return err
		}
		s.stream(w, r, limit, s.withTokens(c, s.source(c).Rows(r.Context(), c, got.Cursor+1, 0)))
		return nil
	}
	if err != nil {
		return err
	}
	s.stream(w, r, limit, s.withTokens(c, func(yield func(coldload.ShardRow, error) bool) {
		for _, row := range rows {
			if !yield(coldload.ShardRow{Stream: row.Stream, Epoch: c.Epoch, Row: row.Row}, nil) {
				return
			}
		}
	}))
	return nil
}

// withTokens adds to each row the token under this owner's term.
func (s *server) withTokens(c segment.Chain, rows iter.Seq2[coldload.ShardRow, error]) iter.Seq2[Line, error] {
	tok := segment.Token{Epoch: c.Epoch, Term: s.terms[c.Shard]}
	return func(yield func(Line, error) bool) {
		for l, err := range shardLines(rows) {
			if tok.Seq = l.Seq; err == nil {
				l.Token = tok.String()
			}
			if !yield(l, err) {
				return
			}
		}
	}
}

func pullLimit(q url.Values) (int, error) {
	text := q.Get("limit")
	if text == "" {
		return defaultPull, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxPull {
		return 0, fmt.Errorf("%w: limit=%q: give 1 to %d", errBadRequest, text, MaxPull)
	}
	return n, nil
}
