package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/segment"
)

// lossFlags are how far an operator's word goes.
type lossFlags struct {
	yes, dryRun, withSound, unreadable bool
}

func (a *app) acceptLossCommand() *cobra.Command {
	var b backendFlags
	var f lossFlags
	cmd := &cobra.Command{
		Use:   "accept-loss KEY [STREAM]",
		Short: "Give up a stream's rows in an object that is gone or damaged, so that all else goes on",
		Long: "Proves the loss first: reads the object in every bucket of its class, twice. Refused while one of them has the rows whole, and\n" +
			"while one does not answer. Then prints what would be lost, and gives nothing up unless --yes is given. From then on reading\n" +
			"these rows is an error that says so, what lies on either side is read and rewritten as before, and the object is reclaimed.\n" +
			"Bytes that the store never gives, though it answers for the object, prove nothing by themselves: --unreadable is your word for it.\n" +
			"Rows of the same span that can still be read go too: copy them first, then say --with-sound-rows.\n" +
			"KEY alone gives up what a void slot holds: rows that were refused when it was absorbed, and never entered the history.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			stream := ""
			if len(args) == 2 {
				if stream = args[1]; stream == "" {
					return usage("STREAM is empty; leave it out for a void slot")
				}
			}
			m := modeRead
			if f.yes && !f.dryRun {
				m = modeWrite
			}
			t, err := b.open(cmd.Context(), m)
			if err != nil {
				return err
			}
			defer func() { err = closing(err, t) }()
			return a.acceptLoss(cmd.Context(), t, f, [2]string{args[0], stream})
		},
	}
	b.register(cmd.Flags())
	cmd.Flags().BoolVar(&f.yes, "yes", false, "give the rows up, for good")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only prove the loss, and print what would be lost")
	cmd.Flags().BoolVar(&f.unreadable, "unreadable", false, "your word that the store will never give these bytes again: reads that are cut short at three looks count as lost")
	cmd.Flags().BoolVar(&f.withSound, "with-sound-rows", false, "also the rows of the span that can still be read")
	return cmd
}

// acceptLoss proves, prints and gives up what of names: a key and a stream, or none.
func (a *app) acceptLoss(ctx context.Context, t *tier, f lossFlags, of [2]string) error {
	var loss *check.Loss
	var err error
	switch {
	case of[1] == "" && f.unreadable:
		return usage("--unreadable goes with a STREAM")
	case f.unreadable:
		loss, err = check.ProveUnreadable(ctx, t.catalog, t.classes, of[0], of[1])
	case of[1] == "":
		loss, err = check.ProveVoid(ctx, t.catalog, t.classes, of[0])
	default:
		loss, err = check.ProveLoss(ctx, t.catalog, t.classes, of[0], of[1])
	}
	if err != nil {
		return err
	}
	accepted := f.yes && !f.dryRun && (loss.SoundRows == 0 || f.withSound)
	if accepted {
		// A crash before or after it is as before it or after it: one transaction, and a
		// second call says that there is nothing left to give up.
		if _, err := t.catalog.AcceptLoss(ctx, of[0], of[1]); err != nil {
			return err
		}
	}
	if err := a.printLoss(loss, accepted); err != nil {
		return err
	}
	switch {
	case accepted || f.dryRun:
		return nil
	case loss.SoundRows > 0 && !f.withSound:
		return usage("nothing was given up: %s of those rows can still be read; copy them, then give --with-sound-rows as well as --yes", countText(int64(loss.SoundRows)))
	default:
		return usage("nothing was given up: give --yes if those rows may go")
	}
}

func (a *app) printLoss(l *check.Loss, accepted bool) error {
	if a.json {
		return a.printJSON(struct {
			*check.Loss
			Accepted bool `json:"accepted"`
		}{l, accepted})
	}
	for _, line := range lookLines(l.Looks) {
		fmt.Fprintln(a.out, line)
	}
	inStream := ""
	if l.Stream != "" {
		inStream = fmt.Sprintf(" of stream %q", l.Stream)
	}
	verb := "would be given up"
	if accepted {
		verb = "are given up"
	}
	for i := range l.Spans {
		s := &l.Spans[i]
		fmt.Fprintf(a.out, "rows %s to %s: %s%s, of %s to %s\n", segment.Pos{Epoch: s.Epoch, Seq: s.First}, segment.Pos{Epoch: s.Epoch, Seq: s.Last},
			countOf(s.Rows, "row"), inStream, timeText(s.MinTime), timeText(s.MaxTime))
		for _, r := range s.Sound {
			fmt.Fprintf(a.out, "  rows %d to %d (%s) can still be read: strandline cat '%s' --from %s --to %s\n", r.First, r.Last, countText(int64(r.Rows)),
				l.Stream, segment.Pos{Epoch: s.Epoch, Seq: r.First}, segment.Pos{Epoch: s.Epoch, Seq: r.Last})
		}
	}
	_, err := fmt.Fprintf(a.out, "%s: %s %s\n", l.Key, countOf(l.Rows, "row"), verb)
	return err
}

// lookLines say what the looks at each bucket met; those that met the same are one line.
func lookLines(looks []check.LossLook) (lines []string) {
	times := map[check.LossLook]int{}
	for _, look := range looks {
		times[look]++
	}
	for _, look := range looks {
		switch n := times[look]; n {
		case 0: // said
		case 1:
			lines = append(lines, fmt.Sprintf("looked at %s: %s", look.Bucket, look.Why))
		default:
			lines = append(lines, fmt.Sprintf("looked at %s %d times, each time: %s", look.Bucket, n, look.Why))
		}
		delete(times, look)
	}
	return lines
}

func timeText(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339) }
