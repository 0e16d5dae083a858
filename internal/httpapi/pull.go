package httpapi

import (
	"errors"
	"net/http"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// pull streams the rows after a consumer's cursor, each with its token. The cursor stays.
func (s *server) pull(w http.ResponseWriter, r *http.Request, c segment.Chain) error {
	limit, err := limitOf(r.URL.Query().Get("limit"), defaultPull, MaxPull)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	if !s.mine(c) {
		got, err := s.consumer(r.Context(), c, name)
		if err != nil {
			return err
		}
		s.stream(w, r, limit, rowSeq{rows: s.source(c).Rows(r.Context(), c, got.Cursor+1, 0)})
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
		s.stream(w, r, limit, rowSeq{rows: s.source(c).Rows(r.Context(), c, got.Cursor+1, 0), term: s.term(c)})
		return nil
	}
	if err != nil {
		return err
	}
	s.stream(w, r, limit, rowSeq{term: s.term(c), rows: func(yield func(coldload.ShardRow, error) bool) {
		for _, row := range rows {
			if !yield(coldload.ShardRow{Stream: row.Stream, Epoch: c.Epoch, Row: row.Row}, nil) {
				return
			}
		}
	}})
	return nil
}

// term is the one that this owner gives its rows' tokens of.
func (s *server) term(c segment.Chain) segment.Term {
	if t := s.Tail.owner(c); t != nil {
		return t.terms[c.Shard]
	}
	return 0
}
