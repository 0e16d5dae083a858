package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/segment"
)

func (a *app) consumersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "consumers",
		Short: "Durable consumers of a shard: list, create, pull, acknowledge, remove",
		Long: "A durable consumer reads a shard in order at its own pace. Its cursor is what it acknowledged last, survives restarts and\n" +
			"takeovers, and holds back what retention gives up. pull shows the rows after the cursor and moves nothing; ack moves it.\n" +
			"All of it is the owner's to answer: its address comes from the catalog, or give --server; another process that is asked\n" +
			"leads to the owner. Exit 5: nobody serves the shard now.\n\n" +
			"After topology set --shards the chains of the old epoch are closed: pull and ack what is left there with --epoch, then go\n" +
			"on with a consumer on the new shards.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.consumersLs(), a.consumersCreate(), a.consumersAck(), a.consumersRm(), a.consumersPull())
	return cmd
}

// parseShard reads SHARD.
func parseShard(text string) (segment.Shard, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, usage("shard %q: give its number, from 0", text)
	}
	return segment.Shard(n), nil
}

// parseConsumer reads SHARD NAME.
func parseConsumer(args []string) (segment.Shard, error) {
	shard, err := parseShard(args[0])
	if err != nil {
		return 0, err
	}
	return shard, segment.CheckConsumer(args[1])
}

// consumerCommand is a command on one consumer that answers with it.
func (a *app) consumerCommand(cmd *cobra.Command, s *shardFlags, call consumerCall, done func(client.MadeConsumer) string) *cobra.Command {
	s.register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		shard, err := parseConsumer(args)
		if err != nil {
			return err
		}
		return a.withOwner(cmd, s, shard, func(ctx context.Context, c *client.Client) error {
			got, err := call(ctx, c, s.chain(shard), args)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(got)
			}
			_, err = fmt.Fprintf(a.out, "consumer %s of shard %d: %s, cursor %d, %s behind\n", got.Name, shard, done(got), got.Cursor, countOf(got.Lag, "row"))
			return err
		})
	}
	return cmd
}

// consumerCall asks for one; args are SHARD NAME and what else there is.
type consumerCall func(ctx context.Context, c *client.Client, chain segment.Chain, args []string) (client.MadeConsumer, error)

func (a *app) consumersLs() *cobra.Command {
	var s shardFlags
	cmd := &cobra.Command{
		Use: "ls SHARD", Short: "List a shard's consumers with their cursors", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			shard, err := parseShard(args[0])
			if err != nil {
				return err
			}
			return a.withOwner(cmd, &s, shard, func(ctx context.Context, c *client.Client) error {
				list, err := c.Consumers(ctx, s.chain(shard))
				if err != nil {
					return err
				}
				return a.printConsumers(list)
			})
		},
	}
	s.register(cmd.Flags())
	return cmd
}

func (a *app) printConsumers(list []client.Consumer) error {
	if a.json {
		return a.printJSON(list)
	}
	rows := [][]string{{"SHARD", "CONSUMER", "CURSOR", "ROWS BEHIND"}}
	for _, c := range list {
		rows = append(rows, []string{num(c.Shard), c.Name, num(c.Cursor), countText(int64(c.Lag))})
	}
	return table(a.out, rows)
}

func (a *app) consumersCreate() *cobra.Command {
	var s shardFlags
	var after string
	cmd := a.consumerCommand(&cobra.Command{
		Use: "create SHARD NAME", Short: "Create a consumer, or show the one that stands",
		Long: "It begins at the oldest row that the shard has not given up, or behind --after, which is clamped to the shard's last row\n" +
			"(and said, with --json as \"clamped\"). (pull creates one, too.)",
		Args: cobra.ExactArgs(2),
	}, &s, func(ctx context.Context, c *client.Client, chain segment.Chain, args []string) (client.MadeConsumer, error) {
		return c.CreateConsumer(ctx, chain, args[1], after)
	}, func(c client.MadeConsumer) string { return standing(c, after) })
	cmd.Flags().StringVar(&after, "after", "", "begin behind this seq or token (default: at the oldest row)")
	return cmd
}

// standing says why a consumer stands where it does.
func standing(c client.MadeConsumer, after string) string {
	switch {
	case c.Stood && after != "":
		return fmt.Sprintf("stood before, and stays where it was (--after %s is for new ones; ack moves it)", after)
	case c.Stood:
		return "stood before"
	case !c.Clamped:
		return "created"
	}
	// The writer read it as a position already.
	if p, err := position("--after", after, 0); err == nil && p.pos.Seq < c.Cursor {
		return fmt.Sprintf("created, clamped to the first row that stands (those behind --after %s were given up)", after)
	}
	return fmt.Sprintf("created, clamped to the shard's last row (--after %s is beyond it)", after)
}

func (a *app) consumersAck() *cobra.Command {
	var s shardFlags
	cmd := a.consumerCommand(&cobra.Command{
		Use: "ack SHARD NAME POS", Short: "Acknowledge the rows up to a position: a seq, or a token as pull prints it",
		Long: "The cursor never goes back: a lower position changes nothing. A token also proves that the shard's history did not go on\n" +
			"without the row (then: exit 1, with the seq to read again from).",
		Args: cobra.ExactArgs(3),
	}, &s, func(ctx context.Context, c *client.Client, chain segment.Chain, args []string) (client.MadeConsumer, error) {
		got, err := c.Ack(ctx, chain, args[1], args[2])
		return client.MadeConsumer{Consumer: got}, err
	}, func(client.MadeConsumer) string { return "acknowledged" })
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkAck(args[2]); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}

// checkAck refuses what is neither a seq nor a token before anybody is asked.
func checkAck(text string) error {
	if strings.HasPrefix(text, "e") {
		if _, err := segment.ParseToken(text); err != nil {
			return usage("%w", err)
		}
		return nil
	}
	if _, err := strconv.ParseUint(text, 10, 64); err != nil {
		return usage("position %q: give a seq, or a token like e1.t3.4711", text)
	}
	return nil
}

func (a *app) consumersRm() *cobra.Command {
	var s shardFlags
	cmd := &cobra.Command{
		Use: "rm SHARD NAME", Short: "Remove a consumer and forget its cursor",
		Long: "What only it held back may be given up by the next run of retention.", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			shard, err := parseConsumer(args)
			if err != nil {
				return err
			}
			return a.withOwner(cmd, &s, shard, func(ctx context.Context, c *client.Client) error {
				if err := c.RemoveConsumer(ctx, s.chain(shard), args[1]); err != nil {
					return err
				}
				if a.json {
					return a.printJSON(map[string]any{"shard": shard, "name": args[1], "status": "removed"})
				}
				_, err := fmt.Fprintf(a.out, "consumer %s of shard %d: removed\n", args[1], shard)
				return err
			})
		},
	}
	s.register(cmd.Flags())
	return cmd
}

func (a *app) consumersPull() *cobra.Command {
	var s shardFlags
	var limit int
	cmd := &cobra.Command{
		Use: "pull SHARD NAME", Short: "Show the rows after a consumer's cursor: token, stream and payload",
		Long: "The cursor stays where it is until ack. A consumer that does not stand is created. With --json a JSON object a row.",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			shard, err := parseConsumer(args)
			if err != nil {
				return err
			}
			if limit < 1 || limit > httpapi.MaxPull {
				return usage("--limit %d: give 1 to %d", limit, httpapi.MaxPull)
			}
			s.look = func(ctx context.Context, t *tier) error {
				return a.noteUnread(ctx, t, segment.Epoch(s.epoch), shard, args[1])
			}
			return a.withOwner(cmd, &s, shard, func(ctx context.Context, c *client.Client) error {
				out := newRowPrinter(a, a.json)
				for row, err := range c.Pull(ctx, s.chain(shard), args[1], limit) {
					if err != nil {
						_ = out.flush() // the error says more
						return err
					}
					token := ""
					if row.Term != 0 {
						token = row.Position()
					}
					if err := out.withToken(token, row.Stream, &coldload.Row{Epoch: row.Epoch, Row: row.Row}); err != nil {
						return err
					}
				}
				return out.flush()
			})
		},
	}
	s.register(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", 1000, fmt.Sprintf("rows, at most %d", httpapi.MaxPull))
	return cmd
}
