package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// quarantineOut is one for machines.
type quarantineOut struct {
	Dir      string        `json:"dir"`
	Epoch    segment.Epoch `json:"epoch"`
	Shard    segment.Shard `json:"shard"`
	Writer   segment.UUID  `json:"writer"`
	Segments int           `json:"segments"`
	Rows     uint64        `json:"rows"`
	Bytes    int64         `json:"bytes"`
	Since    *time.Time    `json:"since,omitempty"`
	State    string        `json:"state"`
	Damage   string        `json:"damage,omitempty"`
}

func quarantineOf(q *localtier.Quarantine) quarantineOut {
	out := quarantineOut{
		Dir: q.Dir, Epoch: q.Chain.Epoch, Shard: q.Chain.Shard, Writer: q.Writer,
		Segments: q.Segments, Rows: q.Rows, Bytes: q.Bytes, State: "waits", Damage: q.Damage,
	}
	switch {
	case q.Damage != "":
		out.State = "damaged"
	case !q.Judged:
		out.State = "not judged yet"
	case q.Salvaged:
		out.State = "salvaged"
	}
	if !q.Since.IsZero() {
		since := q.Since.UTC()
		out.Since = &since
	}
	return out
}

// whatQuarantineIs is said in every help text that needs it.
const whatQuarantineIs = "A writer that finds that its chain went on without its directory (another writer took it over, or its epoch was closed)\n" +
	"moves the directory aside, to DIR/writer/quarantine: it may hold rows that were acknowledged on that disk only and never\n" +
	"entered the history. Strandline never deletes them."

func (a *app) quarantineCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quarantine",
		Short: "Directories that were set aside with rows outside the history: list, remove",
		Long:  whatQuarantineIs + "\nsalvage appends their rows again; quarantine rm gives them up.",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.quarantineLs(), a.quarantineRm())
	return cmd
}

func (a *app) quarantineLs() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "ls", Short: "List what was set aside, with the rows in it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := localtier.ListQuarantine(cmd.Context(), filepath.Join(dir, writerDir))
			if err != nil {
				return err
			}
			return a.printQuarantine(list)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", defaultDir, "the writer's --dir")
	return cmd
}

func (a *app) printQuarantine(list []localtier.Quarantine) error {
	out := make([]quarantineOut, len(list))
	for i := range list {
		out[i] = quarantineOf(&list[i])
	}
	if a.json {
		return a.printJSON(out)
	}
	rows := [][]string{{"DIRECTORY", "EPOCH", "SHARD", "ROWS", "BYTES", "STATE"}}
	for _, q := range out {
		state := q.State
		if q.Damage != "" {
			state += ": " + q.Damage
		}
		rows = append(rows, []string{q.Dir, num(q.Epoch), num(q.Shard), countText(int64(q.Rows)), bytesText(q.Bytes), state})
	}
	return table(a.out, rows)
}

// chosen finds a quarantined directory by its path, or by its name below dir.
func chosen(ctx context.Context, dir, name string) (localtier.Quarantine, error) {
	root := filepath.Join(dir, writerDir)
	if filepath.Base(name) != name {
		abs, err := filepath.Abs(name)
		if err != nil {
			return localtier.Quarantine{}, err
		}
		root = filepath.Dir(filepath.Dir(abs)) // of DIR/writer/quarantine/NAME
	}
	list, err := localtier.ListQuarantine(ctx, root)
	if err != nil {
		return localtier.Quarantine{}, err
	}
	for _, q := range list {
		if filepath.Base(q.Dir) == filepath.Base(name) {
			return q, nil
		}
	}
	return localtier.Quarantine{}, fmt.Errorf("%s is nothing that was set aside; see strandline quarantine ls", name)
}

func (a *app) quarantineRm() *cobra.Command {
	var dir string
	var yes, dryRun bool
	cmd := &cobra.Command{
		Use: "rm DIRECTORY", Short: "Give up the rows of a directory that was set aside, for good",
		Long: "Prints what would be lost and removes nothing unless --yes is given. DIRECTORY is a path or a name as quarantine ls prints it.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := chosen(cmd.Context(), dir, args[0])
			if err != nil {
				return err
			}
			removed := yes && !dryRun
			if removed {
				if err := localtier.RemoveQuarantine(cmd.Context(), q); err != nil {
					return err
				}
			}
			if err := a.printRemoved(&q, removed); err != nil {
				return err
			}
			if !yes && !dryRun {
				return usage("nothing was removed: give --yes if those rows may go")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", defaultDir, "the writer's --dir")
	cmd.Flags().BoolVar(&yes, "yes", false, "remove it")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only print what would be lost")
	return cmd
}

func (a *app) printRemoved(q *localtier.Quarantine, removed bool) error {
	if a.json {
		return a.printJSON(struct {
			quarantineOut
			Removed bool `json:"removed"`
		}{quarantineOf(q), removed})
	}
	verb := "would go"
	if removed {
		verb = "are gone"
	}
	what := fmt.Sprintf("%s in %s (%s) that the history does not have", countOf(q.Rows, "row"), countOf(q.Segments, "segment"), bytesText(q.Bytes))
	switch {
	case q.Damage != "":
		what = fmt.Sprintf("%s that cannot be read (%s)", bytesText(q.Bytes), q.Damage)
	case !q.Judged:
		what = fmt.Sprintf("%s (%s), of which nobody knows yet which ones the history has", countOf(q.Rows, "row"), bytesText(q.Bytes))
	case q.Salvaged:
		what = fmt.Sprintf("%s (%s), all of them appended again by salvage,", countOf(q.Rows, "row"), bytesText(q.Bytes))
	}
	_, err := fmt.Fprintf(a.out, "%s: %s %s\n", q.Dir, what, verb)
	return err
}
