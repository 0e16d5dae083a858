package sim

import (
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/segment"
)

// Faults of a disk befall one shard's directory: which of two shards' operations comes
// first is not the seed's to say.

// inject has the nth change of a kind in a shard's directory, and with on all that follow,
// refused.
func (m *machine) inject(c segment.Chain, kinds []powercut.Kind, nth int, on bool, err error) {
	dir := "/" + m.name + "/" + c.String() + "/"
	seen := 0
	m.disk.Inject(func(op powercut.Op) error {
		if !strings.HasPrefix(op.Path, dir) {
			return nil
		}
		for _, k := range kinds {
			if op.Kind != k {
				continue
			}
			if seen++; seen == nth || on && seen > nth {
				if err == powercut.ErrPowerOff { //nolint:errorlint // our own
					m.dark.Store(true)
				}
				return err
			}
		}
		return nil
	})
}

// powerGone says that the disk is off, or about to be.
func (m *machine) powerGone() bool { return m.disk.Off() || m.dark.Load() }

// dark is set by a fault that is to end the process.
type dark = atomic.Bool

func changes() []powercut.Kind {
	return []powercut.Kind{
		powercut.KindCreate, powercut.KindWrite, powercut.KindTruncate, powercut.KindSync, powercut.KindRename, powercut.KindRemove, powercut.KindSyncDir,
	}
}

// shardOf draws a chain of the newest epoch.
func (s *Sim) drawChain() segment.Chain {
	all := s.epochs()
	t := all[len(all)-1]
	return segment.Chain{Epoch: t.Epoch, Shard: segment.Shard(s.rng.IntN(int(t.Shards)))}
}

// eventPowerCut takes the power away at some change of a disk.
func (s *Sim) eventPowerCut() {
	if p := s.victim("w"); p != nil {
		s.note(p.name, "power goes", "after some changes")
		p.machine.inject(s.drawChain(), changes(), 1+s.rng.IntN(40), true, powercut.ErrPowerOff)
	}
}

func (s *Sim) eventSyncFails() {
	if p := s.victim("w"); p != nil {
		kinds := changes()
		kind := kinds[s.rng.IntN(len(kinds))]
		if s.rng.IntN(2) == 0 {
			kind = powercut.KindSync
		}
		s.note(p.name, "disk fails", string(kind))
		p.machine.inject(s.drawChain(), []powercut.Kind{kind}, 1+s.rng.IntN(6), false, syscall.EIO)
	}
}

func (s *Sim) eventDiskFull() {
	p := s.victim("w")
	if p == nil {
		return
	}
	s.note(p.name, "disk full", "")
	disk := p.machine.disk
	p.machine.inject(s.drawChain(), []powercut.Kind{powercut.KindWrite, powercut.KindCreate}, 1+s.rng.IntN(8), true, syscall.ENOSPC)
	s.in(s.between(time.Second, 20*time.Second), func() { disk.Inject(nil) })
}
