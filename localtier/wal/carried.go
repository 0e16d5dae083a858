package wal

import (
	"github.com/strandline/strandline/segment"
)

// carried is what every SegmentStart repeats, as of one point of the log: the
// durable consumers with their cursors, and the idempotent producers.
type carried struct {
	consumers map[string]segment.Seq
	producers *segment.Producers
}

// carriedFrom takes over the state that a SegmentStart or index.json gives.
func carriedFrom(consumers []segment.Consumer, producers []segment.Producer) carried {
	c := carried{make(map[string]segment.Seq, len(consumers)), segment.NewProducers(producers)}
	for _, x := range consumers {
		c.consumers[x.Name] = x.Cursor
	}
	return c
}

func carriedBy(s segment.Start) carried { return carriedFrom(s.Consumers, s.Producers) }

// follow takes in one frame that stands in the log.
func (c *carried) follow(f *segment.Frame, start *segment.Start) {
	switch f.Kind {
	case segment.KindStart:
		*c = carriedBy(*start)
	case segment.KindBatch:
		if p, ok, err := segment.BatchProducer(f.Payload); ok && err == nil { // the scanner decoded it before
			segment.ApplyProducer(c.producers, p)
		}
	case segment.KindConsumerCreate, segment.KindAck, segment.KindConsumerRemove:
		if x, err := segment.DecodeConsumer(f.Payload); err == nil { // likewise
			segment.ApplyConsumer(c.consumers, f.Kind, x)
		}
	}
}

// lists gives consumers by name, and producers least recently used first.
func (c carried) lists() ([]segment.Consumer, []segment.Producer) {
	out := segment.ListConsumers(c.consumers)
	if c.producers == nil {
		return out, nil
	}
	return out, c.producers.List()
}

// Carried is what the next SegmentStart must repeat as of the durable end: the
// consumers by name, the producers least recently used first. After Open that is
// all that survived; it costs no reading where index.json was believed. A caller
// that appends keeps its own from there on, since frames that are queued count
// in NextStart and do not count here.
func (l *Log) Carried() ([]segment.Consumer, []segment.Producer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.carried.lists()
}

// Carried is what the log carries at its end.
func (ro *ReadOnly) Carried() ([]segment.Consumer, []segment.Producer) { return ro.r.carried.lists() }
