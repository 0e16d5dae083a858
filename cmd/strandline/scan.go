package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/segment"
)

func (a *app) scanCommand() *cobra.Command {
	var b backendFlags
	r := readFlags{streams: true}
	var epoch uint32
	cmd := &cobra.Command{
		Use:   "scan SHARD",
		Short: "Read a shard in its order, all streams together",
		Long: "Reads what is absorbed, straight from the bucket; no server is needed. With --server it is asked instead, as cat does.\n" +
			"A line a row: the stream, a tab, the payload. --from and --to are inclusive: a seq, or a token as it was handed out. --from\n" +
			"with a token fails (exit 1) if the shard's history went on without it, and says from which seq on.\n" +
			"--since leaves out rows of an earlier time: a duration back from now or RFC 3339. All rows are read for it.\n" +
			"--follow goes on behind the last row until it is interrupted, or the epoch's chain is over.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			shard, err := parseShard(args[0])
			if err != nil {
				return err
			}
			if err := r.check(); err != nil {
				return err
			}
			chain := segment.Chain{Epoch: segment.Epoch(epoch), Shard: shard}
			if r.server != "" {
				return r.watched(cmd.Context(), a.readFrom(&r, func(c *client.Client, o client.ReadOptions) iter.Seq2[client.Row, error] {
					return c.ShardRows(cmd.Context(), chain, o)
				}))
			}
			t, err := a.openCold(cmd.Context(), &b)
			if err != nil {
				return err
			}
			defer func() { err = closing(err, t) }()
			return r.watched(cmd.Context(), a.scan(cmd.Context(), t, chain, &r))
		},
	}
	b.register(cmd.Flags())
	b.cache.register(cmd.Flags())
	r.register(cmd.Flags())
	cmd.Flags().Uint32Var(&epoch, "epoch", 0, "epoch of the shard (default: the newest)")
	return cmd
}

// within reads --from and --to as positions of one chain.
func within(chain segment.Chain, from, to string) (first, last place, err error) {
	if first, err = position("--from", from, chain.Epoch); err != nil {
		return first, last, err
	}
	if last, err = position("--to", to, chain.Epoch); err != nil {
		return first, last, err
	}
	for _, p := range []place{first, last} {
		if p.pos != (segment.Pos{}) && p.pos.Epoch != chain.Epoch {
			return first, last, usage("position %s is of another epoch than the shard's %d: give --epoch", p.pos, chain.Epoch)
		}
	}
	return first, last, inOrder(first, last)
}

func (a *app) scan(ctx context.Context, t *tier, chain segment.Chain, r *readFlags) error {
	tops, err := t.catalog.Topologies(ctx)
	if err != nil {
		return err
	}
	top, err := epochOf(tops, chain.Epoch)
	if err != nil {
		return err
	}
	if uint32(chain.Shard) >= top.Shards {
		return usage("shard %d: epoch %d has the shards 0 to %d", chain.Shard, top.Epoch, top.Shards-1)
	}
	chain.Epoch = top.Epoch
	first, last, err := within(chain, r.from, r.to)
	if err != nil {
		return err
	}
	if r.follow {
		return a.followCold(t, top, r, func(c *client.Client, o client.ReadOptions) iter.Seq2[client.Row, error] {
			return c.ShardRows(ctx, chain, o)
		})
	}
	reader, err := coldload.New(t.catalog, t.reads, coldload.Config{})
	if err != nil {
		return err
	}
	src := httpapi.ShardSource{Cold: reader, Catalog: t.catalog}
	return a.printShard(chain.Shard, r, coldload.Checked(src.Rows(ctx, chain, first.pos.Seq, last.pos.Seq), first.token, func(tok segment.Token) error {
		return reader.CheckShard(ctx, chain.Shard, tok)
	}))
}

// printShard prints the rows of a shard, as printRows does.
func (a *app) printShard(shard segment.Shard, r *readFlags, rows iter.Seq2[coldload.ShardRow, error]) error {
	out := newRowPrinter(a, r.ndjson || a.json)
	for row, err := range rows {
		if err != nil {
			return fmt.Errorf("scan shard %d: %w", shard, firstOf(err, out.flush()))
		}
		if row.Time < r.least() {
			continue
		}
		if err := out.row(row.Stream, &coldload.Row{Epoch: row.Epoch, Row: row.Row}); err != nil {
			return err
		}
	}
	return out.flush()
}
