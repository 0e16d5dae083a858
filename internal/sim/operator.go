package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// operate runs one command of the operator's, as a process of its own, until it worked or
// was tried often enough: an operator runs a command again.
func (s *Sim) operate(what string, tries int, command func(ctx context.Context, p *process) error) {
	name := fmt.Sprintf("op%d", s.lives["op"]+1)
	s.lives["op"]++
	p, err := s.newProcess(name)
	if err != nil {
		s.check.violated("start", "%s: %v", name, err)
		return
	}
	s.note(name, what, "")
	p.command = true
	s.processes[name] = p
	s.running.Go(func() {
		for n := 0; n < tries && p.ctx.Err() == nil; n++ {
			err := command(p.ctx, p)
			p.hit("operator " + what + " " + kindOf(err))
			if err == nil {
				break
			}
			p.pause(p.ctx, time.Second+p.jitter(5*time.Second))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		p.finished = true
	})
}

// operatorTrim gives up a stream's rows below a position of its history.
func (s *Sim) operatorTrim() {
	stream := streamNames[s.rng.IntN(len(streamNames))]
	draw := s.rng.Float64()
	if s.rng.IntN(2) == 0 {
		draw = 1 - draw/8 // what was appended last, which may not be settled yet
	}
	s.operate("trim", 3, func(ctx context.Context, p *process) error {
		at, ok := s.check.trimTo(stream, draw)
		if !ok {
			return nil
		}
		_, err := p.catalog.TrimStream(ctx, stream, at)
		if errors.Is(err, catalog.ErrNotFound) || errors.Is(err, catalog.ErrBeyondTip) {
			return nil
		}
		return err
	})
}

// trimTo draws a position of a stream's history and allows a trim to it.
func (k *checker) trimTo(stream string, draw float64) (segment.Pos, bool) {
	k.sim.applying.Lock()
	defer k.sim.applying.Unlock()
	t := k.model.stream(stream)
	if len(t.at) == 0 {
		return segment.Pos{}, false
	}
	at := t.at[int(draw*float64(len(t.at)))]
	k.trims[stream] = later(k.trims[stream], at)
	return at, true
}

func (s *Sim) operatorRemove() {
	stream := streamNames[s.rng.IntN(len(streamNames))]
	s.operate("rm", 3, func(ctx context.Context, p *process) error {
		_, err := p.catalog.DeleteStream(ctx, stream)
		if errors.Is(err, catalog.ErrNotFound) {
			return nil
		}
		return err
	})
}

// operatorRetention sets a policy that gives up, or one that keeps.
func (s *Sim) operatorRetention() {
	r := catalog.Retention{Mode: catalog.RetentionInterest, SegmentBytes: 1000, MinSegments: 1}
	switch s.rng.IntN(4) {
	case 0:
		r.Rows = 1 + uint64(s.rng.IntN(60))
	case 1:
		r.Bytes = 1 + int64(s.rng.IntN(8000))
	case 2:
		r.Age = s.between(5*time.Second, time.Minute)
	case 3:
		r = catalog.Retention{Mode: catalog.RetentionKeep}
	}
	if r.Mode == catalog.RetentionInterest {
		s.applying.Lock()
		s.retained = true
		s.applying.Unlock()
	}
	s.operate("retention", 3, func(ctx context.Context, p *process) error {
		all, err := p.catalog.Topologies(ctx)
		if err != nil || len(all) == 0 {
			return err
		}
		_, err = p.catalog.SetRetention(ctx, all[len(all)-1].Epoch, r)
		return err
	})
}

// operatorReshard makes the next epoch (03 §3, topology change), as `topology set` does.
func (s *Sim) operatorReshard() {
	shards := 1 + uint32(s.rng.IntN(2))
	settle := s.rng.IntN(5) > 0
	s.operate("reshard", 6, func(ctx context.Context, p *process) error { return p.reshard(ctx, shards, settle) })
}

func (p *process) reshard(ctx context.Context, shards uint32, settle bool) error {
	all, err := p.catalog.Topologies(ctx)
	if err != nil {
		return err
	}
	last := all[len(all)-1]
	next := last
	if last.State == catalog.TopologyOpening {
		all = all[:len(all)-1]
	} else {
		next = catalog.Topology{
			Epoch: last.Epoch + 1, Shards: shards, Class: last.Class, Buckets: last.Buckets, Settle: settle,
			State: catalog.TopologyOpening, Retention: last.Retention,
		}
	}
	if last.Epoch > 4 && last.State == catalog.TopologyOpen {
		return nil
	}
	if _, err := check.EnsureEpoch(ctx, p.catalog, p.classes, next); err != nil {
		return err
	}
	for _, old := range all {
		if err := p.closeEpoch(ctx, old); err != nil {
			return err
		}
	}
	_, err = p.catalog.SetTopologyState(ctx, next.Epoch, catalog.TopologyOpening, catalog.TopologyOpen)
	return err
}

// closeEpoch waits for the owners for a while, and takes their chains over.
func (p *process) closeEpoch(ctx context.Context, t catalog.Topology) (err error) {
	if t.State == catalog.TopologyOpen {
		if t, err = p.catalog.SetTopologyState(ctx, t.Epoch, catalog.TopologyOpen, catalog.TopologyClosing); err != nil {
			return err
		}
	}
	if t.State == catalog.TopologyClosed {
		return nil
	}
	if !p.sim.isDirect() {
		p.pause(ctx, 8*time.Second+p.jitter(8*time.Second))
	}
	for shard := range segment.Shard(t.Shards) {
		o := p.writerOptionsWithout(t)
		o.Steal = true
		if _, err := localtier.CloseChain(ctx, o, shard); err != nil {
			return err
		}
	}
	_, err = p.catalog.SetTopologyState(ctx, t.Epoch, catalog.TopologyClosing, catalog.TopologyClosed)
	return err
}

// writerOptionsWithout are those of an act that has no directory.
func (p *process) writerOptionsWithout(t catalog.Topology) localtier.Options {
	return localtier.Options{
		Catalog: p.catalog, Classes: p.classes, Topology: t, Logger: p.log(), Now: p.now, Cut: p.cut,
		Config: localtier.Config{WAL: wal.Config{NewUUID: p.newUUID}, LeaseTime: p.sim.cfg.Lease, MinFreeDisk: -1, Jitter: p.jitter},
	}
}
