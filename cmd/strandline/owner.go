package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/spf13/pflag"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
)

// ownerFlags are the knobs of a process that owns shards: `up` and `writer`.
type ownerFlags struct {
	backend   backendFlags
	http      string
	advertise string
	remote    bool
	steal     bool
	shutdown  time.Duration
	ack       string
	segBytes  sizeFlag
	segAge    time.Duration
	writer    localtier.Config
	given     func(name string) bool

	consumerHold, quarantineMax sizeFlag
}

func (o *ownerFlags) register(f *pflag.FlagSet) {
	o.segBytes = sizeFlag(wal.DefaultSegmentBytes)
	o.writer.MinFreeDisk = localtier.DefaultMinFreeDisk
	o.given = f.Changed
	o.backend.register(f)
	o.backend.cache.register(f)
	f.StringVar(&o.http, "http", "127.0.0.1:8420", "address to serve HTTP on")
	f.StringVar(&o.advertise, "advertise", "", "URL that others are sent to for this process's shards (default: http:// and the address of --http)")
	f.BoolVar(&o.remote, "allow-remote", false, "serve on an address that is not loopback, without authentication")
	f.BoolVar(&o.steal, "steal", false, "take chains whose owner's lease still lives")
	f.DurationVar(&o.shutdown, "shutdown-timeout", 2*time.Minute, "how long publishing may take on the way out")
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
	errs := []error{o.writer.Validate()}
	host, _, err := net.SplitHostPort(o.http)
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("--http %q: give HOST:PORT", o.http))
	case !o.remote && !loopback(host):
		errs = append(errs, fmt.Errorf("--http %s is not loopback, and there is no authentication: give --allow-remote if you mean it", o.http))
	}
	if u, err := url.Parse(o.advertise); o.advertise != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		errs = append(errs, fmt.Errorf("--advertise %q: give a URL like http://writer-0:8420", o.advertise))
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
	if o.shutdown <= 0 {
		errs = append(errs, fmt.Errorf("--shutdown-timeout %v: give a positive one", o.shutdown))
	}
	return errors.Join(errs...)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// address is where HTTP will be served: known before recovery, because the chain rows
// tell others of it. Port 0 becomes a free port, held only for a moment.
func (o *ownerFlags) address(ctx context.Context) (string, error) {
	host, port, err := net.SplitHostPort(o.http)
	if err != nil || port != "0" {
		return o.http, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("serve HTTP: %w; give another --http", err)
	}
	return l.Addr().String(), l.Close()
}
