package peer

import (
	"errors"
	"sync"
)

// batchLog is a log without group commit: one call appends records and makes them
// durable with one sync. The committer alone calls it.
type batchLog interface {
	appendBatch(recs [][]byte) error
	Close() error
}

// committer is the group commit in front of a batchLog: what arrives during a sync is
// the next batch.
type committer struct {
	log     batchLog
	stopped chan struct{}

	mu      sync.Mutex
	arrived sync.Cond
	open    *group // takes arrivals
	spare   [][]byte
	closing bool
}

// group is the records of one batch call.
type group struct {
	recs [][]byte
	done chan struct{}
	err  error // final once done is closed
}

var errClosed = errors.New("the log is closed")

func newGroup(recs [][]byte) *group { return &group{recs: recs, done: make(chan struct{})} }

func commitFor(log batchLog) *committer {
	c := &committer{log: log, stopped: make(chan struct{}), open: newGroup(nil)}
	c.arrived.L = &c.mu
	go c.run()
	return c
}

// Producer is the same function for all: records stay the caller's until it returns.
func (c *committer) Producer(int) func(rec []byte) error { return c.append }

func (c *committer) append(rec []byte) error {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return errClosed
	}
	g := c.open
	g.recs = append(g.recs, rec)
	c.mu.Unlock()
	c.arrived.Signal()
	<-g.done
	return g.err
}

func (c *committer) run() {
	defer close(c.stopped)
	for {
		g := c.next()
		if g == nil {
			return
		}
		g.err = c.log.appendBatch(g.recs)
		clear(g.recs)
		c.mu.Lock()
		c.spare = g.recs[:0]
		c.mu.Unlock()
		close(g.done)
	}
}

// next takes what has arrived, or nil after Close.
func (c *committer) next() *group {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.open.recs) == 0 {
		if c.closing {
			return nil
		}
		c.arrived.Wait()
	}
	g := c.open
	c.open = newGroup(c.spare)
	c.spare = nil
	return g
}

func (c *committer) Close() error {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.arrived.Signal()
	<-c.stopped
	return c.log.Close()
}
