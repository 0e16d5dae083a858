package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// process is one life of a writer, an auditor, a reader or the operator.
type process struct {
	sim  *Sim
	name string // of the role: a process started again has it again
	life int
	ctx  context.Context
	end  context.CancelFunc

	dead         bool            // Sim.mu
	stalledUntil time.Time       // Sim.mu
	counts       map[string]int  // Sim.mu; calls by identity
	uuids        map[string]int  // Sim.mu; made, by directory
	served       int             // the main loop's own: how often it opened a writer
	nonces       atomic.Int64    // given out
	stepped      time.Duration   // Sim.mu; what its clock is ahead
	finished     bool            // Sim.mu; of a command
	doomed       string          // Sim.mu; the crash point that it is held at
	held         []chan struct{} // Sim.mu; those that are held there, until it is dead
	reading      time.Time       // since when the read under way reads; its loop's own
	audits       bool            // an auditor works in it
	immune       bool            // nothing befalls it
	command      bool            // an operator's: it does not start again by itself
	machine      *machine        // a writer's

	catalog catalog.Catalog
	classes objstore.Classes
	done    sync.WaitGroup
}

// newProcess wires a process; it does nothing yet.
func (s *Sim) newProcess(name string) (*process, error) {
	s.lives[name]++
	p := &process{sim: s, name: name, life: s.lives[name], reading: time.Now(), counts: map[string]int{}, uuids: map[string]int{}}
	p.ctx, p.end = context.WithCancel(context.Background())
	var set objstore.Set
	for _, b := range s.buckets {
		store, err := newStore(p, b)
		if err != nil {
			return nil, err
		}
		set = append(set, store)
	}
	p.catalog = s.cfg.Hooks.above(p.name, newCatalog(p, s.cfg.Hooks.catalog(p.name, s.cat)))
	p.classes = objstore.Classes{string(segment.ClassStandard): set}
	return p, nil
}

// kill ends a process as SIGKILL and a power cut do: from here on no call of it happens,
// and none succeeds. What it had sent may still arrive.
func (s *Sim) kill(p *process, why string) {
	s.mu.Lock()
	if p.dead {
		s.mu.Unlock()
		return
	}
	p.dead = true
	s.trace.note(p.name, "crash", why)
	var parked, rest []*call
	for _, c := range s.parked {
		if c.p == p {
			parked = append(parked, c)
		} else {
			rest = append(rest, c)
		}
	}
	s.parked = rest
	for _, c := range parked {
		if c.mutates && c.seen {
			s.late = append(s.late, c)
		}
		c.fate <- fate{kind: FaultDead}
	}
	held := p.held
	p.held = nil
	s.mu.Unlock()
	if p.machine != nil {
		p.machine.disk.PowerOff()
	}
	p.end()
	for _, gone := range held { // also of one that something else killed first
		close(gone)
	}
}

// hit counts what a process came by, as long as it lives: who dies ends all that it does at
// once, in any order.
func (p *process) hit(what string) {
	p.sim.mu.Lock()
	defer p.sim.mu.Unlock()
	if !p.dead {
		p.sim.cover.hit(what)
	}
}

func (p *process) alive() bool {
	p.sim.mu.Lock()
	defer p.sim.mu.Unlock()
	return !p.dead
}

// over says that a command came to its end, or was killed.
func (p *process) over() bool {
	p.sim.mu.Lock()
	defer p.sim.mu.Unlock()
	return p.command && (p.finished || p.dead)
}

// now is the process's clock.
func (p *process) now() time.Time {
	p.sim.mu.Lock()
	defer p.sim.mu.Unlock()
	if p.stepped == 0 {
		return time.Now()
	}
	return time.Now().Round(0).Add(p.stepped)
}

// jitter draws a pause from the seed and the moment: goroutines that draw in one moment may
// do so in any order.
func (p *process) jitter(window time.Duration) time.Duration {
	at := time.Since(p.sim.trace.began)
	return time.Duration(p.rand("jitter "+at.String(), 0).Int64N(int64(window)+1)) + 1
}

// newUUID makes the next one of a directory: compressed sizes depend on them.
func (p *process) newUUID(dir string) (u segment.UUID) {
	p.sim.mu.Lock()
	p.uuids[dir]++
	n := p.uuids[dir]
	p.sim.mu.Unlock()
	rng := p.rand("uuid "+dir, n)
	binary.LittleEndian.PutUint64(u[:], rng.Uint64())
	binary.LittleEndian.PutUint64(u[8:], rng.Uint64())
	return u
}

// rand is a stream of its own for one purpose.
func (p *process) rand(purpose string, n int) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %d %s %d", p.name, p.life, purpose, n)
	return rand.New(rand.NewPCG(p.sim.cfg.Seed, h.Sum64()))
}

// pause waits; false if the process ended.
func (p *process) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *process) log() *slog.Logger {
	if p.sim.cfg.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return p.sim.cfg.Log.With("p", fmt.Sprintf("%s#%d", p.name, p.life))
}

// cut is asked at every crash point of localtier.
func (p *process) cut(step localtier.Step) error {
	s := p.sim
	name := string(step)
	p.hit("cut point " + name)
	s.mu.Lock()
	// By the moment: two shards of a writer may come by in one, in any order.
	at := time.Since(s.trace.began).String()
	die := !s.direct && !p.immune && !p.dead && p.rand("cut "+name+at, 0).IntN(1000) < s.cfg.Rates.CutStep*rarity(step)
	s.mu.Unlock()
	if die {
		s.stopAt(p, name)
	}
	if die || !p.alive() {
		return errDead
	}
	return nil
}

// rarity makes up for crash points that are seldom passed.
func rarity(step localtier.Step) int {
	switch step {
	case localtier.StepTakenBack, localtier.StepLetGo, localtier.StepPlanned, localtier.StepWatermark, localtier.StepReclaimed:
		return 12
	case localtier.StepSetAside, localtier.StepJudged, localtier.StepAcquired, localtier.StepFencePlaced, localtier.StepFenced:
		return 2
	}
	return 1
}

// writerOptions of a process on its machine.
func (p *process) writerOptions(t catalog.Topology) localtier.Options {
	s := p.sim
	fsys := s.cfg.Hooks.disk(p.name, p.machine.disk)
	return localtier.Options{
		Dir: "/" + p.machine.name, Catalog: p.catalog, Classes: p.classes, Topology: t, Address: p.name,
		Logger: p.log(), Now: p.now, Cut: p.cut,
		Config: localtier.Config{
			WAL: wal.Config{
				SegmentBytes: segment.MinSegmentBytes, SegmentAge: s.cfg.SegmentAge, BatchWindow: time.Millisecond,
				Preallocate: s.preallocate(), FS: &processDisk{FS: fsys, p: p}, NewUUID: p.newUUID,
			},
			SharedWindow: 250 * time.Millisecond, LeaseTime: s.cfg.Lease, MinFreeDisk: -1,
			Housekeeping: 7 * time.Second, RetentionEvery: 11 * time.Second, TopologyEvery: 3 * time.Second,
			Backoff: 100 * time.Millisecond, MaxBackoff: 5 * time.Second, Jitter: p.jitter, MaxStreams: 4,
			Hydrating: 1000, // who waits for whose turn would be in the Go scheduler's hands
		},
	}
}

func (s *Sim) preallocate() wal.Preallocation {
	if s.cfg.Seed%4 == 0 {
		return wal.PreallocateAuto
	}
	return wal.PreallocateOff
}

// openTopology waits for an epoch that takes rows.
func (p *process) openTopology(ctx context.Context) (catalog.Topology, bool) {
	for n := 0; ; n++ {
		all, err := p.catalog.Topologies(ctx)
		if err == nil {
			for i := len(all) - 1; i >= 0; i-- {
				if all[i].State == catalog.TopologyOpen {
					return all[i], true
				}
			}
		}
		if !p.pause(ctx, time.Second+p.jitter(time.Second)) {
			return catalog.Topology{}, false
		}
	}
}

// runWriter is a writer's main loop: open, serve, and begin anew when its shards
// stopped or the epoch is over.
func (p *process) runWriter() {
	for p.ctx.Err() == nil {
		t, ok := p.openTopology(p.ctx)
		if !ok {
			return
		}
		o := p.writerOptions(t)
		p.served++
		o.Steal = p.rand("steal", p.served).IntN(8) == 0
		w, err := localtier.Open(p.ctx, o)
		p.hit("open " + kindOf(err))
		if err != nil {
			p.sim.check.openFailed(p, err)
			p.pause(p.ctx, time.Second+p.jitter(4*time.Second))
			continue
		}
		p.serve(w, t)
		ctx, cancel := context.WithTimeout(p.ctx, 20*time.Second)
		err = w.Close(ctx)
		cancel()
		p.hit("close " + kindOf(err))
	}
}
