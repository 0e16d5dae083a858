package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
)

// ownerFlags are the knobs of a process that owns shards: `up` and `writer`.
type ownerFlags struct {
	backend  backendFlags
	listen   listenFlags
	otlp     otlpFlags
	steal    bool
	ack      string
	segBytes sizeFlag
	segAge   time.Duration
	writer   localtier.Config
	given    func(name string) bool

	consumerHold, quarantineMax sizeFlag
}

func (o *ownerFlags) register(f *pflag.FlagSet) {
	o.segBytes = sizeFlag(wal.DefaultSegmentBytes)
	o.writer.MinFreeDisk = localtier.DefaultMinFreeDisk
	o.given = f.Changed
	o.backend.register(f)
	o.backend.cache.register(f)
	o.listen.register(f, defaultHTTP)
	o.listen.registerAdvertise(f)
	o.otlp.register(f)
	f.BoolVar(&o.steal, "steal", false, "take chains whose owner's lease still lives")
	f.StringVar(&o.ack, "ack", "local", "default acknowledgement: local or shared")
	f.Var(&o.segBytes, "segment-size", "seal a segment at this size, 17MiB to 2GiB")
	f.DurationVar(&o.segAge, "segment-age", wal.DefaultSegmentAge, "seal a segment at this age, 1s to 24h")
	f.DurationVar(&o.writer.WAL.BatchWindow, "batch-window", 0, "wait on purpose before an fsync, 0 to 10s")
	o.writer.WAL.Preallocate, o.writer.WAL.SpareFiles = wal.PreallocateAuto, wal.DefaultSpareFiles
	f.StringVar((*string)(&o.writer.WAL.Preallocate), "preallocate", string(wal.PreallocateAuto), "auto: write over old segment files, and over zeros; off: for file systems that never overwrite in place (btrfs, zfs)")
	f.IntVar(&o.writer.WAL.SpareFiles, "spare-files", wal.DefaultSpareFiles, "old segment files a shard that are kept to be written over, 1 to 64")
	f.BoolVar(&o.writer.WAL.FullFsync, "full-fsync", false, "on macOS, flush the disk's own cache with every fsync")
	f.DurationVar(&o.writer.Housekeeping, "housekeeping", localtier.DefaultHousekeeping, "how often local segments that the bucket has are looked for, 1s to 1h")
	f.DurationVar(&o.writer.SharedWindow, "shared-window", localtier.DefaultSharedWindow, "seal this early for shared acknowledgements")
	f.DurationVar(&o.writer.LeaseTime, "lease-time", localtier.DefaultLeaseTime, "how long appends go on while the catalog is away, 1s to 1h")
	f.Var((*sizeFlag)(&o.writer.MinFreeDisk), "min-free-disk", "refuse appends when the disk has less left")
	o.consumerHold, o.quarantineMax = localtier.DefaultConsumerHold, localtier.DefaultQuarantineMax
	f.Var(&o.consumerHold, "consumer-hold-max", "local bytes a shard, newest first, that are kept for consumers that lag; 64MiB or more")
	f.Var(&o.quarantineMax, "quarantine-max", "/readyz fails when more than this lies in quarantine")
	f.DurationVar(&o.writer.RetentionEvery, "retention-every", localtier.DefaultRetentionEvery, "how often shards give up what the topology's retention lets them")
	f.BoolVar(&o.writer.HydrateAll, "hydrate-all", false, "fill this disk with all that the bucket still has of its shards, not only what consumers need")
	f.BoolVar(&o.writer.AckAfterLease, "ack-after-lease", false, "acknowledge locally even after the lease ran out: such rows may never enter the history")
}

// validate joins every fault.
func (o *ownerFlags) validate() error {
	o.writer.Ack = localtier.Ack(o.ack)
	o.writer.WAL.SegmentBytes = int64(o.segBytes)
	o.writer.WAL.SegmentAge = o.segAge
	o.writer.ConsumerHoldMax, o.writer.QuarantineMax = int64(o.consumerHold), int64(o.quarantineMax)
	errs := []error{o.backend.validate(), o.writer.Validate(), o.listen.validate(), o.otlp.validate(&o.listen)}
	if o.listen.http == "" {
		errs = append(errs, errors.New("--http: give the address to take rows on"))
	}
	// A zero field means the default to the packages; to whoever typed it, it is wrong.
	for _, f := range []struct {
		name string
		zero bool
	}{
		{"segment-size", o.segBytes == 0},
		{"segment-age", o.segAge == 0},
		{"spare-files", o.writer.WAL.SpareFiles == 0},
		{"preallocate", o.writer.WAL.Preallocate == ""},
		{"housekeeping", o.writer.Housekeeping == 0},
		{"shared-window", o.writer.SharedWindow == 0},
		{"lease-time", o.writer.LeaseTime == 0},
		{"consumer-hold-max", o.consumerHold == 0},
		{"quarantine-max", o.quarantineMax == 0},
		{"retention-every", o.writer.RetentionEvery == 0},
	} {
		if f.zero {
			errs = append(errs, fmt.Errorf("--%s 0: give a positive one", f.name))
		}
	}
	if o.writer.MinFreeDisk == 0 {
		o.writer.MinFreeDisk = -1 // the package's word for "not checked"
	}
	return errors.Join(errs...)
}
