package localtier

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// carried is the state that every SegmentStart repeats, so that any suffix of the
// chain rebuilds it: durable consumers and idempotent producers. Nothing here makes
// any yet; what a chain has is carried on unchanged.
type carried struct {
	cursors   map[string]segment.Seq
	producers []segment.Producer
}

// restart takes the state that a SegmentStart gives.
func (c *carried) restart(consumers []segment.Consumer, producers []segment.Producer) {
	c.cursors = make(map[string]segment.Seq, len(consumers))
	for _, x := range consumers {
		c.cursors[x.Name] = x.Cursor
	}
	c.producers = slices.Clone(producers)
}

// restore takes the state as of the newest local segment's end.
func (c *carried) restore(log *wal.Log) (err error) {
	st := log.State()
	if st.Segment == 0 {
		return nil
	}
	c.restart(st.Start.Consumers, st.Start.Producers)
	f, err := log.OpenSegment(st.Segment)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sc, err := segment.NewScanner(f, f.Size())
	for err == nil {
		var frame segment.Frame
		if frame, err = sc.Next(); err != nil {
			break
		}
		switch frame.Kind {
		case segment.KindConsumerCreate, segment.KindAck, segment.KindConsumerRemove:
			var x segment.Consumer
			if x, err = segment.DecodeConsumer(frame.Payload); err == nil {
				c.apply(frame.Kind, x)
			}
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return damaged(err, f, st.Segment)
}

// apply takes in a consumer frame.
func (c *carried) apply(k segment.Kind, x segment.Consumer) {
	if c.cursors == nil {
		c.cursors = make(map[string]segment.Seq)
	}
	segment.ApplyConsumer(c.cursors, k, x)
}

func (c *carried) consumers() []segment.Consumer {
	out := make([]segment.Consumer, 0, len(c.cursors))
	for name, cursor := range c.cursors {
		out = append(out, segment.Consumer{Name: name, Cursor: cursor})
	}
	slices.SortFunc(out, func(a, b segment.Consumer) int { return strings.Compare(a.Name, b.Name) })
	return out
}
