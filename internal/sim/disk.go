package sim

import (
	"context"
	"errors"
	"runtime"
	"strings"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
)

// machine is what outlives a process: a directory's disk.
type machine struct {
	name string
	disk *powercut.FS
	// life counts the disks: a row that was acknowledged on one that was lost since is lost
	// with it.
	life int
	dark dark
}

// processDisk is a machine's disk as one process has it. The committer's fdatasync is a
// step; whatever else a log does with its files happens at once, because it holds locks
// over it that other goroutines wait for.
type processDisk struct {
	wal.FS
	p *process
}

type processFile struct {
	wal.File
	p    *process
	name string
}

func (d *processDisk) wrap(f wal.File, err error, name string) (wal.File, error) {
	if err != nil {
		return nil, err
	}
	return &processFile{f, d.p, name}, nil
}

// Open implements wal.FS.
func (d *processDisk) Open(name string) (wal.File, error) {
	f, err := d.FS.Open(name)
	return d.wrap(f, err, name)
}

// OpenWrite implements wal.FS.
func (d *processDisk) OpenWrite(name string) (wal.File, error) {
	f, err := d.FS.OpenWrite(name)
	return d.wrap(f, err, name)
}

// Create implements wal.FS.
func (d *processDisk) Create(name string) (wal.File, error) {
	f, err := d.FS.Create(name)
	return d.wrap(f, err, name)
}

// errDead is what a dead process is told by its disk.
var errDead = errors.New("the process died")

// Sync implements wal.File.
func (f *processFile) Sync() error {
	if f.p.sim.isDirect() || !byCommitter() {
		return f.File.Sync()
	}
	var err error
	c := &call{p: f.p, what: "disk sync", key: f.name}
	c.apply = func(fate) { err = f.File.Sync() }
	got := f.p.sim.park(context.Background(), c)
	if got.kind != FaultNone {
		return errDead
	}
	return err
}

// byCommitter says that the log's committer syncs the segment that it writes to.
func byCommitter() bool {
	var pcs [8]uintptr
	it := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := it.Next()
		if strings.HasSuffix(f.Function, "wal.(*Log).syncRun") {
			return true
		}
		if !more {
			return false
		}
	}
}
