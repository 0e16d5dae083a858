package localtier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"

	"github.com/strandline/strandline/localtier/wal"
)

func osFS() wal.FS { return wal.OSFS(false) }

// sickFS is a disk whose fsyncs fail on demand.
type sickFS struct {
	wal.FS
	sick atomic.Bool
	full atomic.Bool

	stall         atomic.Bool // the next Sync says so on syncing and waits for goOn
	syncing, goOn chan struct{}
}

var errSick = errors.New("input/output error")

func (f *sickFS) fail(on bool) { f.sick.Store(on) }

func (f *sickFS) Create(name string) (wal.File, error) {
	file, err := f.FS.Create(name)
	return &sickFile{file, f}, err
}

func (f *sickFS) OpenWrite(name string) (wal.File, error) {
	file, err := f.FS.OpenWrite(name)
	return &sickFile{file, f}, err
}

type sickFile struct {
	wal.File
	fs *sickFS
}

func (f *sickFile) WriteAt(p []byte, off int64) (int, error) {
	if f.fs.full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.WriteAt(p, off)
}

func (f *sickFile) Sync() error {
	if f.fs.stall.Load() {
		f.fs.syncing <- struct{}{}
		<-f.fs.goOn
	}
	if f.fs.sick.Load() {
		return errSick
	}
	return f.File.Sync()
}

// awayCatalog is one that does not answer for a while.
type awayCatalog struct {
	Catalog
	away atomic.Bool
}

func (c *awayCatalog) check() error {
	if c.away.Load() {
		return fmt.Errorf("%w: away", catalog.ErrUnavailable)
	}
	return nil
}

func (c *awayCatalog) RenewChain(ctx context.Context, ch segment.Chain, owner segment.UUID, term segment.Term, lease time.Duration) (catalog.ChainRow, error) {
	if err := c.check(); err != nil {
		return catalog.ChainRow{}, err
	}
	return c.Catalog.RenewChain(ctx, ch, owner, term, lease)
}

func (c *awayCatalog) AbsorbSlot(ctx context.Context, a catalog.Absorb) (catalog.Absorbed, error) {
	if err := c.check(); err != nil {
		return catalog.Absorbed{}, err
	}
	return c.Catalog.AbsorbSlot(ctx, a)
}

// handClock moves when told to.
type handClock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *handClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}
