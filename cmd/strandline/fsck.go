package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/check"
)

// fsckAtOnce is how many objects fsck looks into at once: footers are small, and a
// round trip each.
const fsckAtOnce = 32

func (a *app) fsckCommand() *cobra.Command {
	var b backendFlags
	cfg := check.Config{Concurrency: fsckAtOnce}
	var noFooters bool
	cmd := &cobra.Command{
		Use:   "fsck",
		Short: "Hold the bucket against the catalog: clean (exit 0), garbage (1), rotten copies or damage (3), unreadable objects (5)",
		Long: "Reads every ref and one footer an object, and changes nothing. Safe while writers and auditors run.\n" +
			"  damage    rows that cannot be read, or are not what they were (exit 3)\n" +
			"  rotten    an object or a copy is not what was put there, but every live row is served from elsewhere (3)\n" +
			"  unreadable  reads of an object do not complete while its bucket answers: told apart, no verdict on it; the rest is looked at (5)\n" +
			"  garbage   pending goes by itself after its grace; leaked is reclaimed by auditor --sweep; unknown is never touched (1)\n" +
			"  unsettled with --settled: something still waits (1)\n" +
			"Spans that an operator accepted as lost are told and change nothing. What could not be read is an error, never a verdict (5).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case cfg.Sample < 0:
				return usage("--sample %d: give 1 for all, or N for one object in N", cfg.Sample)
			case noFooters && (cfg.Deep || cfg.Sample > 1):
				return usage("--no-footers looks into no object: it goes with neither --deep nor --sample")
			case noFooters:
				cfg.Sample = -1
			}
			return a.fsck(cmd.Context(), &b, cfg)
		},
	}
	b.register(cmd.Flags())
	f := cmd.Flags()
	f.BoolVar(&cfg.Deep, "deep", false, "read and decode every chunk that a live row needs, and all of slots: finds a rotten byte; costs the bucket's bytes")
	f.BoolVar(&cfg.Settled, "settled", false, "after auditor --once ran dry: nothing may wait any more, no marker, intent, upload or unnamed object")
	f.IntVar(&cfg.Sample, "sample", 1, "look into one object in N, by a hash of the key; that all named ones are there is checked all the same")
	f.BoolVar(&noFooters, "no-footers", false, "look into no object: listing against catalog only")
	return cmd
}

func (a *app) fsck(ctx context.Context, b *backendFlags, cfg check.Config) (err error) {
	t, err := b.open(ctx, modeRead)
	if err != nil {
		return err
	}
	defer func() { err = closing(err, t) }()
	bar := a.progress(-1, "objects")
	cfg.Progress = func(_, bytes int64) { _ = bar.Set64(bytes) } // a bar that cannot be drawn is no reason to stop
	report, err := check.Fsck(ctx, t.catalog, t.classes, cfg)
	_ = bar.Finish() // likewise
	if err != nil {
		return fmt.Errorf("fsck could not finish, no verdict: %w", err)
	}
	if err := a.printReport(report); err != nil {
		return err
	}
	return verdictExit(report.Verdict)
}

func verdictExit(v check.Verdict) error {
	switch v {
	case check.Damage, check.Rotten:
		return &exitError{code: exitDamage}
	case check.Unreadable:
		return &exitError{code: exitUnavailable}
	case check.Garbage, check.Unsettled:
		return &exitError{code: exitFailed}
	default:
		return nil
	}
}

func (a *app) printReport(r *check.Report) error {
	if a.json {
		return a.printJSON(r)
	}
	in := func(bucket string) string { // of a set, another one may be whole
		if bucket == "" {
			return ""
		}
		return ", in " + bucket
	}
	for _, d := range r.Damage {
		fmt.Fprintf(a.out, "damage   %s: %s%s\n", damagedText(&d), d.Why, in(d.Bucket))
	}
	for _, o := range r.Rotten {
		sound := ""
		if o.SoundIn != "" {
			sound = "; its rows are sound in " + o.SoundIn
		}
		fmt.Fprintf(a.out, "rotten   %s: %s%s%s\n", o.Key, o.Why, in(o.Bucket), sound)
	}
	for _, o := range r.Unreadable {
		fmt.Fprintf(a.out, "unreadable %s: %s%s\n", o.Key, o.Why, in(o.Bucket))
	}
	for _, d := range r.Lost {
		fmt.Fprintf(a.out, "lost     %s: %s\n", damagedText(&d), d.Why)
	}
	for _, g := range r.Garbage {
		fmt.Fprintf(a.out, "%-8s %s (%s): %s%s\n", g.State, g.Key, bytesText(g.Bytes), g.Why, in(g.Bucket))
	}
	for _, o := range r.Owed {
		fmt.Fprintf(a.out, "owed     %s %s: %s%s\n", o.What, o.ID, o.Why, in(o.Bucket))
	}
	if r.MissingTotal > 0 {
		fmt.Fprintf(a.out, "missing  %s copies of slots, which the auditor makes; --json names them\n", countText(r.MissingTotal))
	}
	return a.printSum(r)
}

func damagedText(d *check.DamageItem) string {
	rows := fmt.Sprintf("epoch %d rows %d to %d", d.Epoch, d.First, d.Last)
	switch {
	case d.Last == 0:
		rows = fmt.Sprintf("epoch %d", d.Epoch)
	case d.Stream != "":
		rows = fmt.Sprintf("stream %q %s", d.Stream, rows)
	}
	if d.Key != "" {
		rows += ": " + d.Key
	}
	return rows
}

// printSum is the last line, and what to do next.
func (a *app) printSum(r *check.Report) error {
	looked := countOf(r.Footers, "footer")
	if r.Chunks > 0 {
		looked += fmt.Sprintf(" and %s (%s)", countOf(r.Chunks, "chunk"), bytesText(r.ChunkBytes))
	}
	if r.Skipped > 0 {
		looked += fmt.Sprintf(", %s not looked into", countOf(r.Skipped, "object"))
	}
	fmt.Fprintf(a.out, "%s: %s, %s; %s in %s; read %s; %s waiting (%s)\n",
		r.Verdict, countOf(r.Objects, "object"), bytesText(r.Bytes), countOf(r.Refs, "ref"), countOf(r.Streams, "stream"), looked,
		countText(r.Waiting), bytesText(r.WaitingBytes))
	_, err := fmt.Fprintf(a.out, "damage %s, rotten %s, unreadable %s, garbage %s (pending %s, leaked %s, unknown %s), accepted as lost %s%s\n",
		countText(r.DamageTotal), countText(r.RottenTotal), countText(r.UnreadableTotal), countText(r.GarbageTotal), countText(r.PendingTotal),
		countText(r.LeakedTotal), countText(r.UnknownTotal), countText(r.LostTotal), nextStep(r))
	return err
}

func nextStep(r *check.Report) string {
	switch {
	case r.DamageTotal > 0:
		return "\nnext: strandline explain KEY tells of each; bring the object back from a copy or a backup of the bucket, or say accept-loss"
	case r.RottenTotal > 0:
		return "\nnext: strandline explain KEY tells of each; copy the sound object over the rotten one"
	case r.UnreadableTotal > 0:
		return "\nnext: run fsck again; if it is always the same objects, strandline explain KEY tells of each and what to do"
	case r.LeakedTotal > 0:
		return "\nnext: strandline auditor --once --sweep reclaims what leaked"
	case r.OwedTotal > 0 && r.GarbageTotal == 0:
		return "\nnext: strandline auditor --once does what is due (with --settle-age 0 young slots, too), the rest waits for its grace; strandline status has the errors of markers"
	}
	return ""
}
