package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/segment"
)

func (a *app) explainCommand() *cobra.Command {
	var b backendFlags
	var read bool
	cmd := &cobra.Command{
		Use:   "explain KEY | STREAM POS",
		Short: "Why an object stands or is dead; where a row lives, and every step of its way",
		Long: "KEY is any key of the bucket: what it is, who names it, what waits for it, and what happens next, when at the earliest.\n" +
			"POS is first, last (or tip), a seq, EPOCH.SEQ, or a token like e1.t3.4711: which object serves the row, and how it came there,\n" +
			"or who gave it up. Nothing is changed. Exit 3 if rows are missing or damaged, 1 if there is nothing to explain.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			t, err := b.open(cmd.Context(), modeRead)
			if err != nil {
				return err
			}
			defer func() { err = closing(err, t) }()
			e, err := explain(cmd.Context(), t, args, read)
			if err != nil {
				return err
			}
			if err := a.printText(e); err != nil {
				return err
			}
			if e.Situation.Bad() {
				return &exitError{code: exitDamage}
			}
			return nil
		},
	}
	b.register(cmd.Flags())
	cmd.Flags().BoolVar(&read, "read", false, "of a row: read its chunk, decode it, and find the row in it")
	return cmd
}

// explain answers KEY, or STREAM and POS.
func explain(ctx context.Context, t *tier, args []string, read bool) (*check.Explanation, error) {
	x := &check.Explainer{Catalog: t.catalog, Classes: t.classes}
	if len(args) == 1 {
		return explainKey(ctx, x, args[0])
	}
	q := check.RowQuestion{Stream: args[0], Read: read}
	switch args[1] {
	case "first":
		q.Word = check.FirstRow
	case "last", "tip":
		q.Word = check.LastRow
	default:
		tops, err := t.catalog.Topologies(ctx)
		if err != nil {
			return nil, err
		}
		at, err := positionIn(tops, "POS", args[1])
		if err != nil {
			return nil, err
		}
		if at.pos.Seq == 0 {
			return nil, usage("POS %q: seqs begin at 1; give first for the first live row", args[1])
		}
		q.Pos, q.Token = at.pos, at.token
	}
	return x.Row(ctx, q)
}

// explainKey knows that people give a stream where a key is asked for.
func explainKey(ctx context.Context, x *check.Explainer, key string) (*check.Explanation, error) {
	e, err := x.Key(ctx, key)
	if !errors.Is(err, check.ErrNothing) || isKey(key) {
		return e, err
	}
	if _, serr := x.Catalog.Stream(ctx, key); serr == nil {
		return nil, usage("%q is a stream: give a position, too, as in strandline explain %s last", key, key)
	}
	return nil, err
}

func isKey(s string) bool {
	_, err := segment.ParseKey(s)
	return err == nil
}

// answer is explain over HTTP.
func (t *tier) answer(ctx context.Context, q httpapi.Question) (any, error) {
	args := []string{q.Key}
	if q.Stream != "" {
		args = []string{q.Stream, q.Pos}
	}
	e, err := explain(ctx, t, args, q.Read)
	var wrong *exitError
	if errors.As(err, &wrong) && wrong.code == exitUsage {
		err = httpapi.Refused(err)
	}
	if err != nil {
		return nil, err // not a typed nil
	}
	return e, nil
}
