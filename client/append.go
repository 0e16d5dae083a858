package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/google/uuid"

	"github.com/strandline/strandline/segment"
)

// Ack is when an append is acknowledged.
type Ack string

// The acknowledgements.
const (
	AckDefault Ack = ""       // the writer's own
	AckLocal   Ack = "local"  // durable on the writer's disk: losing that disk can lose what is not published yet
	AckShared  Ack = "shared" // in the bucket and absorbed: survives the writer and its disk
)

// AppendOptions of one append. The zero value is for rows that must not come in twice and must
// not be lost: the client makes an Idempotency-Key and repeats the append until it has an answer.
type AppendOptions struct {
	Ack Ack
	// Key is the Idempotency-Key, 1 to 200 printable ASCII bytes: for a caller that itself
	// repeats an append after a crash, with the same rows. Empty: one of the client's making.
	Key string
	// Producer and Sequence are an idempotent producer's name and its own number of this append,
	// one more with each append to the same shard; instead of a key.
	Producer string
	Sequence uint64
	// AtMostOnce sends no key: an append whose answer is lost is ErrUnknown, and not repeated.
	AtMostOnce bool
	// ExactTimes sends a Time of 0 as 1970. Without it such a row gets the server's time.
	ExactTimes bool
}

// Appended is where an append's rows stand: consecutive seqs from First to Last.
type Appended struct {
	Stream string        `json:"stream"`
	Epoch  segment.Epoch `json:"epoch"`
	Shard  segment.Shard `json:"shard"`
	Term   segment.Term  `json:"term"`
	First  segment.Seq   `json:"first"`
	Last   segment.Seq   `json:"last"`
	Rows   int           `json:"rows"`
	// The positions as tokens, which reads take as From and After, and which know their history.
	FirstToken string `json:"first_token"`
	LastToken  string `json:"last_token"`
}

// Append appends rows to a stream, in one call: they get consecutive seqs and all of them are
// durable, as ack says, when it returns; or none is acknowledged. Of a row Time (nanoseconds since
// 1970 UTC; 0: now, by the server's clock), Txn and Payload count; its Seq is the server's to give.
//
// One call holds at most 16 MiB and 262,144 rows (ErrTooLarge). It goes on for
// Config.Patience while no server has the shard, and while one asks to come back until ctx ends. ErrUnknown, with
// any other kind: the rows may be there; the same call with the same Key or Sequence answers what
// became of them. ErrKeyReused and ErrSequence: other rows stand under this number, or a gap would.
func (c *Client) Append(ctx context.Context, stream string, rows []segment.Row, o AppendOptions) (Appended, error) {
	var out Appended
	q, err := c.appendCall(stream, rows, o)
	if err != nil {
		return out, fmt.Errorf("append to %q: %w", stream, err)
	}
	a, err := c.do(ctx, q)
	if err != nil {
		return out, err
	}
	// Whoever acknowledged is asked by Flush.
	c.tookRows(a.server)
	if err = a.into(&out); err == nil && !out.places(len(rows)) {
		err = fmt.Errorf("%w: %s does not say where the rows stand: %.200q", ErrAnswer, a.server, a.body)
	}
	if err != nil {
		return Appended{}, fmt.Errorf("%s: %w: %w", q.op, ErrUnknown, err)
	}
	return out, nil
}

// places says whether so many rows stand there. What else answers at an address, a proxy's page
// say, is no acknowledgement.
func (a *Appended) places(rows int) bool {
	return a.Epoch != 0 && a.First != 0 && a.Last >= a.First && uint64(a.Last-a.First) == uint64(rows)-1 //nolint:gosec // 1 or more
}

func (c *Client) appendCall(stream string, rows []segment.Row, o AppendOptions) (*call, error) {
	if err := o.check(stream, rows); err != nil {
		return nil, err
	}
	b, err := c.body.of(rows, o.ExactTimes, c.cfg.CompressFrom, c.plain.Load())
	if err != nil {
		return nil, err
	}
	q := &call{
		op: "append to " + strconv.Quote(stream), method: http.MethodPost,
		path: "/v1/streams/" + segmentOf(stream) + "/rows", query: url.Values{},
		header: http.Header{"Content-Type": {b.kind}}, body: b.bytes, plain: b.plain,
		place: appendsOf(stream), repeat: !o.AtMostOnce,
	}
	if b.encoding != Identity {
		q.header.Set("Content-Encoding", string(b.encoding))
	}
	if o.Ack != AckDefault {
		q.query.Set("ack", string(o.Ack))
	}
	switch {
	case o.Producer != "":
		q.query.Set("producer", o.Producer)
		q.query.Set("sequence", strconv.FormatUint(o.Sequence, 10))
	case !o.AtMostOnce:
		if o.Key == "" {
			o.Key = uuid.NewString()
		}
		q.header.Set("Idempotency-Key", o.Key)
	}
	return q, nil
}

// maxKey bounds an Idempotency-Key.
const maxKey = 200

func (o *AppendOptions) check(stream string, rows []segment.Row) error {
	switch {
	case len(rows) == 0:
		return fmt.Errorf("%w: no rows", ErrConfig)
	case o.Ack != AckDefault && o.Ack != AckLocal && o.Ack != AckShared:
		return fmt.Errorf("%w: ack %q: give local or shared", ErrConfig, o.Ack)
	case o.Key != "" && o.Producer != "", o.AtMostOnce && (o.Key != "" || o.Producer != ""):
		return fmt.Errorf("%w: give one of Key, Producer and AtMostOnce", ErrConfig)
	case o.Producer == "" && o.Sequence != 0:
		return fmt.Errorf("%w: a Sequence is a Producer's", ErrConfig)
	case len(o.Key) > maxKey:
		return fmt.Errorf("%w: a Key has at most %d bytes", ErrConfig, maxKey)
	}
	for _, b := range []byte(o.Key) {
		if b <= ' ' || b > '~' {
			return fmt.Errorf("%w: Key %q: give printable ASCII", ErrConfig, o.Key)
		}
	}
	if o.Producer != "" {
		if err := segment.CheckProducer(o.Producer); err != nil {
			return err
		}
	}
	return segment.CheckStream(stream)
}
