package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/internal/drive"
)

// driveFlag is a flag that some drives have.
type driveFlag string

const (
	driveEvents   driveFlag = "events"
	driveShards   driveFlag = "shards"
	driveConsumer driveFlag = "consumer"
	driveSegments driveFlag = "segments"
)

func (a *app) driveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drive",
		Short: "Prove the local tier's promises on real files in a directory",
		Long: "Each drive founds a small deployment of its own in --dir (a directory as bucket, SQLite as catalog, real shard\n" +
			"directories), puts it through a crash or a retention run, reads back what is there, and prints one line a promise.\n" +
			"Exit 0 only if all hold; 1 names the promise that does not, and what was found instead. The files stay to be looked at,\n" +
			"and the next drive in the same directory clears them. A directory that no drive made is refused.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, d := range drives() {
		cmd.AddCommand(a.oneDrive(d))
	}
	return cmd
}

// driveUsage is what one drive is called with.
type driveUsage struct {
	name, short, long string
	flags             []driveFlag
}

func drives() []driveUsage {
	return []driveUsage{
		{
			drive.Recovery, "Kill a writer and restart it on its own disk",
			"Appends --events, acknowledges a durable consumer's first third, kills the writer before anything is published,\nrestarts it on its disk: no row lost, order, streams and payloads kept, the cursor where it was.",
			[]driveFlag{driveEvents, driveConsumer},
		},
		{
			drive.Affinity, "One writer a shard: the others are refused, and read the owner's files",
			"Starts --shards writers, one a shard: owners write, every other is refused without a trace and reads read-only;\nnobody else can become owner; all are killed and restarted.",
			[]driveFlag{driveEvents, driveShards},
		},
		{
			drive.Shared, "Lose a writer with its disk: the bucket has all that was published",
			"Starts --shards writers with disks of their own over one bucket: what owners publish, readers without a disk read;\nan owner is killed, its disk deleted, and another takes its shard from the bucket alone.",
			[]driveFlag{driveEvents, driveShards, driveConsumer},
		},
		{
			drive.GC, "Give up what a consumer has passed, at the owner",
			"Appends --events in segments of --segment-bytes, acknowledges a consumer at three quarters, and runs retention at the\nowner: its disk shrinks, what is retained is whole and begins right above the watermark, also after a kill and restart.",
			[]driveFlag{driveEvents, driveConsumer, driveSegments},
		},
		{
			drive.SharedGC, "Give up what a consumer has passed, across the bucket",
			"The same over a bucket with --shards owners, and the auditor deletes the slots: owner, a reader without a disk, and a new\nowner on an empty disk see exactly the same rows; no other shard is touched. Takes some read graces (of a second).",
			[]driveFlag{driveEvents, driveShards, driveConsumer, driveSegments},
		},
	}
}

func (a *app) oneDrive(d driveUsage) *cobra.Command {
	o := drive.Defaults(d.name)
	size := sizeFlag(o.SegmentBytes)
	cmd := &cobra.Command{
		Use: d.name, Short: d.short, Long: d.long, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("log-level") {
				a.logLevel = "warn" // what each writer does is the drive's own affair
			}
			log, err := a.logger()
			if err != nil {
				return err
			}
			o.SegmentBytes, o.Logger = int64(size), log
			return a.drive(cmd, d.name, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", "", "the drive's directory: empty, missing, or a former drive's, which is cleared (required)")
	for _, flag := range d.flags {
		switch flag {
		case driveEvents:
			f.IntVar(&o.Events, "events", o.Events, fmt.Sprintf("rows to append, at most %d", drive.MaxEvents))
		case driveShards:
			f.Uint32Var(&o.Shards, "shards", o.Shards, fmt.Sprintf("shards, each with a writer of its own, %d to %d", drive.LeastShards, drive.MaxShards))
		case driveConsumer:
			f.StringVar(&o.Consumer, "consumer", o.Consumer, "name of the durable consumer")
		case driveSegments:
			f.Var(&size, "segment-bytes", "seal a segment after so many bytes of payload, 64B to 256MiB")
			f.IntVar(&o.MinRetained, "min-retained-segments", o.MinRetained, fmt.Sprintf("full-size segments that stay, 1 to %d", drive.MaxMinRetained))
		}
	}
	return cmd
}

func (a *app) drive(cmd *cobra.Command, name string, o drive.Options) error {
	r, err := drive.Run(cmd.Context(), name, o)
	if errors.Is(err, drive.ErrOptions) || errors.Is(err, drive.ErrDir) {
		return usage("%w", err)
	}
	if err != nil {
		return err
	}
	if err := a.printDrive(r); err != nil {
		return err
	}
	if err := r.Divergence(); err != nil {
		return &exitError{code: exitFailed, err: fmt.Errorf("drive %s: %w", name, err)}
	}
	return nil
}

func (a *app) printDrive(r *drive.Report) error {
	if a.json {
		return a.printJSON(r)
	}
	rows := [][]string{{"CLAIM", "HOLDS"}}
	for _, c := range r.Claims {
		holds := "yes"
		if r.Unjudged(c) {
			holds = "not judged"
		} else if !c.Holds() {
			holds = "no: " + c.Err.Error()
		}
		rows = append(rows, []string{c.Name, holds})
	}
	if err := table(a.out, rows); err != nil {
		return err
	}
	for _, f := range r.Figures {
		if _, err := fmt.Fprintf(a.out, "%s %s\n", f.Name, countText(f.Value)); err != nil {
			return err
		}
	}
	verdict := "holds"
	if r.Stopped != nil {
		verdict = "does not hold: it was not finished"
	} else if !r.Holds() {
		verdict = "does not hold"
	}
	_, err := fmt.Fprintf(a.out, "drive %s %s\n", r.Drive, verdict)
	return err
}
