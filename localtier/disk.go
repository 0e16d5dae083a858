package localtier

import (
	"math"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// askEvery is how long an answer about free disk space is good for: appends are
// many, and the margin is large.
const askEvery = time.Second

// freeDisk remembers how much the file system had left.
type freeDisk struct {
	dir   string
	least int64 // negative: not asked at all
	now   func() time.Time

	mu    sync.Mutex
	asked time.Time
	free  int64
}

func (d *freeDisk) left() (int64, error) {
	if d.least < 0 {
		return math.MaxInt64, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	if !d.asked.IsZero() && now.Sub(d.asked) < askEvery {
		return d.free, nil
	}
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		return 0, err
	}
	d.asked, d.free = now, int64(st.Bavail)*int64(st.Bsize) //nolint:gosec,unconvert // no disk passes an int64; the types differ by platform
	return d.free, nil
}
