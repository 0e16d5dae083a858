package localtier

import (
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// Defaults, each with its reason.
const (
	// DefaultSharedWindow is how long a shared acknowledgement may wait for company:
	// each early seal costs a PUT and a transaction.
	DefaultSharedWindow = 250 * time.Millisecond
	// DefaultLeaseTime is how long appends survive a catalog that is away.
	DefaultLeaseTime = 5 * time.Minute
	// DefaultMaxUnpublished bounds the disk that a bucket outage can take.
	DefaultMaxUnpublished = 4 << 30
	// DefaultMinFreeDisk leaves room for rotation, sidecars and recovery's copy.
	DefaultMinFreeDisk = 512 << 20
	// DefaultHousekeeping is seed 001's interval.
	DefaultHousekeeping = 60 * time.Second
	// DefaultConsumerHold is some hours of a busy shard: a consumer that is away for
	// longer reads from the bucket.
	DefaultConsumerHold = 8 << 30
	// DefaultMaxStreams bounds a slot's footer and the transaction that absorbs it.
	DefaultMaxStreams = 50_000
	// DefaultPublishing keeps the memory of publishing within two uploads, whatever
	// the number of shards; two cores compress no more at once anyway.
	DefaultPublishing = 2
	// DefaultHydrating is small since each slot that is restored holds up to 64 MiB of raw
	// chunks in memory.
	DefaultHydrating = 2
	// DefaultQuarantineMax bounds what may be set aside before somebody has to look.
	DefaultQuarantineMax = 8 << 30
	// DefaultRetentionEvery keeps a busy shard's give-up within some segments.
	DefaultRetentionEvery = time.Minute
	// DefaultTopologyEvery is how soon a writer hears that its epoch is over.
	DefaultTopologyEvery = 5 * time.Second
	// DefaultBackoff and DefaultMaxBackoff pace the publisher while catalog or
	// bucket are away. The store has its own shorter retries inside.
	DefaultBackoff    = 100 * time.Millisecond
	DefaultMaxBackoff = 15 * time.Second
)

// Config holds the tunables of a Writer. Zero fields take the defaults.
type Config struct {
	// WAL: segment size and age, batch window. Its own zero fields take its defaults.
	WAL wal.Config
	// Ack is what AckDefault means; AckLocal if it is zero.
	Ack Ack
	// SharedWindow seals early for shared acknowledgements (at most 10 s).
	SharedWindow time.Duration
	// LeaseTime is the life of the lease (1 s to 1 h), renewed three times in it.
	LeaseTime time.Duration
	// AckAfterLease goes on with local acknowledgements after the lease has run out.
	// Another process may own the chain by then, and the rows may never enter the
	// history: they end in this directory, aside.
	AckAfterLease bool
	// MaxUnpublished caps the bytes of one shard that the bucket does not have yet.
	MaxUnpublished int64
	// MinFreeDisk refuses appends when the file system has less left. Negative: not checked.
	MinFreeDisk int64
	// Housekeeping is how often local segments that the shared tier holds are unlinked.
	Housekeeping time.Duration
	// ConsumerHoldMax caps the bytes of one shard, newest first, that housekeeping
	// leaves for durable consumers and for readers in progress (64 MiB or more).
	ConsumerHoldMax int64
	// MaxStreams seals a segment that holds so many streams.
	MaxStreams int
	// Publishing is how many shards build and send a slot at once.
	Publishing int
	// Hydrating is how many slots all shards restore at once.
	Hydrating int
	// QuarantineMax is how much may lie in quarantine before Ready fails.
	QuarantineMax int64
	// HydrateAll brings back every slot that stands above the watermark, and keeps it;
	// otherwise only what durable consumers have yet to read.
	HydrateAll bool
	// RetentionEvery is how often the shards give up what their policy lets them. A
	// policy that keeps everything (the default) costs nothing.
	RetentionEvery time.Duration
	// TopologyEvery is how often the writer looks whether its epoch goes on.
	TopologyEvery time.Duration
	// Backoff is the publisher's first pause after a failure, doubled with full jitter
	// up to MaxBackoff.
	Backoff, MaxBackoff time.Duration
	// Jitter picks a pause of up to a window of the back-off; nil: at random.
	Jitter func(window time.Duration) time.Duration
	// WriterVersion is recorded in the footers of slots.
	WriterVersion string
}

// minConsumerHold is a segment of the default size: with less, every consumer reads
// from the bucket what was just appended here.
const minConsumerHold = 64 << 20

func (c Config) withDefaults() Config {
	set(&c.Ack, AckLocal)
	set(&c.SharedWindow, DefaultSharedWindow)
	set(&c.LeaseTime, DefaultLeaseTime)
	set(&c.MaxUnpublished, DefaultMaxUnpublished)
	set(&c.MinFreeDisk, DefaultMinFreeDisk)
	set(&c.Housekeeping, DefaultHousekeeping)
	set(&c.ConsumerHoldMax, DefaultConsumerHold)
	set(&c.MaxStreams, DefaultMaxStreams)
	set(&c.Publishing, DefaultPublishing)
	set(&c.Hydrating, DefaultHydrating)
	set(&c.QuarantineMax, DefaultQuarantineMax)
	set(&c.RetentionEvery, DefaultRetentionEvery)
	set(&c.TopologyEvery, DefaultTopologyEvery)
	set(&c.Backoff, DefaultBackoff)
	set(&c.MaxBackoff, DefaultMaxBackoff)
	set(&c.WriterVersion, "strandline")
	return c
}

func set[T comparable](field *T, dflt T) {
	var zero T
	if *field == zero {
		*field = dflt
	}
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(c.Ack != AckLocal && c.Ack != AckShared, "ack %q: give local or shared", c.Ack)
	bad(c.SharedWindow < 0 || c.SharedWindow > 10*time.Second, "shared window %v: give 0 to 10s", c.SharedWindow)
	bad(c.LeaseTime < time.Second || c.LeaseTime > time.Hour, "lease time %v: give 1s to 1h", c.LeaseTime)
	bad(c.MaxUnpublished < 2*segment.MinSegmentBytes, "unpublished cap %d: give at least two segments (%d)", c.MaxUnpublished, 2*segment.MinSegmentBytes)
	bad(c.Housekeeping < time.Second || c.Housekeeping > time.Hour, "housekeeping %v: give 1s to 1h", c.Housekeeping)
	bad(c.ConsumerHoldMax < minConsumerHold, "consumer hold %d: give %d bytes or more", c.ConsumerHoldMax, int64(minConsumerHold))
	bad(c.MaxStreams < 1, "streams per segment %d: give 1 or more", c.MaxStreams)
	bad(c.Publishing < 1, "publishing %d: give 1 or more", c.Publishing)
	bad(c.Hydrating < 1, "hydrating %d: give 1 or more", c.Hydrating)
	bad(c.QuarantineMax < 0, "quarantine cap %d: give 0 or more", c.QuarantineMax)
	bad(c.RetentionEvery < 10*time.Millisecond, "retention every %v: give 10ms or more", c.RetentionEvery)
	bad(c.TopologyEvery < 10*time.Millisecond, "topology every %v: give 10ms or more", c.TopologyEvery)
	bad(c.Backoff < 0 || c.MaxBackoff < c.Backoff, "backoff %v to %v: give a rising pair", c.Backoff, c.MaxBackoff)
	if err := c.WAL.Validate(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
