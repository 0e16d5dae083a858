package settle

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/strandline/strandline/segment"
)

// Defaults of Config.
const (
	// DefaultSettleAge is the age of the earliest standing slot at which a chain is
	// settled: long enough to gather many slots into a batch.
	DefaultSettleAge = 10 * time.Minute
	// DefaultSettleBytes of standing transit settle a chain before its age.
	DefaultSettleBytes = 256 << 20
	// DefaultStreamObjectMin: a smaller stream is not worth a PUT of its own.
	DefaultStreamObjectMin = 1 << 20
	// DefaultBatchMax bounds a batch: at 10 MB/s it is done in 2 minutes, far
	// within half of the orphan grace.
	DefaultBatchMax = 1 << 30
	// DefaultTailTarget is the size at which a stream's tail object is left alone: large
	// enough that a day of one stream is a few objects.
	DefaultTailTarget = 256 << 20
	// DefaultPackFan packs of a generation become one of the next.
	DefaultPackFan = 8
	// DefaultLease is renewed as work goes on; a stalled holder loses it.
	DefaultLease = time.Minute
	// DefaultBackoff is the first pause of a failed member, doubled by attempt.
	DefaultBackoff = 10 * time.Second
	// DefaultBackoffMax keeps a broken member to a few looks an hour.
	DefaultBackoffMax = 20 * time.Minute
	// DefaultFetchBytes keeps a usual batch (some 25 MB stored a chain) in memory.
	DefaultFetchBytes = 96 << 20
	// DefaultWorkBytes is one largest chunk.
	DefaultWorkBytes = segment.ChunkRawMax
	// DefaultFetches in flight are enough to hide a bucket's first byte.
	DefaultFetches = 4
)

const (
	// gapMax is what is fetched and thrown away rather than spending a request.
	gapMax = 256 << 10
	// windowBytes is the most that one GET asks for, a chunk at least: a usual slot
	// comes with one request, and a spooled one never stands in memory as a whole.
	windowBytes = 16 << 20
	// copyRunMax is the longest run of chunks that one request copies within the store:
	// some 16 requests a GB, each done within any time-out, and several side by side.
	copyRunMax = 64 << 20
	// batchRate is the bytes of slots a second that a batch is sure to move.
	batchRate = 8 << 20
	// maxCause bounds the reason kept with a marker.
	maxCause = 1000
	// copyMin is the stored size from which a chunk moves as it is (02).
	copyMin = 5 << 20
	// maxRevisions bounds the search for a key that is not refused.
	maxRevisions = 64
	// maxPackFan keeps a merge's packs, and what stuck ones add (maxWiden), to a page of
	// the catalog.
	maxPackFan = 64
	// maxTries bounds the repeats of an upload after a 409, and of a commit whose
	// answer is lost.
	maxTries = 5
)

// Config holds the tunables. Zero fields take the defaults; SettleAge and
// SettleBytes below zero mean "at once".
type Config struct {
	SettleAge       time.Duration
	SettleBytes     int64
	StreamObjectMin int64 // raw bytes of a stream in the batch
	BatchMax        int64 // object bytes of the slots in a batch, stored bytes of its refs
	TailTarget      int64 // stored bytes of a tail object that is not filled any more
	PackFan         int   // packs of one generation that are merged
	Lease           time.Duration
	Backoff         time.Duration
	BackoffMax      time.Duration
	FetchBytes      int64  // fetched source bytes kept in memory; the rest is spooled
	SpoolDir        string // for the rest; default os.TempDir
	WorkBytes       int64  // raw bytes being encoded at once
	Workers         int    // encoders; default GOMAXPROCS
	Outputs         int    // outputs under way at once; default Workers+1
	Fetches         int    // source GETs in flight
	Writer          string // version in the footers; default "strandline"
}

func (c Config) withDefaults() Config {
	c.SettleAge = cmp.Or(c.SettleAge, DefaultSettleAge)
	c.SettleBytes = cmp.Or(c.SettleBytes, DefaultSettleBytes)
	c.StreamObjectMin = cmp.Or(c.StreamObjectMin, DefaultStreamObjectMin)
	c.BatchMax = cmp.Or(c.BatchMax, DefaultBatchMax)
	c.TailTarget = cmp.Or(c.TailTarget, DefaultTailTarget)
	c.PackFan = cmp.Or(c.PackFan, DefaultPackFan)
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	c.Backoff = cmp.Or(c.Backoff, DefaultBackoff)
	c.BackoffMax = cmp.Or(c.BackoffMax, max(DefaultBackoffMax, c.Backoff))
	c.FetchBytes = cmp.Or(c.FetchBytes, DefaultFetchBytes)
	c.SpoolDir = cmp.Or(c.SpoolDir, os.TempDir())
	c.WorkBytes = cmp.Or(c.WorkBytes, DefaultWorkBytes)
	c.Workers = cmp.Or(c.Workers, runtime.GOMAXPROCS(0))
	c.Outputs = cmp.Or(c.Outputs, c.Workers+1)
	c.Fetches = cmp.Or(c.Fetches, DefaultFetches)
	c.Writer = cmp.Or(c.Writer, "strandline")
	return c
}

// Validate refuses values that cannot be meant.
func (c Config) Validate() error {
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("settle: "+format, args...))
		}
	}
	refuse(c.StreamObjectMin < 0 || c.StreamObjectMin > segment.ChunkRawMax,
		"stream-object-min %d: give 1 to %d (a pack's member is encoded in memory)", c.StreamObjectMin, int64(segment.ChunkRawMax))
	refuse(c.BatchMax < 0, "batch-max %d: give a positive number of bytes", c.BatchMax)
	refuse(c.TailTarget < 0, "tail-target %d: give a positive number of bytes", c.TailTarget)
	refuse(c.PackFan < 0 || c.PackFan == 1 || c.PackFan > maxPackFan, "pack-fan %d: give 2 to %d", c.PackFan, maxPackFan)
	refuse(c.Lease < 0 || c.Lease > 0 && c.Lease < time.Second, "lease %v: give 1s or more", c.Lease)
	refuse(c.Backoff < 0 || c.BackoffMax < 0 || c.BackoffMax > 0 && c.BackoffMax < c.Backoff,
		"back-off %v up to %v: give positive, ascending ones", c.Backoff, c.BackoffMax)
	refuse(c.FetchBytes < 0 || c.WorkBytes < 0, "fetch %d and work %d bytes: give positive numbers", c.FetchBytes, c.WorkBytes)
	refuse(c.Workers < 0 || c.Outputs < 0 || c.Fetches < 0,
		"workers %d, outputs %d, fetches %d: give 1 or more", c.Workers, c.Outputs, c.Fetches)
	refuse(len(c.Writer) > segment.MaxWriterVersion, "writer version of %d bytes: at most %d", len(c.Writer), segment.MaxWriterVersion)
	return errors.Join(errs...)
}
