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
		Long: "Reads what is absorbed, straight from the bucket; no server is needed. --from and --to are inclusive: a seq, EPOCH.SEQ, or a\n" +
			"token like e1.t3.4711 as append prints it. --from with a token fails (exit 1) if the history went on without it.",
		Args: cobra.ExactArgs(1),
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
func (a *app) cat(ctx context.Context, t *tier, stream string, from, to place, ndjson bool) error {
	if err := segment.CheckStream(stream); err != nil && !strings.HasPrefix(stream, "~") {
		return err
	}
	reader, err := coldload.New(t.catalog, t.classes, coldload.Config{})
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(a.out, 256<<10)
	enc := json.NewEncoder(out)
	rows := coldload.Checked(reader.Rows(ctx, stream, from.pos, to.pos), from.token, func(tok segment.Token) error {
		return reader.Check(ctx, stream, tok)
	})
	for row, err := range rows {
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

// checkPlace refuses a token that the stream's history went on without.
func checkPlace(ctx context.Context, t *tier, stream string, p place) error {
	if p.token == nil {
		return nil
	}
	reader, err := coldload.New(t.catalog, t.classes, coldload.Config{})
	if err != nil {
		return err
	}
	return reader.Check(ctx, stream, *p.token)
}

// latestEpoch is what a bare seq belongs to.
func latestEpoch(ctx context.Context, c catalog.Deployment) (segment.Epoch, error) {
	tops, err := c.Topologies(ctx)
	if err != nil {
		return 0, err
	}
	if len(tops) == 0 {
		return 0, nil
	}
	return newest(tops).Epoch, nil
}
