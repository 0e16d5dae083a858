package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/segment"
)

func (a *app) catCommand() *cobra.Command {
	var b backendFlags
	var from, to string
	var ndjson bool
	cmd := &cobra.Command{
		Use:   "cat STREAM",
		Short: "Read a stream from bucket and catalog, a payload a line",
		Long:  "Reads what is absorbed, straight from the bucket; no server is needed. --from and --to are inclusive: a seq, or EPOCH.SEQ.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			t, err := b.open(cmd.Context(), modeRead)
			if err != nil {
				return err
			}
			defer func() { err = closing(err, t) }()
			epoch, err := latestEpoch(cmd.Context(), t.catalog)
			if err != nil {
				return err
			}
			fromPos, err := position("--from", from, epoch)
			if err != nil {
				return err
			}
			toPos, err := position("--to", to, epoch)
			if err != nil {
				return err
			}
			return a.cat(cmd.Context(), t, args[0], fromPos, toPos, ndjson || a.json)
		},
	}
	b.register(cmd.Flags())
	cmd.Flags().StringVar(&from, "from", "", "first position")
	cmd.Flags().StringVar(&to, "to", "", "last position")
	cmd.Flags().BoolVar(&ndjson, "ndjson", false, "a JSON object a row: stream, epoch, seq, ts, txn, payload")
	return cmd
}

// cat copies rows out. What was read before an error is printed before the error.
func (a *app) cat(ctx context.Context, t *tier, stream string, from, to segment.Pos, ndjson bool) error {
	if err := segment.CheckStream(stream); err != nil && !strings.HasPrefix(stream, "~") {
		return err
	}
	reader, err := coldload.New(t.catalog, t.classes, coldload.Config{})
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(a.out, 256<<10)
	enc := json.NewEncoder(out)
	for row, err := range reader.Rows(ctx, stream, from, to) {
		if err != nil {
			return fmt.Errorf("cat %s: %w", stream, firstOf(err, out.Flush()))
		}
		if ndjson {
			err = enc.Encode(httpapi.LineOf(stream, &row))
		} else if _, err = out.Write(row.Payload); err == nil {
			err = out.WriteByte('\n')
		}
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return out.Flush()
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

// position reads SEQ or EPOCH.SEQ; empty is the zero position.
func position(flag, text string, epoch segment.Epoch) (segment.Pos, error) {
	if text == "" {
		return segment.Pos{}, nil
	}
	head, tail, two := strings.Cut(text, ".")
	seq := head
	if two {
		e, err := strconv.ParseUint(head, 10, 32)
		if err != nil {
			return segment.Pos{}, usage("%s %q: give SEQ or EPOCH.SEQ", flag, text)
		}
		epoch, seq = segment.Epoch(e), tail
	}
	n, err := strconv.ParseUint(seq, 10, 64)
	if err != nil {
		return segment.Pos{}, usage("%s %q: give SEQ or EPOCH.SEQ", flag, text)
	}
	return segment.Pos{Epoch: epoch, Seq: segment.Seq(n)}, nil
}

// latestEpoch is what a bare seq belongs to.
func latestEpoch(ctx context.Context, c catalog.Deployment) (segment.Epoch, error) {
	tops, err := c.Topologies(ctx)
	if err != nil {
		return 0, err
	}
	var latest segment.Epoch
	for _, t := range tops {
		latest = max(latest, t.Epoch)
	}
	return latest, nil
}
