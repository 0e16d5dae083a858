package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/strandline/strandline/catalog"
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

// MadeConsumer is the answer to making one: what stands now, and why that is not what was
// asked for.
type MadeConsumer struct {
	ConsumerOut
	// Stood says that it was there before, and is as it was.
	Stood bool `json:"stood,omitempty"`
	// Clamped says that it begins elsewhere than asked: there are no rows yet up to the
	// position, or those behind it were given up.
	Clamped bool `json:"clamped,omitempty"`
}

// Limits of a pull: what one answer holds.
const (
	defaultPull = 1000
	// MaxPull rows of one pull; its bytes are bounded by the writer.
	MaxPull     = 100_000
	maxAckBytes = 4 << 10
)

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
	return localtier.ConsumerStatusOf(k, max(row.NextSeq, 1)-1)
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
	return localtier.ConsumerStatus{}, noConsumer(c, name)
}

func noConsumer(c segment.Chain, name string) error {
	return fmt.Errorf("%w: chain %s has none of the name %q; strandline consumers ls %d --epoch %d lists those that stand",
		localtier.ErrNoConsumer, c, name, c.Shard, c.Epoch)
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
	// One that another client makes between the look and the making is taken for made here:
	// it stands either way, and the answer says where.
	_, err = s.consumer(r.Context(), c, r.PathValue("name"))
	if err != nil && !errors.Is(err, localtier.ErrNoConsumer) {
		return err
	}
	stood := err == nil
	got, err := s.Writer.CreateConsumer(r.Context(), c.Shard, r.PathValue("name"), after)
	if err != nil {
		return err
	}
	reply(w, http.StatusOK, MadeConsumer{
		ConsumerOut: consumerOut(c.Shard, got), Stood: stood, Clamped: !stood && after != 0 && got.Cursor != after,
	})
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
	if pos != (segment.Pos{}) && pos.Epoch != c.Epoch {
		return 0, fmt.Errorf("%w: %s=%s is of another epoch than chain %s", errBadRequest, name, text, c)
	}
	if tok != nil {
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
	return got, noConsumer(c, name)
}

func (s *server) acked(w http.ResponseWriter, r *http.Request, c segment.Chain) (segment.Seq, error) {
	var in struct {
		Seq   *segment.Seq `json:"seq"`
		Token *string      `json:"token"`
	}
	const want = `give {"seq": N} or {"token": "e1.t3.4711"}`
	if err := decodeBody(w, r, maxAckBytes, &in); err != nil {
		return 0, fmt.Errorf("%w; %s", err, want)
	}
	if (in.Seq == nil) == (in.Token == nil) {
		return 0, fmt.Errorf("%w: %s", errBadRequest, want)
	}
	if in.Seq != nil {
		return *in.Seq, nil
	}
	if !strings.HasPrefix(*in.Token, "e") {
		return 0, fmt.Errorf("%w: %q is no token: give one as it was handed out, or a seq", errBadRequest, *in.Token)
	}
	return s.given(r.Context(), c, "token", *in.Token)
}
