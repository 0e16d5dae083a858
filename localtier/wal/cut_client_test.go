package wal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// segmentCopy is a segment as the shared tier would have it.
type segmentCopy struct {
	uuid  segment.UUID
	bytes []byte
}

// cutClient is the one client of a directory.
type cutClient struct {
	seed  uint64
	rng   *rand.Rand
	count *cutCount
	fsys  *powercut.FS
	l     *wal.Log
	m     model
	// tickets of m.log[m.kept:], in order, as long as nothing was refused.
	tickets []wal.Ticket
	carried carriedState // with what is queued
	copies  map[segment.ID]segmentCopy
	serial  int
	boot    int
	eager   bool // this boot writes over spare files and zeros wherever it can
}

func newCutClient(seed uint64, count *cutCount) *cutClient {
	return &cutClient{
		seed: seed, count: count, fsys: powercut.New(), rng: rand.New(rand.NewPCG(seed, 11)),
		copies: map[segment.ID]segmentCopy{},
	}
}

func (c *cutClient) run(t *testing.T) {
	t.Helper()
	for c.boot = range 4 {
		c.count.boots.Add(1)
		c.eager = c.rng.IntN(2) == 0
		c.live(t)
		c.cut(t)
	}
	c.fsys.PowerOffAfter(-1)
	if err := c.open(false); err != nil {
		c.fatal(t, err)
	}
	if err := c.l.Close(); err != nil {
		c.fatal(t, err)
	}
}

func (c *cutClient) fatal(t *testing.T, err error) {
	t.Helper()
	t.Fatalf("seed %d, boot %d: %v (%s=%d runs it alone)", c.seed, c.boot, err, envCutSeed, c.seed)
}

// cut takes the power away; what was under way ends with the log.
func (c *cutClient) cut(t *testing.T) {
	t.Helper()
	how := c.rng.Uint64()
	if c.rng.IntN(3) == 0 {
		how = 0
		c.count.syncedOnly.Add(1)
	}
	next := c.fsys.Cut(how)
	if c.l != nil {
		stop(c.l) // without power it can only fail
		c.settle(t)
		c.l = nil
	}
	c.fsys = next
}

func (c *cutClient) config() wal.Config {
	cfg := config(c.fsys)
	// Nothing is written before somebody flushes, so that groups are what the seed
	// makes them.
	cfg.BatchWindow = 10 * time.Second
	if c.eager {
		cfg = cfg.Eager()
	}
	cfg.NextStart = func(s *segment.Start) error {
		s.Consumers, s.Producers = c.carried.consumers(), c.carried.producers.List()
		return nil
	}
	return cfg
}

// open opens the log and holds it against the model.
func (c *cutClient) open(blind bool) error {
	r := &replayed{segments: map[segment.ID]bool{}}
	sink := r.take
	if blind = blind && len(c.m.others) == 0; blind {
		sink = nil
	}
	l, err := wal.Open(bg, shardDir, c.config(), sink)
	if err != nil {
		return err
	}
	c.l = l
	had := len(c.m.log)
	if blind {
		c.count.trust.Add(1)
		err = c.m.trusted(l.State())
	} else {
		err = c.m.shown(r)
	}
	c.count.lostUnacked.Add(int64(max(0, had-len(c.m.log))))
	c.carried = carriedOf(c.m.log)
	if st := l.State(); err == nil && st.Next != nextOf(c.m.log) && st.Segment != 0 {
		err = fmt.Errorf("next seq is %d, want %d", st.Next, nextOf(c.m.log))
	}
	if got := l.Reclaimed().Segment; got < c.m.reclaimed || got > c.m.reclaim {
		err = errors.Join(err, fmt.Errorf("reclaimed through %d, %d was durable and %d asked for", got, c.m.reclaimed, c.m.reclaim))
	}
	return errors.Join(err, c.carried.want(l.Carried()), c.m.checkpointed(l.LastCheckpoint()))
}

// live is one boot, until the power goes or the client has done enough.
func (c *cutClient) live(t *testing.T) {
	t.Helper()
	if c.rng.IntN(4) == 0 {
		c.fsys.PowerOffAfter(c.rng.IntN(14)) // while it opens
	}
	err := c.open(c.rng.IntN(4) == 0)
	c.countTorn()
	if errors.Is(err, powercut.ErrPowerOff) {
		c.count.inOpen.Add(1)
		return
	}
	if err != nil {
		c.fatal(t, err)
	}
	c.fsys.PowerOffAfter(-1)
	if c.rng.IntN(4) > 0 {
		c.fsys.PowerOffAfter(c.rng.IntN(90))
	}
	for range 5 + c.rng.IntN(50) {
		err := c.step(t)
		if errors.Is(err, powercut.ErrPowerOff) {
			c.count.inWork.Add(1)
			return
		}
		if err != nil {
			c.fatal(t, err)
		}
	}
	c.count.idle.Add(1)
}

func (c *cutClient) countTorn() {
	names, err := c.fsys.ReadDir(shardDir)
	if err == nil && slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, ".torn") }) {
		c.count.torn.Add(1)
	}
}
