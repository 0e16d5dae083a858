package main

import (
	"bufio"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/segment"
)

func (a *app) scanCommand() *cobra.Command {
	var b backendFlags
	var from, to string
	var epoch uint32
	var ndjson bool
	cmd := &cobra.Command{
		Use:   "scan SHARD",
		Short: "Read a shard in its order, all streams together, from bucket and catalog",
		Long: "Reads what is absorbed, straight from the bucket; no server is needed. A line a row: the stream, a tab, the payload.\n" +
			"--from and --to are inclusive: a seq, or a token as it was handed out. --from with a token fails (exit 1) if the shard's\n" +
			"history went on without it, and says from which seq on.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			shard, err := parseShard(args[0])
			if err != nil {
				return err
			}
			t, err := a.openCold(cmd.Context(), &b)
			if err != nil {
				return err
			}
			defer func() { err = closing(err, t) }()
			tops, err := t.catalog.Topologies(cmd.Context())
			if err != nil {
				return err
			}
			top, err := epochOf(tops, segment.Epoch(epoch))
			if err != nil {
				return err
			}
			if uint32(shard) >= top.Shards {
				return usage("shard %d: epoch %d has the shards 0 to %d", shard, top.Epoch, top.Shards-1)
			}
			chain := segment.Chain{Epoch: top.Epoch, Shard: shard}
			first, last, err := within(chain, from, to)
			if err != nil {
				return err
			}
			return a.scan(cmd, t, chain, first, last, ndjson || a.json)
		},
	}
	b.register(cmd.Flags())
	b.cache.register(cmd.Flags())
	cmd.Flags().StringVar(&from, "from", "", "first position")
	cmd.Flags().StringVar(&to, "to", "", "last position")
	cmd.Flags().Uint32Var(&epoch, "epoch", 0, "epoch of the shard (default: the newest)")
	cmd.Flags().BoolVar(&ndjson, "ndjson", false, "a JSON object a row: stream, epoch, seq, ts, txn, payload")
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

func (a *app) scan(cmd *cobra.Command, t *tier, chain segment.Chain, first, last place, ndjson bool) error {
	reader, err := coldload.New(t.catalog, t.reads, coldload.Config{})
	if err != nil {
		return err
	}
	src := httpapi.ShardSource{Cold: reader, Catalog: t.catalog}
	rows := coldload.Checked(src.Rows(cmd.Context(), chain, first.pos.Seq, last.pos.Seq), first.token, func(tok segment.Token) error {
		return reader.CheckShard(cmd.Context(), chain.Shard, tok)
	})
	out := newRowPrinter(a, ndjson)
	for row, err := range rows {
		if err != nil {
			return fmt.Errorf("scan shard %d: %w", chain.Shard, firstOf(err, out.flush()))
		}
		if err := out.line(httpapi.LineOf(row.Stream, &coldload.Row{Epoch: row.Epoch, Row: row.Row})); err != nil {
			return err
		}
	}
	return out.flush()
}

// rowPrinter prints rows of many streams: for people a line of token (if there is one),
// stream and payload; for machines a JSON object each.
type rowPrinter struct {
	out *bufio.Writer
	enc *json.Encoder // nil: for people
}

func newRowPrinter(a *app, ndjson bool) *rowPrinter {
	p := &rowPrinter{out: bufio.NewWriterSize(a.out, 256<<10)}
	if ndjson {
		p.enc = json.NewEncoder(p.out)
	}
	return p
}

func (p *rowPrinter) line(l httpapi.Line) error {
	if p.enc != nil {
		return p.enc.Encode(l)
	}
	payload := l.Base64
	if l.Payload != nil {
		payload = []byte(*l.Payload)
	}
	if l.Token != "" {
		_, _ = p.out.WriteString(l.Token + "\t") // a bufio.Writer keeps its first error for the last write
	}
	_, _ = p.out.WriteString(l.Stream + "\t") // likewise
	_, _ = p.out.Write(payload)               // likewise
	return p.out.WriteByte('\n')
}

func (p *rowPrinter) flush() error {
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
