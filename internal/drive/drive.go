package drive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/strandline/strandline/segment"
)

// The drives.
const (
	Recovery = "recovery"
	Affinity = "affinity"
	Shared   = "shared"
	GC       = "gc"
	SharedGC = "shared-gc"
)

// ErrOptions: options that no drive can run with.
var ErrOptions = errors.New("options of a drive")

// The ranges of the options: a drive is a proof, not a load.
const (
	MaxEvents       = 100_000
	MaxSegments     = 2_000 // that the gc drives seal one by one
	LeastShards     = 2     // an owner, and one who is not
	MaxShards       = 64
	MaxSegmentBytes = 256 << 20
	MaxMinRetained  = 1000
)

// Options of a drive. Each drive reads those that it has a use for.
type Options struct {
	// Dir is made, or is a former drive's, which is cleared; anything else is refused.
	Dir string
	// Events to append: of gc and shared-gc to each shard that retention runs on.
	Events int
	Shards uint32
	// Consumer is the name of the durable consumer.
	Consumer string
	// SegmentBytes of payloads make a segment in the gc drives, and are what retention
	// takes for a full-size one. The log itself has no segments this small by size, so the
	// drive seals them.
	SegmentBytes int64
	// MinRetained full-size segments stay, whatever was consumed.
	MinRetained int
	Logger      *slog.Logger // nil: none

	// at is called between the steps; tests break things there.
	at func(ctx context.Context, moment string, s *site) error
}

// Defaults are the options of a drive that was given none.
func Defaults(name string) Options {
	o := Options{Events: 40, Shards: 2, Consumer: "projector", SegmentBytes: 256, MinRetained: 2}
	if name == Recovery {
		o.Events, o.Shards = 3, 1
	}
	if name == Affinity || name == Shared {
		o.Events = 4
	}
	return o
}

// Validate reports all faults at once.
func (o *Options) Validate(name string) error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...))
		}
	}
	least := 3 // one acknowledged, one pending, one between
	if name == GC || name == SharedGC {
		least = 8
	}
	bad(o.Dir == "", "give --dir DIR")
	bad(o.Events < least || o.Events > MaxEvents, "--events %d: give %d to %d", o.Events, least, MaxEvents)
	bad(name != Recovery && name != GC && (o.Shards < LeastShards || o.Shards > MaxShards), "--shards %d: give %d to %d", o.Shards, LeastShards, MaxShards)
	bad(o.SegmentBytes < 64 || o.SegmentBytes > MaxSegmentBytes, "--segment-bytes %d: give 64 to %d", o.SegmentBytes, int64(MaxSegmentBytes))
	if name == GC || name == SharedGC {
		n := int64(o.Events) * payloadBytes / max(o.SegmentBytes, 1)
		bad(n > MaxSegments, "--events %d in --segment-bytes %d make %d segments, at most %d: give fewer events or larger segments", o.Events, o.SegmentBytes, n, MaxSegments)
	}
	if err := o.passes(name); err != nil {
		errs = append(errs, err)
	}
	bad(o.MinRetained < 1 || o.MinRetained > MaxMinRetained, "--min-retained-segments %d: give 1 to %d", o.MinRetained, MaxMinRetained)
	if err := segment.CheckConsumer(o.Consumer); err != nil {
		errs = append(errs, fmt.Errorf("%w: --consumer: %w", ErrOptions, err))
	}
	return errors.Join(errs...)
}

// passes refuses a gc drive whose consumer cannot pass as much as one segment: retention
// would have nothing to give up, and the drive nothing to judge.
func (o *Options) passes(name string) error {
	if name != GC && name != SharedGC || o.Events < 1 || o.SegmentBytes < 1 {
		return nil
	}
	// A segment is sealed with the row that fills it.
	rows, passed := 0, o.Events*3/4
	for bytes := int64(0); bytes < o.SegmentBytes && rows <= passed; rows++ {
		bytes += int64(len(payload(rows)))
	}
	if rows <= passed {
		return nil
	}
	// So that beside those that stay there is one to give up.
	segments := int64(max(o.MinRetained, 1)) + 2
	do := fmt.Sprintf("give --segment-bytes %d or less", max(int64(o.Events)*payloadBytes/segments, 64))
	if events := (o.SegmentBytes/payloadBytes + 1) * segments; events <= MaxEvents {
		do += fmt.Sprintf(", or --events %d or more", max(events, 8))
	}
	return fmt.Errorf("%w: --segment-bytes %d: the consumer acknowledges %d of --events %d, which fill no segment of that size, so nothing could be given up: %s",
		ErrOptions, o.SegmentBytes, passed, o.Events, do)
}

func drives() map[string]func(context.Context, *Options, *site) *Report {
	return map[string]func(context.Context, *Options, *site) *Report{
		Recovery: runRecovery, Affinity: runAffinity, Shared: runShared, GC: runGC, SharedGC: runSharedGC,
	}
}

// Names of the drives.
func Names() []string { return slices.Sorted(maps.Keys(drives())) }

// Run runs one drive. The error is a wrong option or a directory that is not a drive's;
// whatever the drive met is in the report.
func Run(ctx context.Context, name string, o Options) (*Report, error) {
	run, ok := drives()[name]
	if !ok {
		return nil, fmt.Errorf("%w: there is no drive %q", ErrOptions, name)
	}
	if err := o.Validate(name); err != nil {
		return nil, err
	}
	s, err := found(ctx, name, &o)
	if err != nil {
		return nil, err
	}
	r := run(ctx, &o, s)
	r.Drive = name
	r.Stopped = errors.Join(r.Stopped, s.close(ctx))
	return r, nil
}
