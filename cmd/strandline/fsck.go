package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/check"
)

func (a *app) fsckCommand() *cobra.Command {
	var b backendFlags
	cmd := &cobra.Command{
		Use:   "fsck",
		Short: "Hold the bucket against the catalog: clean (exit 0), garbage (1) or damage (3)",
		Long: "Reads every footer and every ref, and changes nothing. Safe while writers and auditors run.\n" +
			"pending garbage goes by itself after its grace; leaked garbage is reclaimed by auditor --sweep; unknown keys are never touched.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			t, err := b.open(cmd.Context(), modeRead)
			if err != nil {
				return err
			}
			defer func() { err = closing(err, t) }()
			bar := a.progress(-1, "objects")
			report, err := check.Fsck(cmd.Context(), t.catalog, t.classes, check.Config{
				Progress: func(_, bytes int64) { _ = bar.Set64(bytes) }, // a bar that cannot be drawn is no reason to stop
			})
			_ = bar.Finish() // likewise
			if err != nil {
				return fmt.Errorf("fsck could not finish, no verdict: %w", err)
			}
			if err := a.printReport(report); err != nil {
				return err
			}
			return verdictExit(report.Verdict)
		},
	}
	b.register(cmd.Flags())
	return cmd
}

func verdictExit(v check.Verdict) error {
	switch v {
	case check.Damage:
		return &exitError{code: exitDamage}
	case check.Garbage:
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
		fmt.Fprintf(a.out, "damage   stream %q epoch %d rows %d to %d: %s %s%s\n", d.Stream, d.Epoch, d.First, d.Last, d.Key, d.Why, in(d.Bucket))
	}
	for _, g := range r.Garbage {
		fmt.Fprintf(a.out, "%-8s %s (%s): %s%s\n", g.State, g.Key, bytesText(g.Bytes), g.Why, in(g.Bucket))
	}
	if r.MissingTotal > 0 {
		fmt.Fprintf(a.out, "missing  %s copies of slots, which the auditor makes; --json names them\n", countText(r.MissingTotal))
	}
	_, err := fmt.Fprintf(a.out, "%s: %s objects, %s; %s refs in %s streams; %s waiting (%s); garbage %s, damage %s\n",
		r.Verdict, countText(r.Objects), bytesText(r.Bytes), countText(r.Refs), countText(r.Streams),
		countText(r.Waiting), bytesText(r.WaitingBytes), countText(r.GarbageTotal), countText(r.DamageTotal))
	return err
}
