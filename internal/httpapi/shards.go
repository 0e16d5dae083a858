package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// Consumers are the durable consumers of an owner's shards.
type Consumers interface {
	CreateConsumer(ctx context.Context, shard segment.Shard, name string, after segment.Seq) (localtier.ConsumerStatus, error)
	Ack(ctx context.Context, shard segment.Shard, name string, seq segment.Seq) (localtier.ConsumerStatus, error)
	RemoveConsumer(ctx context.Context, shard segment.Shard, name string) error
	Consumers(ctx context.Context, shard segment.Shard) ([]localtier.ConsumerStatus, error)
	Pull(ctx context.Context, shard segment.Shard, name string, limit int) ([]localtier.ShardRow, error)
	Status() []localtier.ShardStatus
}

// ConsumerOut is a consumer for machines.
type ConsumerOut struct {
	Shard  segment.Shard `json:"shard"`
	Name   string        `json:"name"`
	Cursor segment.Seq   `json:"cursor"`
	Lag    uint64        `json:"lag"`
}

// Limits of a pull: what one answer holds.
const (
	defaultPull = 1000
	// MaxPull rows of one pull; its bytes are bounded by the writer.
	MaxPull     = 100_000
	maxAckBytes = 4 << 10
)

func (s *server) shardRoutes(mux *http.ServeMux) {
	const shard = "/v1/shards/{shard}/"
	mux.Handle("GET "+shard+"rows", s.admit(s.onShard(s.shardRows)))
	mux.HandleFunc(shard+"rows", only("GET, HEAD"))
	mux.Handle("GET "+shard+"consumers", s.admit(s.onShard(s.listConsumers)))
	mux.HandleFunc(shard+"consumers", only("GET, HEAD"))
	mux.Handle("GET "+shard+"consumers/{name}", s.admit(s.onShard(s.getConsumer)))
	mux.Handle("PUT "+shard+"consumers/{name}", s.admit(s.onShard(s.putConsumer)))
	mux.Handle("DELETE "+shard+"consumers/{name}", s.admit(s.onShard(s.deleteConsumer)))
	mux.HandleFunc(shard+"consumers/{name}", only("DELETE, GET, HEAD, PUT"))
	mux.Handle("POST "+shard+"consumers/{name}/ack", s.admit(s.onShard(s.ackConsumer)))
	mux.HandleFunc(shard+"consumers/{name}/ack", only("POST"))
	mux.Handle("POST "+shard+"consumers/{name}/pull", s.admit(s.onShard(s.pull)))
	mux.HandleFunc(shard+"consumers/{name}/pull", only("POST"))
}

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
	b, err := boundsOf(r.URL.Query(), c.Epoch)
	if err != nil {
		return err
	}
	if b.from != (segment.Pos{}) && b.from.Epoch != c.Epoch || b.to != (segment.Pos{}) && b.to.Epoch != c.Epoch {
		return fmt.Errorf("%w: the token is of another epoch than the shard's %d: give epoch=", errBadRequest, c.Epoch)
	}
	s.servedBy(w, c)
	rows := Checked(s.source(c).Rows(r.Context(), c, b.from.Seq, b.to.Seq), b.token, func(tok segment.Token) error {
		return s.Reader.CheckShard(r.Context(), c.Shard, tok)
	})
	s.stream(w, r, b.limit, shardLines(rows))
	return nil
}

func shardLines(rows iter.Seq2[coldload.ShardRow, error]) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for row, err := range rows {
			if !yield(LineOf(row.Stream, &coldload.Row{Epoch: row.Epoch, Row: row.Row}), err) {
				return
			}
		}
	}
}

func (s *server) listConsumers(w http.ResponseWriter, r *http.Request, c segment.Chain) error {
	list, err := s.consumersOf(r.Context(), c)
	if err != nil {
		return err
	}
	out := make([]ConsumerOut, len(list))
	for i := range list {
		out[i] = consumerOut(c.Shard, list[i])
	}
	reply(w, http.StatusOK, out)
	return nil
}

// consumersOf asks the owner; of a closed chain the row is the truth.
func (s *server) consumersOf(ctx context.Context, c segment.Chain) ([]localtier.ConsumerStatus, error) {
	if s.mine(c) {
		return s.Writer.Consumers(ctx, c.Shard)
	}
	row, err := s.closedChain(ctx, c)
	if err != nil {
		return nil, err
	}
	out := make([]localtier.ConsumerStatus, len(row.Consumers))
	for i, k := range row.Consumers {
		out[i] = statusIn(&row, k)
	}
	return out, nil
}

func statusIn(row *catalog.ChainRow, k segment.Consumer) localtier.ConsumerStatus {
	last := max(row.NextSeq, 1) - 1
	return localtier.ConsumerStatus{Name: k.Name, Cursor: k.Cursor, Lag: uint64(max(last, k.Cursor) - k.Cursor)}
}

// closedChain is a chain that has no owner any more. One that has is asked there.
func (s *server) closedChain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error) {
	row, err := s.Catalog.Chain(ctx, c)
	if errors.Is(err, catalog.ErrNotFound) {
		return row, fmt.Errorf("%w: there is no chain %s", errBadRequest, c)
	}
	if err == nil && !row.Closed {
		err = &localtier.NotOwnerError{Shard: c.Shard, Owner: row.Address}
	}
	return row, err
}

func consumerOut(shard segment.Shard, c localtier.ConsumerStatus) ConsumerOut {
	return ConsumerOut{Shard: shard, Name: c.Name, Cursor: c.Cursor, Lag: c.Lag}
}

func (s *server) getConsumer(w http.ResponseWriter, r *http.Request, c segment.Chain) error {
	got, err := s.consumer(r.Context(), c, r.PathValue("name"))
	if err != nil {
		return err
	}
	reply(w, http.StatusOK, consumerOut(c.Shard, got))
	return nil
}

func (s *server) consumer(ctx context.Context, c segment.Chain, name string) (localtier.ConsumerStatus, error) {
	list, err := s.consumersOf(ctx, c)
	if err != nil {
		return localtier.ConsumerStatus{}, err
	}
	for _, k := range list {
		if k.Name == name {
			return k, nil
		}
	}
	return localtier.ConsumerStatus{}, fmt.Errorf("%w: %q of chain %s", localtier.ErrNoConsumer, name, c)
}

// owned refuses what only the owner of an open chain can do.
func (s *server) owned(ctx context.Context, c segment.Chain) error {
	if s.mine(c) {
		return nil
	}
	row, err := s.closedChain(ctx, c)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: chain %s is closed: its consumers can be read and acknowledged, not made or removed", errBadRequest, row.Chain)
}

// putConsumer makes a consumer that begins behind ?after= (default: at the oldest row),
// or answers the one that stands.
func (s *server) putConsumer(w http.ResponseWriter, r *http.Request, c segment.Chain) error {
	if err := s.owned(r.Context(), c); err != nil {
		return err
	}
	after, err := s.given(r.Context(), c, "after", r.URL.Query().Get("after"))
	if err != nil {
		return err
	}
	got, err := s.Writer.CreateConsumer(r.Context(), c.Shard, r.PathValue("name"), after)
	if err != nil {
		return err
	}
	reply(w, http.StatusOK, consumerOut(c.Shard, got))
	return nil
}

// given reads a position of a chain: a seq, 0 too, or a token that stands in its history.
func (s *server) given(ctx context.Context, c segment.Chain, name, text string) (segment.Seq, error) {
	if text == "0" {
		return 0, nil
	}
	pos, tok, err := positionOf(name, text, c.Epoch)
	if err != nil {
		return 0, err
	}
	if tok != nil {
		if tok.Epoch != c.Epoch {
			return 0, fmt.Errorf("%w: token %s is of another epoch than chain %s", errBadRequest, tok, c)
		}
		if err := s.Reader.CheckShard(ctx, c.Shard, *tok); err != nil {
			return 0, err
		}
	}
	return pos.Seq, nil
}

func (s *server) deleteConsumer(w http.ResponseWriter, r *http.Request, c segment.Chain) error {
	if err := s.owned(r.Context(), c); err != nil {
		return err
	}
	if err := s.Writer.RemoveConsumer(r.Context(), c.Shard, r.PathValue("name")); err != nil {
		return err
	}
	reply(w, http.StatusOK, map[string]string{"status": "removed"})
	return nil
}

// ackConsumer moves a cursor to {"seq": N}, or to {"token": "e1.t3.4711"}, which is
// refused if the history went on without it.
func (s *server) ackConsumer(w http.ResponseWriter, r *http.Request, c segment.Chain) error {
	seq, err := s.acked(w, r, c)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	var got localtier.ConsumerStatus
	if s.mine(c) {
		got, err = s.Writer.Ack(r.Context(), c.Shard, name, seq)
	} else {
		got, err = s.ackClosed(r.Context(), c, name, seq)
	}
	if err != nil {
		return err
	}
	reply(w, http.StatusOK, consumerOut(c.Shard, got))
	return nil
}

func (s *server) ackClosed(ctx context.Context, c segment.Chain, name string, seq segment.Seq) (got localtier.ConsumerStatus, err error) {
	if _, err := s.consumer(ctx, c, name); err != nil { // also: an open chain is somebody's
		return got, err
	}
	row, err := s.Catalog.AckClosed(ctx, c, name, seq)
	if err != nil {
		return got, err
	}
	for _, k := range row.Consumers {
		if k.Name == name {
			return statusIn(&row, k), nil
		}
	}
	return got, fmt.Errorf("%w: %q of chain %s", localtier.ErrNoConsumer, name, c)
}

func (s *server) acked(w http.ResponseWriter, r *http.Request, c segment.Chain) (segment.Seq, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAckBytes))
	if err != nil {
		return 0, fmt.Errorf("%w: read the body: %w", errBadRequest, err)
	}
	var in struct {
		Seq   *segment.Seq `json:"seq"`
		Token *string      `json:"token"`
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil || (in.Seq == nil) == (in.Token == nil) || d.More() {
		return 0, fmt.Errorf(`%w: give {"seq": N} or {"token": "e1.t3.4711"}`, errBadRequest)
	}
	if in.Seq != nil {
		return *in.Seq, nil
	}
	if !strings.HasPrefix(*in.Token, "e") {
		return 0, fmt.Errorf("%w: %q is no token: give one as it was handed out, or a seq", errBadRequest, *in.Token)
	}
	return s.given(r.Context(), c, "token", *in.Token)
}

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
