package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// upFlags are the knobs of `up`.
type upFlags struct {
	owner   ownerFlags
	auditor auditorFlags
	proving proving
	shards  uint32
}

func (a *app) upCommand() *cobra.Command {
	u := &upFlags{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Everything in one process: writer, auditor and HTTP, until Ctrl-C",
		Long: "Founds the deployment if there is none. On SIGINT or SIGTERM it stops taking rows, seals, publishes and absorbs what it has,\n" +
			"and gives up its lease; a second signal ends it at once (nothing acknowledged is lost: the next start goes on from its disk).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.up(cmd.Context(), u) },
	}
	f := cmd.Flags()
	u.owner.register(f)
	u.auditor.register(f)
	u.proving.register(f)
	f.Uint32Var(&u.shards, "shards", 0, "shards of a new deployment (default 4); of a standing one: must agree")
	a.check("up", u.validate)
	return cmd
}

// validate reports every fault at once.
func (u *upFlags) validate() error {
	errs := []error{u.owner.validate(), u.auditor.validate()}
	if u.shards == 0 && u.owner.given("shards") {
		errs = append(errs, errors.New("--shards 0: give a positive one"))
	}
	if u.shards > catalog.MaxShards {
		errs = append(errs, fmt.Errorf("--shards %d: give %d at most", u.shards, catalog.MaxShards))
	}
	if err := errors.Join(errs...); err != nil {
		return usage("%w", err)
	}
	return nil
}

func (a *app) up(ctx context.Context, u *upFlags) error {
	if err := u.validate(); err != nil {
		return err
	}
	log, err := a.logger()
	if err != nil {
		return err
	}
	return u.owner.listen.within(ctx, log, func() error { return a.upUntil(ctx, u, log) })
}

// upUntil is up, from its first look to its last close.
func (a *app) upUntil(ctx context.Context, u *upFlags, log *slog.Logger) (err error) {
	if err := free(ctx, u.owner.ports()...); err != nil {
		return err
	}
	u.proving.on(&u.owner.backend, log, false)
	u.owner.backend.cache.log, u.owner.backend.patient = log, true
	t, err := u.owner.backend.open(ctx, modeCreate)
	if err != nil {
		return err
	}
	defer func() { err = u.owner.listen.out.closing(err, t) }()
	if err := u.owner.listen.telemetry.start(ctx, "up", t, log); err != nil {
		return err
	}
	var top catalog.Topology
	err = waiting(log, "the catalog: it does not answer, or another process holds its lock", func() (err error) {
		top, err = foundEpoch(ctx, t, u.shards)
		return err
	})
	if err != nil {
		return err
	}
	if err := u.auditor.seed(ctx, t.catalog, log); err != nil {
		return err
	}
	if err := u.auditor.affords(ctx, t.catalog, log); err != nil {
		return err
	}
	u.auditor.room = rewriteRoomOf(t, &u.owner.writer, log)
	aud, err := u.auditor.build(t, log)
	if err != nil {
		return err
	}
	s := &service{app: a, flags: &u.owner, tier: t, log: log, shards: allShards, audited: aud, room: u.auditor.room}
	return s.run(ctx, top, auditing(aud))
}

// allShards: `up` owns what there is.
func allShards(catalog.Topology) ([]segment.Shard, error) { return nil, nil }

// auditing is the auditor as a part of a service.
func auditing(aud *auditor.Auditor) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := aud.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("auditor: %w", err)
		}
		return nil
	}
}
