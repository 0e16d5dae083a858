package instance

import (
	"errors"
	"syscall"
	"time"
)

// warnEvery keeps a disk that stays full or broken from filling the log, too.
const warnEvery = time.Minute

// unwritten is what a failed write of a block leads to: it is counted, told once in a
// while, and if the disk is full below the bound, the bound comes down.
func (c *Cache) unwritten(err error) {
	n := c.stats.writeErrors.Add(1)
	now := c.cfg.Clock()
	c.mu.Lock()
	tell := c.told.IsZero() || now.Sub(c.told) >= warnEvery
	if tell {
		c.told = now
	}
	c.mu.Unlock()
	if tell {
		c.cfg.Logger.Warn("a block could not be cached: it is read from the store each time", "write_errors", n, "error", err)
	}
	if errors.Is(err, syscall.ENOSPC) {
		c.shrink()
	}
}

// shrink makes seven eighths of what the files hold now the bound, until the next start:
// on a disk with less room than was given, new blocks take the place of old ones instead
// of failing each. Below one fill there is nothing to gain.
func (c *Cache) shrink() {
	c.mu.Lock()
	bound := c.used - c.used/8
	less := bound >= fillBlocks*BlockBytes && bound < c.bound
	if less {
		c.bound = bound
	}
	c.mu.Unlock()
	if !less {
		return
	}
	c.cfg.Logger.Warn("the disk is full below --cache-bytes: the cache holds less from here on", "cache_bytes", c.cfg.Bytes, "now", bound)
	c.policy.SetMaximum(policyWeight(bound))
	c.policy.CleanUp()
}

// policyWeight is what the policy may hold of a bound. The rest is headroom: files that
// are written before, and unlinked after, the policy knows.
func policyWeight(bound int64) uint64 {
	return uint64(bound - min(bound/8, 256<<20)) //nolint:gosec // positive
}
