package localtier

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// askEvery is how long an answer about free disk space is good for while there is plenty:
// appends are many. Near the margin every append asks, for in this time many are written.
const askEvery = time.Second

// freeDisk remembers how much the file system had left.
type freeDisk struct {
	dir   string
	least int64 // negative: not asked at all
	now   func() time.Time
	ask   func(dir string) (int64, error) // nil: freeOn; tests fill a disk

	asking sync.Mutex // one asks at a time
	last   atomic.Pointer[freeAnswer]
}

// freeAnswer never changes once it is given.
type freeAnswer struct {
	at   time.Time
	free int64
}

// plenty is how many times the margin has to be free for an answer to be kept.
const plenty = 2

func (d *freeDisk) good(a *freeAnswer, now time.Time) bool {
	return a != nil && a.free/plenty >= d.least && now.Sub(a.at) < askEvery
}

func (d *freeDisk) left() (int64, error) { return d.leftAt(d.now()) }

func (d *freeDisk) leftAt(now time.Time) (int64, error) {
	if d.least < 0 {
		return math.MaxInt64, nil
	}
	if last := d.last.Load(); d.good(last, now) {
		return last.free, nil
	}
	d.asking.Lock()
	defer d.asking.Unlock()
	if last := d.last.Load(); d.good(last, now) {
		return last.free, nil
	}
	ask := d.ask
	if ask == nil {
		ask = freeOn
	}
	free, err := ask(d.dir)
	if err != nil {
		return 0, err
	}
	d.last.Store(&freeAnswer{at: now, free: free})
	return free, nil
}

// freeOn is what the file system of dir has left for us.
func freeOn(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:gosec,unconvert // no disk passes an int64; the types differ by platform
}
