package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// salvageFlags are the knobs of `salvage`.
type salvageFlags struct {
	backend backendFlags
	caller  callerFlags
	all     bool
	dryRun  bool
}

func (a *app) salvageCommand() *cobra.Command {
	var f salvageFlags
	cmd := &cobra.Command{
		Use:   "salvage [DIRECTORY]",
		Short: "Append again the rows of a directory that was set aside",
		Long: whatQuarantineIs + "\n\nThe rows get new seqs and keep time, transaction and payload. Each goes to the present owner of its shard. It may be\n" +
			"run again after any error: no row comes in twice, unless its client appended it again itself, unanswered. The directory\n" +
			"stays until strandline quarantine rm.\n" +
			"DIRECTORY is a path or a name as quarantine ls prints it; --all takes all of them.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if (len(args) == 1) == f.all {
				return usage("give either DIRECTORY or --all; usage: %s", cmd.UseLine())
			}
			t, err := f.backend.open(cmd.Context(), modeWrite)
			if err != nil {
				return err
			}
			defer func() { err = closing(err, t) }()
			var list []localtier.Quarantine
			if f.all {
				list, err = localtier.ListQuarantine(cmd.Context(), filepath.Join(t.dir, writerDir))
			} else {
				list = make([]localtier.Quarantine, 1)
				list[0], err = chosen(cmd.Context(), t.dir, args[0])
			}
			if err != nil {
				return err
			}
			return a.salvage(cmd.Context(), t, &f, list)
		},
	}
	fs := cmd.Flags()
	f.backend.register(fs)
	fs.BoolVar(&f.all, "all", false, "all that was set aside under --dir")
	f.caller.register(fs)
	fs.BoolVar(&f.dryRun, "dry-run", false, "only say what would be appended")
	return cmd
}

// salvaged is what became of one directory.
type salvaged struct {
	quarantineOut
	Sent uint64 `json:"sent"`
	Err  string `json:"error,omitempty"`
}

// A directory is judged in milliseconds, on a busy machine in a second or two.
const (
	judgeTries = 50
	judgePause = 100 * time.Millisecond
)

// once waits for a writer that was just started and judges what it set aside.
func (s *salvager) once(ctx context.Context, q localtier.Quarantine) (sent uint64, err error) {
	for tries := 0; ; tries++ {
		sent, err = localtier.Salvage(ctx, q, s.shards, s.send)
		if !errors.Is(err, wal.ErrLocked) || tries == judgeTries {
			return sent, err
		}
		select {
		case <-time.After(judgePause):
		case <-ctx.Done():
			return sent, err
		}
	}
}

// salvage takes the directories one by one. One that fails holds up no other.
func (a *app) salvage(ctx context.Context, t *tier, f *salvageFlags, list []localtier.Quarantine) error {
	tops, err := t.catalog.Topologies(ctx)
	if err != nil {
		return err
	}
	top, err := epochOf(tops, 0)
	if err != nil {
		return err
	}
	s := &salvager{app: a, tier: t, shards: top.Shards, caller: &f.caller, clients: map[segment.Shard]*client.Client{}}
	out := []salvaged{}
	var errs []error
	for i := range list {
		one := salvaged{quarantineOut: quarantineOf(&list[i])}
		if !f.dryRun {
			one.Sent, err = s.once(ctx, list[i])
			switch {
			case err != nil && gone(list[i].Dir):
				// Judged since it was listed: the chain has all of it, or somebody removed it.
				one.State = "gone"
			case err != nil:
				one.Err = err.Error()
				errs = append(errs, fmt.Errorf("salvage %s: %w", list[i].Dir, err))
			}
		}
		out = append(out, one)
	}
	return errors.Join(a.printSalvaged(out, f.dryRun), errors.Join(errs...))
}

func gone(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

func (a *app) printSalvaged(out []salvaged, dryRun bool) error {
	if a.json {
		return a.printJSON(out)
	}
	for _, s := range out {
		said := fmt.Sprintf("%s appended again", countOf(s.Sent, "row"))
		switch {
		case dryRun:
			said = fmt.Sprintf("%s would be appended again (%s)", countOf(s.Rows, "row"), s.State)
		case s.Err != "":
			said += ", then it failed"
		case s.State == "gone":
			said = "gone meanwhile: the chain has all of it, or it was removed"
		case s.Sent == 0:
			said = "its rows were appended again before"
		}
		if _, err := fmt.Fprintf(a.out, "%s: %s\n", s.Dir, said); err != nil {
			return err
		}
	}
	if len(out) == 0 {
		_, err := fmt.Fprintln(a.out, "nothing was set aside")
		return err
	}
	return nil
}

// salvager sends rows to the owners of their shards.
type salvager struct {
	*app
	tier    *tier
	shards  uint32
	caller  *callerFlags
	clients map[segment.Shard]*client.Client
}

func (s *salvager) send(ctx context.Context, p localtier.Producer, stream string, rows []segment.Row) error {
	shard := segment.ShardOf(stream, s.shards)
	c := s.clients[shard]
	if c == nil {
		var err error
		if c, err = s.ownerOf(ctx, s.tier, s.caller, segment.Chain{Shard: shard}); err != nil {
			return err
		}
		s.clients[shard] = c
	}
	_, err := c.Append(ctx, stream, rows, client.AppendOptions{Producer: p.ID, Sequence: p.Sequence, ExactTimes: true})
	return asSequence(err, p)
}
