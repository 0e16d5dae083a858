package client

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/strandline/strandline/segment"
)

// Appender appends to one stream, one call after the other, each under the next number of a
// producer of its own: as safe to repeat as Client.Append with a key, but the shard has one
// producer to remember, not one a call. It is not for concurrent use.
type Appender struct {
	client   *Client
	stream   string
	options  AppendOptions
	producer string // empty: the next call begins a new one
	sequence uint64 // of the last call
}

// NewAppender makes one; it asks nobody. Key, Producer and Sequence of the options are the
// Appender's to choose.
func (c *Client) NewAppender(stream string, o AppendOptions) *Appender {
	o.Key, o.Producer, o.Sequence = "", "", 0
	return &Appender{client: c, stream: stream, options: o}
}

// Append is Client.Append. After an error the next call begins with a new number.
func (a *Appender) Append(ctx context.Context, rows []segment.Row) (Appended, error) {
	if a.options.AtMostOnce {
		return a.client.Append(ctx, a.stream, rows, a.options)
	}
	got, err := a.next(ctx, rows)
	if a.behind(err) {
		// The owner's disk went with numbers that were acknowledged locally: its heir knows
		// less of this producer, and refuses the gap. It has none of these rows, and nobody
		// else can bring any into the history, so they are a new producer's.
		a.producer = ""
		got, err = a.next(ctx, rows)
	}
	if err != nil {
		a.producer = "" // whether the number is taken is not known
	}
	return got, err
}

func (a *Appender) next(ctx context.Context, rows []segment.Row) (Appended, error) {
	if a.producer == "" {
		a.producer, a.sequence = "appender-"+uuid.NewString(), 0
	}
	a.sequence++
	o := a.options
	o.Producer, o.Sequence = a.producer, a.sequence
	return a.client.Append(ctx, a.stream, rows, o)
}

// behind says whether the shard expects a lower number.
func (a *Appender) behind(err error) bool {
	var p *Problem
	return errors.As(err, &p) && errors.Is(p, ErrSequence) && p.Expect != nil && *p.Expect < a.sequence
}
