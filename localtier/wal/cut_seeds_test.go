package wal_test

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
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
	reclaims, adopted, recycled                 atomic.Int64
}

func (c *cutCount) String() string {
	return fmt.Sprintf("%d boots; cuts %d in work, %d in an open, %d idle (%d with synced bytes only); "+
		"%d fsyncs failed, %d writes refused, %d disks full; %d torn tails kept, %d unacknowledged frames gone; "+
		"%d frames acknowledged, %d checkpoints, %d segments removed, %d files recycled, %d reclaims, %d adopted, %d reopens, %d opens without a replay",
		c.boots.Load(), c.inWork.Load(), c.inOpen.Load(), c.idle.Load(), c.syncedOnly.Load(),
		c.poisoned.Load(), c.refused.Load(), c.full.Load(), c.torn.Load(), c.lostUnacked.Load(),
		c.acked.Load(), c.checkpoints.Load(), c.removed.Load(), c.recycled.Load(), c.reclaims.Load(), c.adopted.Load(), c.reopens.Load(), c.trust.Load())
}

func (c *cutCount) allHit(t *testing.T) {
	t.Helper()
	for name, n := range map[string]*atomic.Int64{
		"cut in work": &c.inWork, "cut in an open": &c.inOpen, "idle cut": &c.idle, "cut to synced bytes": &c.syncedOnly,
		"failed fsync": &c.poisoned, "refused write": &c.refused, "full disk": &c.full, "torn tail": &c.torn,
		"lost unacknowledged frame": &c.lostUnacked, "checkpoint": &c.checkpoints, "removed segment": &c.removed,
		"reclaim": &c.reclaims, "recycled file": &c.recycled, "adopted segment": &c.adopted, "reopen": &c.reopens, "open without a replay": &c.trust,
	} {
		if n.Load() == 0 {
			t.Errorf("no seed met a %s", name)
		}
	}
}
