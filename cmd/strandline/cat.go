package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/segment"
)

func (a *app) catCommand() *cobra.Command {
	var b backendFlags
	var r readFlags
	cmd := &cobra.Command{
		Use:   "cat STREAM",
		Short: "Read a stream, a payload a line",
		Long: "Reads what is absorbed, straight from the bucket; no server is needed. With --server it is asked instead: a writer has the newest\n" +
			"rows of its own shards on its disk, and with --owner whoever is asked leads to the stream's.\n" +
			"--from and --to are inclusive: a seq, EPOCH.SEQ, or a token like e1.t3.4711 as append prints it. --from with a token fails\n" +
			"(exit 1) if the history went on without it.\n" +
			"--since shows rows by their time, a duration back from now or RFC 3339; rows need not be in the order of their times, so all\n" +
			"from there on are read and the older left out. Without --server, what the catalog says holds older rows only, up to the first\n" +
			"that does not, is not read at all.\n" +
			"--follow goes on behind the last row until it is interrupted, through restarts and takeovers; from the bucket it asks the\n" +
			"catalog each second.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := r.check(); err != nil {
				return err
			}
			if err := segment.CheckStream(args[0]); err != nil && !strings.HasPrefix(args[0], "~") {
				return err
			}
			if r.server != "" {
				return r.watched(cmd.Context(), a.catFrom(cmd.Context(), args[0], &r))
			}
			t, err := a.openCold(cmd.Context(), &b)
			if err != nil {
				return err
			}
			defer func() { err = closing(err, t) }()
			return r.watched(cmd.Context(), a.cat(cmd.Context(), t, args[0], &r))
		},
	}
	b.register(cmd.Flags())
	b.cache.register(cmd.Flags())
	r.register(cmd.Flags())
	return cmd
}

// cat copies rows out.
func (a *app) cat(ctx context.Context, t *tier, stream string, r *readFlags) error {
	tops, err := t.catalog.Topologies(ctx)
	if err != nil {
		return err
	}
	from, to, err := span(tops, r.from, r.to)
	if err != nil {
		return err
	}
	if !r.since.IsZero() && from.pos == (segment.Pos{}) {
		if from.pos, err = beginSince(ctx, t.catalog, stream, r.since); err != nil {
			return err
		}
	}
	if r.follow {
		return a.followCold(t, newest(tops), r, func(c *client.Client, o client.ReadOptions) iter.Seq2[client.Row, error] {
			if from.token == nil && from.pos != (segment.Pos{}) {
				o.From = from.pos.String()
			}
			return c.Rows(ctx, stream, o)
		})
	}
	reader, err := coldload.New(t.catalog, t.reads, coldload.Config{})
	if err != nil {
		return err
	}
	return a.printRows(stream, r, coldload.Checked(reader.Rows(ctx, stream, from.pos, to.pos), from.token, func(tok segment.Token) error {
		return reader.Check(ctx, stream, tok)
	}))
}

// printRows prints the rows of a stream. What was read before an error is printed before
// the error.
func (a *app) printRows(stream string, r *readFlags, rows iter.Seq2[coldload.Row, error]) error {
	out := newPayloadPrinter(a, r.ndjson || a.json)
	for row, err := range rows {
		if errors.Is(err, catalog.ErrNotFound) {
			return firstOf(out.flush(), noSuchStream(stream))
		}
		if err != nil {
			return fmt.Errorf("cat %s: %w", stream, firstOf(err, out.flush()))
		}
		if row.Time < r.least() {
			continue
		}
		if err := out.row(stream, &row); err != nil {
			return err
		}
	}
	return out.flush()
}

// catFrom asks a server.
func (a *app) catFrom(ctx context.Context, stream string, r *readFlags) error {
	return a.readFrom(r, func(c *client.Client, o client.ReadOptions) iter.Seq2[client.Row, error] {
		return c.Rows(ctx, stream, o)
	})
}

// firstOf prefers the cause over what it made impossible.
func firstOf(err, then error) error {
	if err != nil {
		return err
	}
	return then
}

// closing keeps the first error when a tier is closed on the way out.
func closing(err error, t *tier) error { return firstOf(err, t.Close()) }

// place is a position that somebody typed.
type place struct {
	pos   segment.Pos    // zero: none was given
	token *segment.Token // it was a token, to be held against the history
}

// position reads SEQ, EPOCH.SEQ or a token.
func position(flag, text string, epoch segment.Epoch) (place, error) {
	if text == "" {
		return place{}, nil
	}
	bad := usage("%s %q: give SEQ, EPOCH.SEQ or a token like e1.t3.4711", flag, text)
	if strings.HasPrefix(text, "e") {
		tok, err := segment.ParseToken(text)
		if err != nil || tok.Seq == 0 {
			return place{}, bad
		}
		return place{pos: tok.Pos(), token: &tok}, nil
	}
	head, tail, two := strings.Cut(text, ".")
	seq := head
	if two {
		e, err := strconv.ParseUint(head, 10, 32)
		if err != nil {
			return place{}, bad
		}
		epoch, seq = segment.Epoch(e), tail
	}
	n, err := strconv.ParseUint(seq, 10, 64)
	if err != nil {
		return place{}, bad
	}
	return place{pos: segment.Pos{Epoch: epoch, Seq: segment.Seq(n)}}, nil
}

// positionIn reads a position of one of the epochs; a bare seq is the newest's.
func positionIn(tops []catalog.Topology, flag, text string) (place, error) {
	if len(tops) == 0 { // there is no row to be read either
		return position(flag, text, 0)
	}
	p, err := position(flag, text, newest(tops).Epoch)
	if err != nil || p.pos == (segment.Pos{}) {
		return p, err
	}
	if catalog.EpochIn(tops, p.pos.Epoch) != nil {
		return p, nil
	}
	return place{}, usage("%s %s: there is no epoch %d; see strandline topology show", flag, text, p.pos.Epoch)
}

// span reads --from and --to.
func span(tops []catalog.Topology, from, to string) (first, last place, err error) {
	if first, err = positionIn(tops, "--from", from); err != nil {
		return first, last, err
	}
	if last, err = positionIn(tops, "--to", to); err != nil {
		return first, last, err
	}
	return first, last, inOrder(first, last)
}

// inOrder refuses a --to below --from: nothing is there, however long one waits.
func inOrder(first, last place) error {
	if last.pos != (segment.Pos{}) && last.pos.Less(first.pos) {
		return usage("--to %s lies before --from %s: give the first position as --from, the last as --to", last.pos, first.pos)
	}
	return nil
}

// checkPlace refuses a token that the stream's history went on without.
func checkPlace(ctx context.Context, t *tier, stream string, p place) error {
	if p.token == nil {
		return nil
	}
	reader, err := coldload.New(t.catalog, t.reads, coldload.Config{})
	if err != nil {
		return err
	}
	return reader.Check(ctx, stream, *p.token)
}

// noSuchStream is what the catalog's "not found" means to whoever named a stream.
func noSuchStream(name string) error {
	return fmt.Errorf("%q: no such stream; rows just appended show once their segment is published, or at once with append --ack shared; see strandline streams", name)
}
