package httpapi

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/segment"
)

// source is what a follower follows: a stream, through all epochs, or a chain.
type source interface {
	// key tells it from others at tips.
	key() string
	// owner is the tail that serves it here; nil: none does. chainIn is its chain there.
	owner() *tail
	chainIn(t *tail) segment.Chain
	// chain is the one that has it in an epoch.
	chain(ctx context.Context, e segment.Epoch) (segment.Chain, error)
	// tip asks the catalog, by one verb; mayCome says whether what it does not know may come.
	tip(ctx context.Context) (tip, error)
	mayCome() bool
	// cold yields what the bucket has from a position to before another, local what the tail
	// has from a seq to another, inclusive.
	cold(ctx context.Context, from, before segment.Pos) iter.Seq2[coldload.ShardRow, error]
	local(ctx context.Context, t *tail, from, to segment.Seq) iter.Seq2[coldload.ShardRow, error]
	// caughtUp says that all local rows were yielded once.
	caughtUp()
	// check holds a token against the history.
	check(ctx context.Context, tok segment.Token) error
	// liveIn is where its rows begin in a chain; zero: where the chain does.
	liveIn(ctx context.Context, c segment.Chain) (segment.Pos, error)
	// passed says, of a position that was given up, where what is left begins, if no row
	// lies between the two.
	passed(ctx context.Context, pos segment.Pos) (next segment.Pos, ok bool, err error)
}

// epochs remembers how many shards the epochs have, which never changes.
type epochs struct {
	mu     sync.Mutex
	shards map[segment.Epoch]uint32
}

func (s *server) shardsOf(ctx context.Context, e segment.Epoch) (uint32, error) {
	if e == s.Epoch && s.Shards != 0 {
		return s.Shards, nil
	}
	s.epochs.mu.Lock()
	n, ok := s.epochs.shards[e]
	s.epochs.mu.Unlock()
	if ok {
		return n, nil
	}
	tops, err := s.Catalog.Topologies(ctx)
	if err != nil {
		return 0, fmt.Errorf("look up epoch %d: %w", e, err)
	}
	s.epochs.mu.Lock()
	defer s.epochs.mu.Unlock()
	s.epochs.shards = make(map[segment.Epoch]uint32, len(tops))
	for i := range tops {
		s.epochs.shards[tops[i].Epoch] = tops[i].Shards
	}
	if n, ok = s.epochs.shards[e]; !ok {
		return 0, fmt.Errorf("%w: there is no epoch %d, see strandline topology show", errBadRequest, e)
	}
	return n, nil
}

// streamSource follows a stream.
type streamSource struct {
	*server
	name string
}

func (s *streamSource) key() string { return "stream " + s.name }

func (s *streamSource) owner() *tail {
	t := s.Tail.now.Load()
	if t == nil {
		return nil
	}
	return s.Tail.owner(s.chainIn(t))
}

func (s *streamSource) chainIn(t *tail) segment.Chain {
	return segment.Chain{Epoch: t.epoch, Shard: segment.ShardOf(s.name, t.shards)}
}

func (s *streamSource) chain(ctx context.Context, e segment.Epoch) (segment.Chain, error) {
	n, err := s.shardsOf(ctx, e)
	return segment.Chain{Epoch: e, Shard: segment.ShardOf(s.name, max(n, 1))}, err
}

func (s *streamSource) tip(ctx context.Context) (tip, error) {
	st, err := s.Catalog.Stream(ctx, s.name)
	if err != nil || st.Last == (segment.Pos{}) {
		return tip{}, err
	}
	return tip{next: st.Last.Next()}, nil
}

// mayCome: a stream begins with its first append.
func (s *streamSource) mayCome() bool { return true }

func (s *streamSource) cold(ctx context.Context, from, before segment.Pos) iter.Seq2[coldload.ShardRow, error] {
	before.Seq--
	return s.named(s.Reader.Rows(ctx, s.name, from, before))
}

func (s *streamSource) local(ctx context.Context, t *tail, from, to segment.Seq) iter.Seq2[coldload.ShardRow, error] {
	return func(yield func(coldload.ShardRow, error) bool) {
		for row, err := range t.writer.Read(ctx, s.name, from, to) {
			if !yield(coldload.ShardRow{Stream: s.name, Epoch: t.epoch, Row: row}, err) {
				return
			}
		}
	}
}

func (s *streamSource) named(rows iter.Seq2[coldload.Row, error]) iter.Seq2[coldload.ShardRow, error] {
	return func(yield func(coldload.ShardRow, error) bool) {
		for row, err := range rows {
			if !yield(coldload.ShardRow{Stream: s.name, Epoch: row.Epoch, Row: row.Row}, err) {
				return
			}
		}
	}
}

func (s *streamSource) caughtUp() {}

func (s *streamSource) check(ctx context.Context, tok segment.Token) error {
	return s.Reader.Check(ctx, s.name, tok)
}

func (s *streamSource) liveIn(ctx context.Context, c segment.Chain) (segment.Pos, error) {
	p, err := s.Catalog.Plan(ctx, catalog.PlanRequest{Stream: s.name, From: segment.Pos{Epoch: c.Epoch, Seq: 1}, Limit: 1})
	if errors.Is(err, catalog.ErrNotFound) {
		return segment.Pos{}, nil
	}
	return p.LiveFrom, err
}

// passed looks at what follows: a ref says which of the stream's rows comes before its
// first. Where live_from lies within a ref nobody can say, short of reading what was given up.
// It asks from pos on: what an older epoch's chain keeps lies behind this follower.
func (s *streamSource) passed(ctx context.Context, pos segment.Pos) (next segment.Pos, ok bool, err error) {
	p, err := s.Catalog.Plan(ctx, catalog.PlanRequest{Stream: s.name, From: pos, Limit: 1})
	if err != nil || len(p.Refs) == 0 {
		return next, false, err
	}
	first := &p.Refs[0]
	live := later(p.LiveFrom, p.LiveIn(first.Epoch))
	return first.FirstPos(), !first.FirstPos().Less(live) && first.PrevLast.Less(pos), nil
}

// chainSource follows a chain.
type chainSource struct {
	*server
	of   segment.Chain
	live liveFrom
}

func (s *chainSource) key() string { return "chain " + s.of.String() }

func (s *chainSource) owner() *tail { return s.Tail.owner(s.of) }

func (s *chainSource) chainIn(*tail) segment.Chain { return s.of }

func (s *chainSource) chain(_ context.Context, e segment.Epoch) (segment.Chain, error) {
	if e != s.of.Epoch && e != s.Epoch {
		return s.of, fmt.Errorf("%w: epoch %s is not the one of chain %s", errBadRequest, strconv.FormatUint(uint64(e), 10), s.of)
	}
	return s.of, nil
}

func (s *chainSource) tip(ctx context.Context) (tip, error) {
	row, err := s.Catalog.Chain(ctx, s.of)
	if err != nil {
		return tip{}, fmt.Errorf("read chain %s: %w", s.of, err)
	}
	return tip{next: segment.Pos{Epoch: s.of.Epoch, Seq: max(row.NextSeq, 1)}, closed: row.Closed}, nil
}

// mayCome: chains come with their epoch, all at once.
func (s *chainSource) mayCome() bool { return false }

func (s *chainSource) cold(ctx context.Context, from, before segment.Pos) iter.Seq2[coldload.ShardRow, error] {
	return func(yield func(coldload.ShardRow, error) bool) {
		for row, err := range s.Reader.Scan(ctx, s.of, from.Seq) {
			if err == nil && row.Seq >= before.Seq || !yield(row, err) {
				return
			}
		}
	}
}

// local leaves out, as the bucket does, what trims gave up before this follower came; what
// it sees from then on was live when it was written.
func (s *chainSource) local(ctx context.Context, t *tail, from, to segment.Seq) iter.Seq2[coldload.ShardRow, error] {
	return func(yield func(coldload.ShardRow, error) bool) {
		for row, err := range t.writer.ReadShard(ctx, s.of.Shard, from, to) {
			var live segment.Seq
			if err == nil {
				live, err = s.live.of(ctx, s.Catalog, s.of, row.Stream)
			}
			if err == nil && row.Seq < live {
				continue
			}
			if !yield(coldload.ShardRow{Stream: row.Stream, Epoch: s.of.Epoch, Row: row.Row}, err) || err != nil {
				return
			}
		}
	}
}

func (s *chainSource) caughtUp() { s.live = liveFrom{off: true} }

func (s *chainSource) check(ctx context.Context, tok segment.Token) error {
	return s.Reader.CheckShard(ctx, s.of.Shard, tok)
}

func (s *chainSource) liveIn(ctx context.Context, c segment.Chain) (segment.Pos, error) {
	row, err := s.Catalog.Chain(ctx, c)
	return segment.Pos{Epoch: c.Epoch, Seq: row.WatermarkSeq + 1}, err
}

// passed: of a chain, every row that was given up is one that a follower had to see.
func (s *chainSource) passed(context.Context, segment.Pos) (segment.Pos, bool, error) {
	return segment.Pos{}, false, nil
}
