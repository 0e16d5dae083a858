package localtier

import (
	"context"
	"slices"
	"sync"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// carried is the state that every SegmentStart repeats, so that any suffix of the
// chain rebuilds it: durable consumers and idempotent producers. It is kept as of the
// last durable frame, with what is queued in the log behind it, in the log's order.
// So a SegmentStart that is queued between two frames repeats exactly the frames before
// it, and a write that was taken back takes its changes back by leaving the queue.
//
// Frames are numbered under shardLog.number, and so are the changes here. mu is the
// last lock of all: the log asks for a SegmentStart with its own lock held, so nothing is
// called from under mu that takes another.
type carried struct {
	mu        sync.Mutex
	cursors   map[string]segment.Seq // durable
	producers *segment.Producers     // durable

	pending []*carriedChange // queued behind them
	// The last pending change of each name.
	cursorOf   map[string]*carriedChange
	producerOf map[string]*carriedChange
	consumersN int // consumers there will be when all that is pending is durable

	// removed has, of each consumer that was removed, the segment that says so; below
	// sealFirst they are not remembered one by one.
	removed   map[string]segment.ID
	sealFirst segment.ID
}

// carriedChange is a frame that was handed to the log.
type carriedChange struct {
	ticket   wal.Ticket
	kind     segment.Kind     // KindBatch: of a producer
	consumer segment.Consumer // as it stands after the frame
	producer segment.Producer
}

// restart takes the state that a log, a SegmentStart or a chain row gives.
func (c *carried) restart(consumers []segment.Consumer, producers []segment.Producer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cursors = make(map[string]segment.Seq, len(consumers))
	for _, x := range consumers {
		c.cursors[x.Name] = x.Cursor
	}
	c.producers = segment.NewProducers(producers)
	c.pending = nil
	c.cursorOf, c.producerOf = make(map[string]*carriedChange), make(map[string]*carriedChange)
	c.consumersN = len(c.cursors)
	c.removed = make(map[string]segment.ID)
}

// lists is what a SegmentStart says that is queued now: consumers by name, producers
// least recently used first.
func (c *carried) lists() ([]segment.Consumer, []segment.Producer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 {
		return segment.ListConsumers(c.cursors), c.listProducers()
	}
	cursors := make(map[string]segment.Seq, c.consumersN)
	for name, cursor := range c.cursors {
		cursors[name] = cursor
	}
	for _, ch := range c.pending {
		if ch.kind != segment.KindBatch {
			segment.ApplyConsumer(cursors, ch.kind, ch.consumer)
		}
	}
	return segment.ListConsumers(cursors), c.queuedProducers()
}

func (c *carried) listProducers() []segment.Producer {
	if c.producers == nil {
		return nil
	}
	return c.producers.List()
}

// queuedProducers is segment.ApplyProducer over all that is pending, at the price of
// one walk: who has a pending append was used after those who have none.
func (c *carried) queuedProducers() []segment.Producer {
	out := c.listProducers()
	if len(c.producerOf) > 0 {
		out = slices.DeleteFunc(out, func(p segment.Producer) bool { return c.producerOf[p.ID] != nil })
	}
	for _, ch := range c.pending {
		if ch.kind == segment.KindBatch && c.producerOf[ch.producer.ID] == ch {
			out = append(out, ch.producer)
		}
	}
	return out[max(0, len(out)-segment.MaxProducers):]
}

// apply is the frame's effect.
func (ch *carriedChange) apply(cursors map[string]segment.Seq, producers *segment.Producers) {
	if ch.kind == segment.KindBatch {
		segment.ApplyProducer(producers, ch.producer)
		return
	}
	segment.ApplyConsumer(cursors, ch.kind, ch.consumer)
}

// queue notes a frame that was handed to the log. Callers hold the number lock, so
// that the order here is the log's.
func (c *carried) queue(ch carriedChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	switch ch.kind {
	case segment.KindBatch:
		c.producerOf[ch.producer.ID] = &ch
	case segment.KindConsumerCreate:
		c.consumersN++
		c.cursorOf[ch.consumer.Name] = &ch
	case segment.KindConsumerRemove:
		c.consumersN--
		c.cursorOf[ch.consumer.Name] = &ch
	default:
		c.cursorOf[ch.consumer.Name] = &ch
	}
	c.pending = append(c.pending, &ch)
}

// settle moves what became durable over, in order, and drops what never will; mu is
// held. What was refused is dropped before anything is numbered behind it: the log
// takes nothing until unstall has been by.
func (c *carried) settle() {
	n := 0
	for ; n < len(c.pending) && isDone(c.pending[n].ticket); n++ {
		ch := c.pending[n]
		// The ticket is done, so this does not wait.
		if _, err := ch.ticket.Wait(context.Background()); err == nil {
			ch.apply(c.cursors, c.producers)
		}
		if c.cursorOf[ch.consumer.Name] == ch {
			delete(c.cursorOf, ch.consumer.Name)
		}
		if c.producerOf[ch.producer.ID] == ch {
			delete(c.producerOf, ch.producer.ID)
		}
	}
	if n == 0 {
		return
	}
	clear(c.pending[:n]) // the array stays for what is behind
	if c.pending = c.pending[n:]; len(c.pending) == 0 {
		c.pending = nil
		c.consumersN = len(c.cursors)
	}
}

// takeBack forgets what a write that was taken back had carried, and waits until it is
// known what that is. number is held, so nothing is queued meanwhile; what is under
// way ends with one write of the disk.
func (c *carried) takeBack() {
	c.mu.Lock()
	pending := slices.Clone(c.pending)
	c.mu.Unlock()
	for _, ch := range pending {
		<-ch.ticket.Done()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
}

// consumer is a consumer's cursor as of what is queued; ch is the frame that the
// answer rests on if that is not durable yet.
func (c *carried) consumer(name string) (cursor segment.Seq, stands bool, ch *carriedChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	if ch = c.cursorOf[name]; ch != nil {
		return ch.consumer.Cursor, ch.kind != segment.KindConsumerRemove, ch
	}
	cursor, stands = c.cursors[name]
	return cursor, stands, nil
}

// cursor is a consumer's durable cursor.
func (c *carried) cursor(name string) (cursor segment.Seq, stands bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	cursor, stands = c.cursors[name]
	return cursor, stands
}

// producer is a producer's last append as of what is queued, and likewise.
func (c *carried) producer(id string) (p segment.Producer, known bool, ch *carriedChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	if ch = c.producerOf[id]; ch != nil {
		return ch.producer, true, ch
	}
	if c.producers == nil {
		return p, false, nil
	}
	p, known = c.producers.Get(id)
	return p, known, nil
}

// room says whether one more consumer may be made.
func (c *carried) room() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.consumersN < segment.MaxConsumers
}

// remove notes the segment that a consumer's removal went into.
func (c *carried) remove(name string, id segment.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.removed) >= segment.MaxConsumers {
		c.sealFirst = id
		clear(c.removed)
	}
	c.removed[name] = id
}

// removedIn says whether the segment may hold a removal of the consumer. A slot brings
// the catalog one cursor a name, and the catalog lowers none that it has: a consumer that
// is removed and made again within one segment would go on where it was. So the second
// has to come in another segment than the first.
func (c *carried) removedIn(name string, id segment.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return id <= max(c.removed[name], c.sealFirst)
}

// consumers is the durable ones, by name.
func (c *carried) consumers() []segment.Consumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	return segment.ListConsumers(c.cursors)
}

// holding is the cursors that retention must not pass: the durable ones, and those
// that are being made. An acknowledgement or a removal that is not durable yet counts
// for nothing. Callers hold shardLog.cursors, so that none is made meanwhile.
func (c *carried) holding() []segment.Consumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	cursors := make(map[string]segment.Seq, c.consumersN)
	for name, cursor := range c.cursors {
		cursors[name] = cursor
	}
	for _, ch := range c.pending {
		if ch.kind == segment.KindConsumerCreate {
			if have, ok := cursors[ch.consumer.Name]; !ok || ch.consumer.Cursor < have {
				cursors[ch.consumer.Name] = ch.consumer.Cursor
			}
		}
	}
	return segment.ListConsumers(cursors)
}
