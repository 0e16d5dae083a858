package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/segment"
)

func (a *app) consumersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "consumers",
		Short: "Durable consumers of a shard: list, create, pull, acknowledge, remove",
		Long: "A durable consumer reads a shard in order at its own pace. Its cursor is what it acknowledged last, survives restarts and\n" +
			"takeovers, and holds back what retention gives up. pull shows the rows after the cursor and moves nothing; ack moves it.\n" +
			"All of it is the owner's to answer: its address comes from the catalog, or give --server. Exit 6: asked at another\n" +
			"process; the message names the owner.\n\n" +
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

func consumerPath(shard segment.Shard, name string) string {
	return fmt.Sprintf("/v1/shards/%d/consumers/%s", shard, escapeSegment(name))
}

func (s *shardFlags) query() url.Values {
	q := url.Values{}
	if s.epoch != 0 {
		q.Set("epoch", strconv.FormatUint(uint64(s.epoch), 10))
	}
	return q
}

// consumerCommand is a command on one consumer that answers with it.
func (a *app) consumerCommand(cmd *cobra.Command, s *shardFlags, make func(shard segment.Shard, args []string) (request, error), done func(httpapi.MadeConsumer) string) *cobra.Command {
	s.register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		shard, err := parseConsumer(args)
		if err != nil {
			return err
		}
		r, err := make(shard, args)
		if err != nil {
			return err
		}
		return a.withOwner(cmd, s, shard, func(ctx context.Context, c *client) error {
			got := httpapi.MadeConsumer{ConsumerOut: httpapi.ConsumerOut{Shard: shard, Name: args[1]}}
			if err := c.call(ctx, r, &got); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(got)
			}
			_, err := fmt.Fprintf(a.out, "consumer %s of shard %d: %s, cursor %d, %s rows behind\n", got.Name, shard, done(got), got.Cursor, countText(int64(got.Lag)))
			return err
		})
	}
	return cmd
}

func (a *app) consumersLs() *cobra.Command {
	var s shardFlags
	cmd := &cobra.Command{
		Use: "ls SHARD", Short: "List a shard's consumers with their cursors", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			shard, err := parseShard(args[0])
			if err != nil {
				return err
			}
			return a.withOwner(cmd, &s, shard, func(ctx context.Context, c *client) error {
				list := []httpapi.ConsumerOut{}
				r := request{method: http.MethodGet, path: fmt.Sprintf("/v1/shards/%d/consumers", shard), query: s.query()}
				if err := c.call(ctx, r, &list); err != nil {
					return err
				}
				return a.printConsumers(list)
			})
		},
	}
	s.register(cmd.Flags())
	return cmd
}

func (a *app) printConsumers(list []httpapi.ConsumerOut) error {
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
	}, &s, func(shard segment.Shard, args []string) (request, error) {
		q := s.query()
		if after != "" {
			q.Set("after", after)
		}
		return request{method: http.MethodPut, path: consumerPath(shard, args[1]), query: q}, nil
	}, func(c httpapi.MadeConsumer) string { return standing(c, after) })
	cmd.Flags().StringVar(&after, "after", "", "begin behind this seq or token (default: at the oldest row)")
	return cmd
}

// standing says why a consumer stands where it does.
func standing(c httpapi.MadeConsumer, after string) string {
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
	return a.consumerCommand(&cobra.Command{
		Use: "ack SHARD NAME POS", Short: "Acknowledge the rows up to a position: a seq, or a token as pull prints it",
		Long: "The cursor never goes back: a lower position changes nothing. A token also proves that the shard's history did not go on\n" +
			"without the row (then: exit 1, with the seq to read again from).",
		Args: cobra.ExactArgs(3),
	}, &s, func(shard segment.Shard, args []string) (request, error) {
		body := map[string]any{}
		if strings.HasPrefix(args[2], "e") {
			tok, err := segment.ParseToken(args[2])
			if err != nil {
				return request{}, usage("%w", err)
			}
			body["token"] = tok.String()
		} else {
			seq, err := strconv.ParseUint(args[2], 10, 64)
			if err != nil {
				return request{}, usage("position %q: give a seq, or a token like e1.t3.4711", args[2])
			}
			body["seq"] = seq
		}
		b, err := json.Marshal(body)
		return request{method: http.MethodPost, path: consumerPath(shard, args[1]) + "/ack", query: s.query(), body: string(b)}, err
	}, func(httpapi.MadeConsumer) string { return "acknowledged" })
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
			return a.withOwner(cmd, &s, shard, func(ctx context.Context, c *client) error {
				if err := c.call(ctx, request{method: http.MethodDelete, path: consumerPath(shard, args[1]), query: s.query()}, nil); err != nil {
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
			q := s.query()
			q.Set("limit", strconv.Itoa(limit))
			s.look = func(ctx context.Context, t *tier) error {
				return a.noteUnread(ctx, t, segment.Epoch(s.epoch), shard, args[1])
			}
			return a.withOwner(cmd, &s, shard, func(ctx context.Context, c *client) error {
				resp, err := c.open(ctx, request{method: http.MethodPost, path: consumerPath(shard, args[1]) + "/pull", query: q})
				if err != nil {
					return err
				}
				defer func() { _ = resp.Body.Close() }() // read to its end, or given up
				return a.copyLines(resp.Body)
			})
		},
	}
	s.register(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", 1000, fmt.Sprintf("rows, at most %d", httpapi.MaxPull))
	return cmd
}

// copyLines prints the rows of an NDJSON body. A line that is an error ends it.
func (a *app) copyLines(body io.Reader) error {
	out := newRowPrinter(a, a.json)
	d := json.NewDecoder(body)
	for {
		var line struct {
			httpapi.Line
			Error json.RawMessage `json:"error"`
		}
		err := d.Decode(&line)
		switch {
		case errors.Is(err, io.EOF):
			return out.flush()
		case err != nil:
			return firstOf(&exitError{code: exitUnavailable, err: fmt.Errorf("the answer was cut: %w", err)}, out.flush())
		case line.Error != nil:
			_ = out.flush() // the error says more
			return problemError(http.StatusOK, line.Error)
		}
		if err := out.line(line.Line); err != nil {
			return err
		}
	}
}
