package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/segment"
)

// Defaults of Config.
const (
	DefaultSegmentBytes = 64 << 20
	DefaultSegmentAge   = 10 * time.Second
	DefaultSpareFiles   = 2
)

// Preallocation says whether the log writes over blocks that were written before.
type Preallocation string

const (
	// PreallocateAuto keeps segment files that housekeeping is done with and writes
	// the next segments over them, and while writes are small writes zeros ahead of
	// itself. On ext4 and xfs an fdatasync then takes half the time.
	PreallocateAuto Preallocation = "auto"
	// PreallocateOff lets every file grow: for file systems that never overwrite in
	// place (btrfs, zfs), where it gains nothing.
	PreallocateOff Preallocation = "off"
)

// Config holds the log's tunables and what it needs from outside. The zero
// value of a tunable is its default.
type Config struct {
	// SegmentBytes is where a segment is sealed by size: 17 MiB to 2 GiB, default
	// 64 MiB. A frame that would pass it goes into the next segment.
	SegmentBytes int64
	// SegmentAge is when a segment is sealed by age, counted from the first frame
	// after its SegmentStart: 1 s to 24 h, default 10 s. It bounds what is lost
	// with the disk.
	SegmentAge time.Duration
	// BatchWindow makes the committer wait on purpose before it writes: 0 to 10 s.
	// The default 0 batches what arrives during an fdatasync, which costs no
	// latency.
	BatchWindow time.Duration
	// Preallocate is auto (the default) or off.
	Preallocate Preallocation
	// SpareFiles is how many files are kept to be written over, of at most
	// SegmentBytes each: 1 to 64, default 2. A log that fills segments faster than they
	// are given up writes growing files once they are used up. Reclaimed rows stay
	// readable in them to whoever can read the directory, until they are overwritten;
	// off keeps none.
	SpareFiles int
	// FullFsync asks for F_FULLFSYNC on macOS, which alone reaches the medium
	// there. It changes nothing elsewhere, and nothing if FS is given.
	FullFsync bool

	// FS is the file layer; nil is the operating system's.
	FS FS
	// Logger gets what an operator should know; nil discards it.
	Logger *slog.Logger
	// NewUUID makes the identities of the segments of a directory, and of the directory
	// itself, never the same twice; nil makes random ones. For the simulator: what compresses
	// to how many bytes depends on them.
	NewUUID func(dir string) segment.UUID
	// Now is the clock of SegmentStart and of seal times; nil is time.Now.
	Now func() time.Time
	// NextStart completes the SegmentStart of a segment that an append opens by
	// itself: Chain, ID, Base, Term, Prev and Created are filled in, Consumers and
	// Producers are to be added as of the frames appended so far. It is called on
	// the appending goroutine, before the frame that needed the segment, under the
	// log's mutex: it must not call the log. An error fails that append.
	NextStart func(*segment.Start) error
	// OnSealed is told of each segment whose Seal is durable, in order, on the
	// committer's goroutine and before those who wait for that Seal, or for a frame
	// of its run, are woken: it must not block and must not call the log. nil tells
	// nobody.
	OnSealed func(SealedSegment)

	tune tuning
}

// tuning is what tests make small.
type tuning struct {
	spareMin   int64 // least bytes of a spare file
	aheadFrom  int64 // a segment gets zeros ahead once it is that long
	aheadBytes int64 // how many at a time
	aheadRun   int64 // and only behind a write of at most this
	writePiece int   // how much of a run is written at a time
}

// Validate checks every knob and reports all faults at once.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	between := func(name string, v, low, high any, ok bool) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s is %v: choose %v to %v", name, v, low, high))
		}
	}
	between("segment-bytes", c.SegmentBytes, segment.MinSegmentBytes, segment.MaxSegmentBytes,
		c.SegmentBytes >= segment.MinSegmentBytes && c.SegmentBytes <= segment.MaxSegmentBytes)
	between("segment-age", c.SegmentAge, time.Second, 24*time.Hour,
		c.SegmentAge >= time.Second && c.SegmentAge <= 24*time.Hour)
	between("batch-window", c.BatchWindow, time.Duration(0), 10*time.Second,
		c.BatchWindow >= 0 && c.BatchWindow <= 10*time.Second)
	between("spare-files", c.SpareFiles, 1, 64, c.SpareFiles >= 1 && c.SpareFiles <= 64)
	if c.Preallocate != PreallocateAuto && c.Preallocate != PreallocateOff {
		errs = append(errs, fmt.Errorf("preallocate is %q: choose %s or %s", c.Preallocate, PreallocateAuto, PreallocateOff))
	}
	return errors.Join(errs...)
}

// spareFiles is how many spare files are kept.
func (c Config) spareFiles() int {
	if c.Preallocate == PreallocateOff {
		return 0
	}
	return c.SpareFiles
}

func (c Config) withDefaults() Config {
	if c.SegmentBytes == 0 {
		c.SegmentBytes = DefaultSegmentBytes
	}
	if c.SegmentAge == 0 {
		c.SegmentAge = DefaultSegmentAge
	}
	if c.Preallocate == "" {
		c.Preallocate = PreallocateAuto
	}
	if c.SpareFiles == 0 {
		c.SpareFiles = DefaultSpareFiles
	}
	if c.tune == (tuning{}) {
		c.tune = tuning{spareMin, aheadFrom, aheadBytes, aheadRun, writePiece}
	}
	if c.FS == nil {
		c.FS = OSFS(c.FullFsync)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// newUUID names a segment of dir, or dir.
func (c *Config) newUUID(dir string) (segment.UUID, error) {
	if c.NewUUID != nil {
		return c.NewUUID(dir), nil
	}
	return uuid.NewV7()
}
