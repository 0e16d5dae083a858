package sim

import (
	"io"
	"log/slog"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
)

// Config of a run. Default fills it for a seed; everything that happens follows from it.
type Config struct {
	Seed uint64
	// Steps and Span end the faulty part of a run: so many steps, or so much virtual time.
	Steps int
	Span  time.Duration
	// Events are how many crashes, stalls, outages, operator's acts and clock steps come in it.
	Events int
	// Stalls are events that hold a process up, on top of those.
	Stalls int
	// Trims are events that give rows of a stream up, likewise.
	Trims int
	// Losses are events that lose objects or copies of them, or claim it, likewise.
	Losses int
	// Rollback: the catalog loses its last commits.
	Rollback bool

	Writers, Auditors, Readers, Followers int
	Shards                                uint32
	Buckets                               int // of the class's set

	ReadGrace, OrphanGrace, Lease time.Duration
	SegmentAge                    time.Duration
	// Pace is the longest pause of a client between two appends.
	Pace time.Duration
	// PartSize makes slots of a few KiB multipart uploads.
	PartSize int64
	Rates    Rates

	// calm: nothing goes wrong, and what it costs is counted.
	calm bool

	// Hooks plant faults, which the run has to notice.
	Hooks Hooks
	// Trace gets every step as it happens; nil: only a failure shows the last ones.
	Trace io.Writer
	// Log gets what the processes log; nil: nothing.
	Log *slog.Logger
}

// Hooks stand between a process and what it works on; each may be nil. name is the
// process's role: "w1", "a1", "r1", "op", or "end" for those that run after the faults.
//
// What a hook changes is planted: the scheduler's faults and the rules' checks stand on the
// other side of it, where the real bucket, catalog and disk are. So a Store hook that
// swallows a delete, a Disk hook whose Sync does not sync, and a Catalog hook that answers
// for the catalog each are a bug of the process.
type Hooks struct {
	// Store wraps the bucket's driver below the process's objstore.Store and below its steps.
	Store func(name string, d objstore.Driver) objstore.Driver
	// Requests wraps the process's driver above its steps, below objstore.Store: what it
	// makes of an answer, an injected fault's too, is what the process believes.
	Requests func(name string, d objstore.Driver) objstore.Driver
	// Catalog wraps the catalog below the process's steps.
	Catalog func(name string, c catalog.Catalog) catalog.Catalog
	// Above wraps the process's catalog above its steps: what it does not pass on never
	// becomes one.
	Above func(name string, c catalog.Catalog) catalog.Catalog
	// Disk wraps a writer's file system, below its steps.
	Disk func(name string, fs wal.FS) wal.FS
	// Skip names guards that the catalog does not ask.
	Skip map[memory.Guard]bool
}

func (h *Hooks) store(name string, d objstore.Driver) objstore.Driver {
	if h.Store == nil {
		return d
	}
	return h.Store(name, d)
}

func (h *Hooks) requests(name string, d objstore.Driver) objstore.Driver {
	if h.Requests == nil {
		return d
	}
	return h.Requests(name, d)
}

func (h *Hooks) catalog(name string, c catalog.Catalog) catalog.Catalog {
	if h.Catalog == nil {
		return c
	}
	return h.Catalog(name, c)
}

func (h *Hooks) above(name string, c catalog.Catalog) catalog.Catalog {
	if h.Above == nil {
		return c
	}
	return h.Above(name, c)
}

func (h *Hooks) disk(name string, fs wal.FS) wal.FS {
	if h.Disk == nil {
		return fs
	}
	return h.Disk(name, fs)
}

// Default is the run of a seed: small, and nasty.
func Default(seed uint64) Config {
	return Config{
		Seed: seed, Steps: 3000, Span: 6 * time.Minute, Events: 24,
		Writers: 2, Auditors: 2, Readers: 1, Followers: 1, Shards: 1 + uint32(seed%2), Buckets: 1 + int(seed%3/2), Rollback: seed%7 == 3,
		ReadGrace: 20 * time.Second, OrphanGrace: time.Minute, Lease: 15 * time.Second,
		SegmentAge: 2 * time.Second, Pace: 4 * time.Second, PartSize: 2 << 10,
		Rates: DefaultRates().scaled(seed),
	}
}
