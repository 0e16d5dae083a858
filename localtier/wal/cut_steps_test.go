package wal_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// step does one thing. It returns nil, that the power went, or a fault of the log.
func (c *cutClient) step(t *testing.T) error {
	t.Helper()
	if st := c.l.State(); st.Segment == 0 || c.rng.IntN(40) == 0 {
		return c.after(t, c.startSegment(st))
	}
	switch n := c.rng.IntN(100); {
	case n < 48:
		return c.after(t, c.append())
	case n < 62:
		return c.after(t, c.consumer())
	case n < 77:
		return c.after(t, c.l.Sync(bg))
	case n < 85:
		_, err := c.l.Seal(bg)
		return c.after(t, err)
	case n < 89:
		return c.after(t, c.checkpoint())
	case n < 91:
		return c.after(t, c.housekeep())
	case n < 92:
		return c.after(t, c.reclaim())
	case n < 93:
		return c.after(t, c.adopt(t))
	case n < 95:
		return c.reopen(t)
	default:
		c.fault()
		return nil
	}
}

func (c *cutClient) startSegment(st wal.State) error {
	return c.l.StartSegment(bg, segment.Start{
		Chain: testChain, ID: st.Segment + 1, Base: max(st.Next, 1), Prev: st.UUID,
		Term: st.Start.Term + 1, Consumers: c.carried.consumers(), Producers: c.carried.producers.List(),
	})
}

func (c *cutClient) append() error {
	b := &segment.Batch{Stream: []string{"orders", "events", segment.AuditStream(testChain.Shard)}[c.rng.IntN(3)]}
	e := entry{kind: segment.KindBatch, stream: b.Stream}
	for range 1 + c.rng.IntN(3) {
		c.serial++
		pad := 0
		if c.rng.IntN(3) == 0 {
			pad = c.rng.IntN(12_000)
		}
		e.payloads = append(e.payloads, fmt.Sprintf("%d.%s", c.serial, strings.Repeat("p", pad)))
		b.Rows = append(b.Rows, segment.Row{Time: int64(c.serial), Payload: []byte(e.payloads[len(e.payloads)-1])})
	}
	if c.rng.IntN(4) == 0 {
		b.Producer, b.Sequence = fmt.Sprintf("p%d", c.rng.IntN(3)), uint64(c.serial)
	}
	ticket, err := c.l.AppendBatch(bg, b)
	e.first = b.First
	if b.Producer != "" {
		e.producer = segment.Producer{ID: b.Producer, Sequence: b.Sequence, First: b.First, Last: b.Last()}
	}
	c.queued(ticket, e, err)
	return err
}

func (c *cutClient) consumer() error {
	c.serial++
	x := segment.Consumer{Name: fmt.Sprintf("c%d", c.rng.IntN(4)), Cursor: segment.Seq(c.serial)}
	kind := segment.KindConsumerCreate
	if _, ok := c.carried.cursors[x.Name]; ok {
		kind = segment.KindAck
		if c.rng.IntN(4) == 0 {
			kind, x.Cursor = segment.KindConsumerRemove, 0
		}
	}
	ticket, err := c.l.AppendConsumer(bg, kind, x)
	c.queued(ticket, entry{kind: kind, consumer: x}, err)
	return err
}

func (c *cutClient) queued(ticket wal.Ticket, e entry, err error) {
	if err == nil {
		e.seg = c.l.State().Segment
		c.carried.apply(e)
		c.m.log = append(c.m.log, e)
		c.tickets = append(c.tickets, ticket)
	}
}

func (c *cutClient) checkpoint() error {
	at := c.l.State().Durable
	if sealed := c.l.Sealed(); len(sealed) > 0 && c.rng.IntN(4) > 0 {
		at = sealed[c.rng.IntN(len(sealed))].End()
	}
	if has, ok := c.l.LastCheckpoint(); ok && at.Compare(has) <= 0 {
		return c.l.Checkpoint(bg, at) // a no-op
	}
	c.m.asked = append(c.m.asked, at)
	err := c.l.Checkpoint(bg, at)
	if err == nil {
		c.m.told = len(c.m.asked)
		c.count.checkpoints.Add(1)
	}
	return err
}

func (c *cutClient) housekeep() error {
	retain := wal.NoFloor
	if c.rng.IntN(2) == 0 {
		retain = segment.ID(c.rng.IntN(10))
	}
	cp, _ := c.l.LastCheckpoint()
	for _, s := range c.l.Sealed() {
		if s.ID < retain && s.End().Compare(cp) <= 0 {
			c.m.removable = max(c.m.removable, s.ID)
			c.keepCopy(s)
		}
	}
	recycled := c.l.Metrics().Recycled
	gone, err := c.l.Housekeep(bg, retain)
	c.count.removed.Add(int64(len(gone)))
	c.count.recycled.Add(c.l.Metrics().Recycled - recycled)
	return err
}

// keepCopy is what publishing does: the shared tier has the segment.
func (c *cutClient) keepCopy(s wal.SealedSegment) {
	if b, err := c.fsys.ReadFile(s.Path); err == nil { // else it is unlinked, and copied before
		c.copies[s.ID] = segmentCopy{s.UUID, b}
	}
}

func (c *cutClient) reclaim() error {
	cp, _ := c.l.LastCheckpoint()
	var below []wal.SealedSegment
	for _, s := range c.l.Sealed() {
		if s.End().Compare(cp) <= 0 && s.ID < c.l.State().Durable.Segment {
			below = append(below, s)
		}
	}
	if len(below) == 0 {
		return nil
	}
	s := below[c.rng.IntN(len(below))]
	c.m.reclaim, c.m.removable = max(c.m.reclaim, s.ID), max(c.m.removable, s.ID)
	gone, err := c.l.Reclaim(bg, segment.Reclaim{Seq: s.Next - 1, Segment: s.ID})
	c.count.removed.Add(int64(len(gone)))
	if err == nil {
		c.m.reclaimed = max(c.m.reclaimed, s.ID)
		c.count.reclaims.Add(1)
	}
	return err
}

// adopt brings a segment back that housekeeping removed. It is refused where it
// has no place, and only there.
func (c *cutClient) adopt(t *testing.T) error {
	t.Helper()
	if len(c.copies) == 0 {
		return nil
	}
	ids := slices.Sorted(maps.Keys(c.copies))
	id := ids[c.rng.IntN(len(ids))]
	err := c.l.Adopt(bg, id, c.copies[id].uuid, func(f wal.File) error {
		_, err := f.WriteAt(c.copies[id].bytes, 0)
		return err
	})
	cp, _ := c.l.LastCheckpoint()
	placeless := id <= c.l.Reclaimed().Segment || id > cp.Segment || id >= c.l.State().Durable.Segment
	if errors.Is(err, wal.ErrOrder) && placeless {
		return nil
	}
	if err == nil {
		c.count.adopted.Add(1)
		if !slices.ContainsFunc(c.l.Sealed(), func(s wal.SealedSegment) bool { return s.ID == id }) {
			c.fatal(t, fmt.Errorf("segment %d was adopted and is not here", id))
		}
	}
	return err
}

// reopen ends the process, not the machine: the page cache stays.
func (c *cutClient) reopen(t *testing.T) error {
	t.Helper()
	c.count.reopens.Add(1)
	err := c.l.Close()
	c.settle(t)
	c.l = nil
	if err != nil && !errors.Is(err, wal.ErrPoisoned) {
		return err
	}
	c.fsys.Inject(nil)
	c.fsys.SetFree(-1)
	return c.open(c.rng.IntN(4) == 0)
}

// fault arms one: the next fsync or write that comes fails, or the disk is full.
func (c *cutClient) fault() {
	switch c.rng.IntN(4) {
	case 0, 1:
		c.fsys.FailNth(powercut.KindSync, 1+c.rng.IntN(3), syscall.EIO)
	case 2:
		c.fsys.FailNth(powercut.KindWrite, 1+c.rng.IntN(3), &powercut.PartError{N: c.rng.IntN(9000), Err: syscall.EIO})
	default:
		c.fsys.SetFree(int64(c.rng.IntN(20_000)))
	}
}

// settle learns what became of the tickets that are decided. Acknowledgements
// come in order: none after a refusal.
func (c *cutClient) settle(t *testing.T) (refused error) {
	t.Helper()
	decided := 0
	for _, ticket := range c.tickets {
		select {
		case <-ticket.Done():
		default:
			c.tickets = c.tickets[decided:]
			return refused
		}
		decided++
		err := ticket.Err()
		if err == nil && refused != nil {
			c.fatal(t, fmt.Errorf("an acknowledgement behind a refusal (%w)", refused))
		}
		if err == nil {
			c.m.ack(len(c.m.log) - len(c.tickets) + decided)
			c.count.acked.Add(1)
		} else if refused == nil {
			refused = err
		}
	}
	c.tickets = nil
	return refused
}

// after deals with what an operation said: a poisoned log is opened again, one
// that took a write back is resumed or opened again.
func (c *cutClient) after(t *testing.T, err error) error {
	t.Helper()
	refused := c.settle(t)
	if err == nil {
		err = refused
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, powercut.ErrPowerOff):
		return err
	case errors.Is(err, wal.ErrPoisoned):
		c.count.poisoned.Add(1)
		return c.reopen(t)
	case errors.Is(err, wal.ErrFull):
		c.count.full.Add(1)
	case errors.Is(err, syscall.EIO):
		c.count.refused.Add(1)
	default:
		return err
	}
	c.decide()
	c.settle(t)
	if c.rng.IntN(2) == 0 {
		return c.reopen(t)
	}
	c.fsys.Inject(nil)
	c.fsys.SetFree(-1)
	return c.resume()
}

// decide waits until every ticket is decided: a log that refused one write has
// refused all that was queued, or flushes it now.
func (c *cutClient) decide() {
	_ = c.l.Sync(bg) // the tickets say it, each for itself
	for _, ticket := range c.tickets {
		<-ticket.Done()
	}
}

// resume goes on after a write that was taken back. Tickets that are not decided
// were not touched: the fault was a sidecar's.
func (c *cutClient) resume() error {
	if len(c.tickets) == 0 && len(c.m.log) > max(c.m.kept, c.m.opened) {
		c.m.takenBack()
		c.carried = carriedOf(c.m.log)
	}
	err := c.l.Resume()
	if errors.Is(err, wal.ErrPoisoned) {
		return nil // the next operation says so
	}
	return err
}
