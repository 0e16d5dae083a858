package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/strandline/strandline/segment"
)

// Row is a row as it was read.
type Row struct {
	Stream string
	Epoch  segment.Epoch
	// Term of the history that the server knew the row in; 0: the row is in the bucket, and
	// no history can be without it.
	Term segment.Term
	segment.Row
}

// Pos is the row's position.
func (r *Row) Pos() segment.Pos { return segment.Pos{Epoch: r.Epoch, Seq: r.Seq} }

// Position is how reads take the row's position (From, After) and consumers acknowledge it: a
// token, or EPOCH.SEQ where there is no term.
func (r *Row) Position() string {
	if r.Term != 0 {
		return segment.Token{Epoch: r.Epoch, Term: r.Term, Seq: r.Seq}.String()
	}
	return r.Pos().String()
}

// ReadOptions of one read. A position is a seq of the server's epoch, EPOCH.SEQ, or a token as
// Row.Position and Appended give it.
type ReadOptions struct {
	From  string // the first row; empty: the first that is live
	After string // the row before the first; instead of From
	To    string // the last row; empty: the tip. Not with Follow
	Limit int    // rows; 0: no limit
	// Owner asks the shard's owner, whose disk has rows that are not in the bucket yet, and which
	// has new ones at once. Else whatever server answers will do: a reader, or a writer of other
	// shards, has rows once they are absorbed.
	Owner bool
	// Follow goes on behind the tip, until the context ends.
	Follow bool
}

// Rows yields a stream's rows in order, each once. The last pair carries an error if the read is
// not whole; without one, everything up to the tip (or To, or Limit) was delivered. Its row's
// bytes are the caller's.
//
// An answer that is cut, or a server that stops, is gone on from behind the last row, at whatever
// server answers then. That is given up with ErrCut or ErrUnreachable if no row and no heartbeat
// came for Config.Patience. ErrTrimmed: rows between were given up before they were read;
// ErrForked: rows that were delivered are not in the history any more (their writer's disk was
// lost before they were in the bucket); ErrDamage, ErrOrder: never passed over in silence.
//
// Seqs are numbers of a whole shard, so a stream's have gaps. That no row is missing between two
// is the server's word: it ends the read with a problem instead.
func (c *Client) Rows(ctx context.Context, stream string, o ReadOptions) iter.Seq2[Row, error] {
	q := call{
		op: "read " + strconv.Quote(stream), method: http.MethodGet,
		path: "/v1/streams/" + segmentOf(stream) + "/rows", place: readsOf(stream),
	}
	if stream == "" {
		return failing(fmt.Errorf("%s: %w: a stream has a name", q.op, ErrConfig))
	}
	return c.read(ctx, q, o)
}

// ShardRows yields a chain's rows, all streams in the shard's order; else as Rows does. Epoch 0
// is the server's. Rows of trimmed and of reserved streams are left out.
func (c *Client) ShardRows(ctx context.Context, chain segment.Chain, o ReadOptions) iter.Seq2[Row, error] {
	return c.read(ctx, call{
		op: fmt.Sprintf("read shard %d", chain.Shard), method: http.MethodGet,
		path: shardPath(chain) + "/rows", query: epochOf(chain), place: "read/" + chainPlace(chain),
	}, o)
}

func shardPath(c segment.Chain) string {
	return "/v1/shards/" + strconv.FormatUint(uint64(c.Shard), 10)
}

func epochOf(c segment.Chain) url.Values {
	q := url.Values{}
	if c.Epoch != 0 {
		q.Set("epoch", strconv.FormatUint(uint64(c.Epoch), 10))
	}
	return q
}

// read is a read that goes on after a cut.
func (c *Client) read(ctx context.Context, q call, o ReadOptions) iter.Seq2[Row, error] {
	if err := o.check(); err != nil {
		return failing(fmt.Errorf("%s: %w", q.op, err))
	}
	q.repeat, q.streams, q.header = true, true, http.Header{"Accept": {ndjsonType}}
	if q.query == nil {
		q.query = url.Values{}
	}
	for name, v := range map[string]string{"from": o.From, "after": o.After, "to": o.To} {
		if v != "" {
			q.query.Set(name, v)
		}
	}
	if o.Follow {
		q.query.Set("follow", "true")
	}
	return func(yield func(Row, error) bool) {
		r := &reading{Client: c, q: q, follow: o.Follow, owner: o.Owner, limit: o.Limit, yield: yield}
		r.q.query = cloned(q.query) // each range over the rows is a read of its own
		if err := r.run(ctx); err != nil && !r.over {
			yield(Row{}, err)
		}
	}
}

func (o *ReadOptions) check() error {
	switch {
	case o.From != "" && o.After != "":
		return fmt.Errorf("%w: give From or After, not both", ErrConfig)
	case o.Follow && o.To != "":
		return fmt.Errorf("%w: a Follow has no end: leave To out, or end the range at the row", ErrConfig)
	case o.Limit < 0:
		return fmt.Errorf("%w: Limit %d", ErrConfig, o.Limit)
	}
	return nil
}

func cloned(v url.Values) url.Values {
	out := make(url.Values, len(v))
	for name := range v {
		out.Set(name, v.Get(name))
	}
	return out
}

func failing(err error) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) { yield(Row{}, err) }
}
