package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/telemetry"
	"github.com/strandline/strandline/objstore"
)

// telemetryFlags say where metrics and traces are pushed. GET /metrics is there without
// them, and so are OTEL_EXPORTER_OTLP_ENDPOINT and its kin.
type telemetryFlags struct {
	otlp     string
	interval time.Duration
}

func (f *telemetryFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.otlp, "telemetry-otlp", "", "push metrics and traces there: http://collector:4318 or grpc://collector:4317 (https, grpcs); empty: as OTEL_EXPORTER_OTLP_ENDPOINT says, or not at all")
	fs.DurationVar(&f.interval, "telemetry-interval", telemetry.DefaultInterval, "how often metrics are pushed, 1s to 1h")
}

func (f *telemetryFlags) config(command string, log *slog.Logger) telemetry.Config {
	c := telemetry.Config{Command: command, Version: buildVersion(), OTLP: f.otlp, Interval: f.interval, Logger: log}
	if c.Interval == 0 {
		c.Interval = -1 // the package's zero is its default; whoever typed it is wrong
	}
	return c
}

func (f *telemetryFlags) validate() error { return f.config("", nil).Validate() }

// start begins a process's telemetry: from here every verb of the tier's catalog is timed.
// The tier's end is its end.
func (f *telemetryFlags) start(ctx context.Context, command string, t *tier, log *slog.Logger) error {
	p, err := telemetry.Start(ctx, f.config(command, log))
	if err != nil {
		return err
	}
	t.watch = p
	t.closers = append(t.closers, func() error { return p.Close(context.WithoutCancel(ctx)) })
	if t.catalog == nil {
		return nil
	}
	if pooled, ok := t.catalog.(catalog.Pooled); ok {
		t.pool = pooled.Pool
	}
	if versioned, ok := t.catalog.(catalog.Versioned); ok {
		t.newer = versioned.Newer
	}
	t.catalog = p.Catalog(t.catalog)
	return nil
}

// watched is what every process has to be looked at.
func (t *tier) watched() telemetry.Sources {
	return telemetry.Sources{Stores: func() []*objstore.Store { return storesOf(t) }, Pool: t.pool}
}

// audited adds what an auditor has.
func (t *tier) audited(src telemetry.Sources, aud *auditor.Auditor) telemetry.Sources {
	src.Auditor, src.Chains = aud.Summary, t.catalog.Chains
	return src
}

// shown puts the scrape beside the routes, and the counters around them.
func (s *surroundings) shown(t *tier) {
	if t.watch != nil {
		s.metrics, s.wrap = t.watch.Metrics(), t.watch.Wrap
	}
}

// watched is what the owner of shards has, whichever epoch it is in.
func (s *service) watched() telemetry.Sources {
	src := s.tier.watched()
	src.Writer = func() telemetry.Shards {
		if now := s.now.Load(); now != nil {
			return now.writer
		}
		return nil
	}
	src.Ready = s.ready
	src.Disk = &telemetry.Disk{Dir: s.tier.dir, MinFree: s.flags.writer.MinFreeDisk, QuarantineMax: s.flags.writer.QuarantineMax, Left: s.leftBehind}
	if s.audited != nil {
		src = s.tier.audited(src, s.audited)
		src.RewritingHeld = s.room.held
	}
	return src
}

// errRecovering: the local logs are being read.
var errRecovering = errors.New("recovery is not over yet")

// ready is what /readyz says, but for the way out, which is told by it alone.
func (s *service) ready() error {
	now := s.now.Load()
	if now == nil {
		return errRecovering
	}
	return s.serving(now.writer).Ready()
}
