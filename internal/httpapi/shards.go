package httpapi

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/segment"
)

// ofShard serves a route of a chain: the shard of the path, in this process's epoch or
// in the one of ?epoch=.
type ofShard func(w http.ResponseWriter, r *http.Request, chain segment.Chain) error

func (s *server) onShard(serve ofShard) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		chain, err := s.chainOf(r)
		if err == nil {
			err = serve(w, r, chain)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	}
}

func (s *server) chainOf(r *http.Request) (segment.Chain, error) {
	c := segment.Chain{Epoch: s.Epoch}
	text := r.PathValue("shard")
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || strings.HasPrefix(text, "+") {
		return c, fmt.Errorf("%w: shard %q: give its number", errBadRequest, text)
	}
	c.Shard = segment.Shard(n)
	if text := r.URL.Query().Get("epoch"); text != "" {
		e, err := strconv.ParseUint(text, 10, 32)
		if err != nil || e == 0 {
			return c, fmt.Errorf("%w: epoch=%q: give a number from 1", errBadRequest, text)
		}
		c.Epoch = segment.Epoch(e)
	}
	return c, nil
}

// mine says whether a chain is of the epoch that the writer serves; others are closed
// (or not open yet), and what stands in the catalog is all there is of them.
func (s *server) mine(c segment.Chain) bool { return s.Writer != nil && c.Epoch == s.Epoch }

func (s *server) source(c segment.Chain) ShardSource {
	src := ShardSource{Cold: s.Reader, Catalog: s.Catalog}
	if s.mine(c) {
		src.Local = s.Writer
	}
	return src
}

// shardRows streams NDJSON as a stream's read does, all streams of a shard in its order.
func (s *server) shardRows(w http.ResponseWriter, r *http.Request, c segment.Chain) error {
	b, err := asksOf(r, c.Epoch)
	if err != nil {
		return err
	}
	if b.from != (segment.Pos{}) && b.from.Epoch != c.Epoch || b.to != (segment.Pos{}) && b.to.Epoch != c.Epoch {
		return fmt.Errorf("%w: the token is of another epoch than the shard's %d: give epoch=", errBadRequest, c.Epoch)
	}
	if b.follow {
		s.follow(w, r, &chainSource{server: s, of: c}, b)
		return nil
	}
	s.reading(func(w http.ResponseWriter, r *http.Request) {
		s.servedBy(w, c)
		rows := coldload.Checked(s.source(c).Rows(r.Context(), c, b.from.Seq, b.to.Seq), b.token, func(tok segment.Token) error {
			return s.Reader.CheckShard(r.Context(), c.Shard, tok)
		})
		s.stream(w, r, b.limit, rowSeq{rows: rows})
	}).ServeHTTP(w, r)
	return nil
}
