package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/segment"
)

// streamLine is a stream for machines.
type streamLine struct {
	Name     string      `json:"name"`
	LiveFrom positionOut `json:"live_from"`
	Last     positionOut `json:"last"`
	Deleted  bool        `json:"deleted"`
	Created  string      `json:"created"`
}

type positionOut struct {
	Epoch segment.Epoch `json:"epoch"`
	Seq   segment.Seq   `json:"seq"`
}

func lineOfStream(s *catalog.Stream) streamLine {
	return streamLine{
		Name: s.Name, LiveFrom: positionOut(s.LiveFrom), Last: positionOut(s.Last),
		Deleted: s.Deleted, Created: s.Created.UTC().Format(createdForm),
	}
}

const createdForm = "2006-01-02T15:04:05.000Z07:00"

func (a *app) streamsCommand() *cobra.Command {
	var b backendFlags
	var from clientFlags
	var prefix string
	cmd := &cobra.Command{
		Use:   "streams",
		Short: "List streams with their first live and last positions",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if from.server != "" {
				return a.listStreamsFrom(cmd.Context(), &from, prefix)
			}
			t, err := b.open(cmd.Context(), modeRead)
			if err != nil {
				return err
			}
			defer func() { err = closing(err, t) }()
			return a.listStreams(cmd.Context(), t, prefix)
		},
	}
	b.register(cmd.Flags())
	from.register(cmd.Flags(), "", askServer)
	cmd.Flags().StringVar(&prefix, "prefix", "", "only streams whose name begins so")
	return cmd
}

// askServer is what --server means to commands that need none.
const askServer = "ask this server, by its URL, not catalog and bucket; several with commas between"

func (a *app) listStreams(ctx context.Context, t *tier, prefix string) error {
	lines, after := []streamLine{}, ""
	for {
		page, err := t.catalog.Streams(ctx, after, pageOfStreams)
		if err != nil {
			return err
		}
		for i := range page {
			if after = page[i].Name; strings.HasPrefix(after, prefix) {
				lines = append(lines, lineOfStream(&page[i]))
			}
		}
		if len(page) < pageOfStreams {
			return a.printStreams(lines)
		}
	}
}

// pageOfStreams is how many are asked for at once.
const pageOfStreams = 1000

func (a *app) listStreamsFrom(ctx context.Context, from *clientFlags, prefix string) error {
	c, err := a.newClient(from.server, &from.caller)
	if err != nil {
		return err
	}
	lines := []streamLine{}
	for s, err := range c.Streams(ctx, prefix) {
		if err != nil {
			return asked(err)
		}
		lines = append(lines, streamLine{
			Name: s.Name, LiveFrom: positionOut(s.LiveFrom), Last: positionOut(s.Last), Deleted: s.Deleted,
			Created: s.Created.UTC().Format(createdForm),
		})
	}
	return a.printStreams(lines)
}

func (a *app) printStreams(lines []streamLine) error {
	if a.json {
		return a.printJSON(lines)
	}
	rows := [][]string{{"STREAM", "LIVE FROM", "LAST", "STATE"}}
	for _, l := range lines {
		state := "live"
		if l.Deleted {
			state = "deleted"
		}
		rows = append(rows, []string{l.Name, segment.Pos(l.LiveFrom).String(), segment.Pos(l.Last).String(), state})
	}
	return table(a.out, rows)
}

func (a *app) trimCommand() *cobra.Command {
	var b backendFlags
	var at clientFlags
	cmd := &cobra.Command{
		Use:   "trim STREAM POS",
		Short: "Give up a stream's rows below a position (a seq, EPOCH.SEQ, or a token)",
		Long: "Readers skip what is below POS at once; the auditor deletes its bytes after the graces.\n" +
			"The position right behind the last absorbed row gives up all of them; one beyond it is refused.",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if at.server != "" {
				return a.trimAt(cmd.Context(), &at, args[0], args[1])
			}
			return a.trim(cmd.Context(), &b, args[0], args[1])
		},
	}
	b.register(cmd.Flags())
	at.register(cmd.Flags(), "", askServer)
	return cmd
}

// trim goes to the catalog itself.
func (a *app) trim(ctx context.Context, b *backendFlags, stream, below string) (err error) {
	t, err := b.open(ctx, modeWrite)
	if err != nil {
		return err
	}
	defer func() { err = closing(err, t) }()
	tops, err := t.catalog.Topologies(ctx)
	if err != nil {
		return err
	}
	pos, err := positionIn(tops, "POS", below)
	if err != nil {
		return err
	}
	if err := checkPlace(ctx, t, stream, pos); err != nil {
		return err
	}
	s, err := t.catalog.TrimStream(ctx, stream, pos.pos)
	if errors.Is(err, catalog.ErrNotFound) {
		return noSuchStream(stream)
	}
	if err != nil {
		return fmt.Errorf("trim %s: %w", stream, err)
	}
	return a.printStream(&s, "trimmed")
}

// trimAt asks a server.
func (a *app) trimAt(ctx context.Context, at *clientFlags, stream, pos string) error {
	below, err := wirePosition("POS", pos)
	if err != nil {
		return err
	}
	c, err := a.newClient(at.server, &at.caller)
	if err != nil {
		return err
	}
	got, err := c.Trim(ctx, stream, below)
	if err != nil {
		return asked(err)
	}
	return a.printTrimmed(got, "trimmed")
}

func (a *app) printTrimmed(got client.Trimmed, done string) error {
	if a.json {
		return a.printJSON(got)
	}
	_, err := fmt.Fprintf(a.out, "%s: %s, live from %s\n", got.Stream, done, segment.Pos(got.LiveFrom))
	return err
}

func (a *app) rmCommand() *cobra.Command {
	var b backendFlags
	var at clientFlags
	cmd := &cobra.Command{
		Use:   "rm STREAM",
		Short: "Delete a stream: trim through its tip; its name goes on above if it is appended to again",
		Long: "The owner of the stream's shard is asked to publish first, so that rows it has acknowledged go with the stream. If it does\n" +
			"not answer, that is said, and such rows would bring the stream back when they are published.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if at.server != "" {
				return a.rmAt(cmd.Context(), &at, args[0])
			}
			t, err := b.open(cmd.Context(), modeWrite)
			if err != nil {
				return err
			}
			defer func() { err = closing(err, t) }()
			if err := a.flushOwner(cmd.Context(), t, &at.caller, args[0]); err != nil {
				fmt.Fprintf(a.err, "strandline: rows that the owner has not published yet stay: %v\n", err)
			}
			s, err := t.catalog.DeleteStream(cmd.Context(), args[0])
			if errors.Is(err, catalog.ErrNotFound) {
				return noSuchStream(args[0])
			}
			if err != nil {
				return fmt.Errorf("rm %s: %w", args[0], err)
			}
			return a.printStream(&s, "deleted")
		},
	}
	b.register(cmd.Flags())
	at.register(cmd.Flags(), "", askServer)
	return cmd
}

// rmAt asks a server.
func (a *app) rmAt(ctx context.Context, at *clientFlags, stream string) error {
	c, err := a.newClient(at.server, &at.caller)
	if err != nil {
		return err
	}
	got, err := c.Delete(ctx, stream)
	if err != nil {
		return asked(err)
	}
	return a.printTrimmed(got, "deleted")
}

// flushOwner asks the living owner of a stream's shard, if there is one, to publish.
func (a *app) flushOwner(ctx context.Context, t *tier, caller *callerFlags, stream string) error {
	tops, err := t.catalog.Topologies(ctx)
	if err != nil || len(tops) == 0 {
		return err
	}
	top := newest(tops)
	row, err := t.catalog.Chain(ctx, segment.Chain{Epoch: top.Epoch, Shard: segment.ShardOf(stream, top.Shards)})
	if err != nil {
		return err
	}
	now, err := t.catalog.Now(ctx)
	if err != nil || !live(&row, now) {
		return err // nobody serves it: nothing is on its way
	}
	c, err := a.newClient(row.Address, caller)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, flushWait)
	defer cancel()
	return asked(c.Flush(ctx))
}

// flushWait bounds the wait for an owner that may be stuck.
const flushWait = 30 * time.Second

func (a *app) printStream(s *catalog.Stream, done string) error {
	if a.json {
		return a.printJSON(lineOfStream(s))
	}
	_, err := fmt.Fprintf(a.out, "%s: %s, live from %s, last %s\n", s.Name, done, s.LiveFrom, s.Last)
	return err
}
