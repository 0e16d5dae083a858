package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// writerFlags are the knobs of `writer`.
type writerFlags struct {
	owner   ownerFlags
	proving proving
	shards  string
	index   uint32
	count   uint32
	given   func(name string) bool
}

func (a *app) writerCommand() *cobra.Command {
	w := &writerFlags{}
	cmd := &cobra.Command{
		Use:   "writer",
		Short: "Own some shards of a shared catalog and bucket, and take their rows over HTTP",
		Long: "Many writers share one deployment, given by --catalog and --store; each has a --dir of its own for its segments.\n" +
			"Say which shards are its own with --shards 0-3,7, or with --shard-index I --shard-count N for the I-th of N writers\n" +
			"(counted from 0: every shard whose number modulo N is I); without either it owns all. A row for somebody else's shard is\n" +
			"answered 421 with that writer's address. An auditor runs beside them: strandline auditor.\n\n" +
			"Founds the deployment, with 4 shards, if there is none (another number: strandline topology set --shards N). HTTP opens\n" +
			"once recovery is complete. SIGTERM publishes everything and gives up the lease. When the epoch is over, since\n" +
			"strandline topology set changed the shard count, it goes on with its share of the next one.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.writer(cmd.Context(), w) },
	}
	f := cmd.Flags()
	w.owner.register(f)
	w.proving.register(f)
	w.given = f.Changed
	f.StringVar(&w.shards, "shards", "", "shards to own, like 0-3,7")
	f.Uint32Var(&w.index, "shard-index", 0, "which of --shard-count writers this is, from 0")
	f.Uint32Var(&w.count, "shard-count", 0, "number of writers that share the shards evenly")
	a.check("writer", w.validate)
	return cmd
}

// validate reports every fault at once.
func (w *writerFlags) validate() error {
	errs := []error{w.owner.validate()}
	if _, err := parseShards(w.shards); err != nil {
		errs = append(errs, err)
	}
	byIndex := w.given("shard-index") || w.given("shard-count")
	if byIndex && w.shards != "" {
		errs = append(errs, errors.New("give --shards, or --shard-index and --shard-count, not both"))
	}
	switch {
	case w.given("shard-index") != w.given("shard-count"):
		errs = append(errs, errors.New("--shard-index and --shard-count come together"))
	case byIndex && w.index >= w.count:
		errs = append(errs, fmt.Errorf("--shard-index %d of --shard-count %d: give an index below the count", w.index, w.count))
	}
	if err := errors.Join(errs...); err != nil {
		return usage("%w", err)
	}
	return nil
}

// pick are the shards of an epoch that are this writer's.
func (w *writerFlags) pick(top catalog.Topology) ([]segment.Shard, error) {
	if w.count > 0 {
		var out []segment.Shard
		for s := w.index; s < top.Shards; s += w.count {
			out = append(out, segment.Shard(s))
		}
		if len(out) == 0 {
			return nil, usage("--shard-index %d of --shard-count %d has none of the %s of epoch %d", w.index, w.count, countOf(top.Shards, "shard"), top.Epoch)
		}
		return out, nil
	}
	out, err := parseShards(w.shards)
	if n := len(out); err == nil && n > 0 && uint32(out[n-1]) >= top.Shards {
		err = usage("--shards %s: epoch %d has the shards 0 to %d", w.shards, top.Epoch, top.Shards-1)
	}
	return out, err
}

// parseShards reads 0-3,7; empty: none, which means all.
func parseShards(text string) ([]segment.Shard, error) {
	if text == "" {
		return nil, nil
	}
	bad := fmt.Errorf("--shards %q: give numbers and ranges like 0-3,7, below %d", text, catalog.MaxShards)
	var out []segment.Shard
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(low, 10, 32)
		if err != nil {
			return nil, bad
		}
		last := first
		if isRange {
			if last, err = strconv.ParseUint(high, 10, 32); err != nil {
				return nil, bad
			}
		}
		if last < first || last >= catalog.MaxShards {
			return nil, bad
		}
		for s := first; s <= last; s++ {
			out = append(out, segment.Shard(s))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func (a *app) writer(ctx context.Context, w *writerFlags) error {
	if err := w.validate(); err != nil {
		return err
	}
	log, err := a.logger()
	if err != nil {
		return err
	}
	return w.owner.listen.within(ctx, log, func() error { return a.writerUntil(ctx, w, log) })
}

// writerUntil is writer, from its first look to its last close.
func (a *app) writerUntil(ctx context.Context, w *writerFlags, log *slog.Logger) (err error) {
	if err := free(ctx, w.owner.ports()...); err != nil {
		return err
	}
	w.proving.on(&w.owner.backend, log, false)
	w.owner.backend.cache.log, w.owner.backend.patient = log, true
	t, err := w.owner.backend.open(ctx, modeCreate)
	if err != nil {
		return err
	}
	defer func() { err = w.owner.listen.out.closing(err, t) }()
	if err := w.owner.listen.telemetry.start(ctx, "writer", t, log); err != nil {
		return err
	}
	var top catalog.Topology
	err = waiting(log, "the catalog: it does not answer, or another process holds its lock", func() (err error) {
		top, err = foundEpoch(ctx, t, 0)
		return err
	})
	if err != nil {
		return err
	}
	s := &service{app: a, flags: &w.owner, tier: t, log: log, shards: w.pick}
	return s.run(ctx, top)
}
