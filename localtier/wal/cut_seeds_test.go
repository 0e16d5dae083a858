package wal_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// cutSeeds is how many seeds TestPowerCutSeeds runs; the environment may ask for
// another number of them, or for one alone.
const (
	cutSeeds    = 3000
	envCutSeeds = "WAL_CUT_SEEDS"
	envCutSeed  = "WAL_CUT_SEED"
)

// TestPowerCutSeeds: random operations of one client, boot after boot on one
// directory. The power goes at a random change of the disk, or while nothing is
// under way; what the next boot finds is what was synced and a random part of the
// rest. A model stands beside: every acknowledged frame is there after each cut,
// in order, once, and there is no false corruption.
func TestPowerCutSeeds(t *testing.T) {
	first, n := uint64(0), uint64(cutSeeds)
	switch {
	case os.Getenv(envCutSeed) != "":
		first, n = envNumber(t, envCutSeed), 1
	case os.Getenv(envCutSeeds) != "":
		n = envNumber(t, envCutSeeds)
	case testing.Short() || raceEnabled:
		n = cutSeeds / 20
	}
	var count cutCount
	begin := time.Now()
	const workers = 4
	t.Run("seeds", func(t *testing.T) {
		for w := range uint64(workers) {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for seed := first + w; seed < first+n; seed += workers {
					newCutClient(seed, &count).run(t)
				}
			})
		}
	})
	t.Logf("%d seeds in %v: %s", n, time.Since(begin).Round(time.Millisecond), &count)
	if n >= 100 {
		count.allHit(t)
	}
}

func envNumber(t *testing.T, name string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// cutCount says what the seeds met: a case that was never met proves nothing.
type cutCount struct {
	boots, inWork, inOpen, idle, syncedOnly     atomic.Int64
	poisoned, refused, full, torn, lostUnacked  atomic.Int64
	acked, checkpoints, removed, reopens, trust atomic.Int64
	reclaims, adopted                           atomic.Int64
}

func (c *cutCount) String() string {
	return fmt.Sprintf("%d boots; cuts %d in work, %d in an open, %d idle (%d with synced bytes only); "+
		"%d fsyncs failed, %d writes refused, %d disks full; %d torn tails kept, %d unacknowledged frames gone; "+
		"%d frames acknowledged, %d checkpoints, %d segments removed, %d reclaims, %d adopted, %d reopens, %d opens without a replay",
		c.boots.Load(), c.inWork.Load(), c.inOpen.Load(), c.idle.Load(), c.syncedOnly.Load(),
		c.poisoned.Load(), c.refused.Load(), c.full.Load(), c.torn.Load(), c.lostUnacked.Load(),
		c.acked.Load(), c.checkpoints.Load(), c.removed.Load(), c.reclaims.Load(), c.adopted.Load(), c.reopens.Load(), c.trust.Load())
}

func (c *cutCount) allHit(t *testing.T) {
	t.Helper()
	for name, n := range map[string]*atomic.Int64{
		"cut in work": &c.inWork, "cut in an open": &c.inOpen, "idle cut": &c.idle, "cut to synced bytes": &c.syncedOnly,
		"failed fsync": &c.poisoned, "refused write": &c.refused, "full disk": &c.full, "torn tail": &c.torn,
		"lost unacknowledged frame": &c.lostUnacked, "checkpoint": &c.checkpoints, "removed segment": &c.removed,
		"reclaim": &c.reclaims, "adopted segment": &c.adopted, "reopen": &c.reopens, "open without a replay": &c.trust,
	} {
		if n.Load() == 0 {
			t.Errorf("no seed met a %s", name)
		}
	}
}

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
	gone, err := c.l.Housekeep(bg, retain)
	c.count.removed.Add(int64(len(gone)))
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
