package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// appendFlags are the flags of append.
type appendFlags struct {
	clientFlags

	keyField, ack string
	producer      localtier.Producer
	once          bool // the input is one append, under producer's number
}

func (a *app) appendCommand() *cobra.Command {
	var o appendFlags
	cmd := &cobra.Command{
		Use:   "append [STREAM]",
		Short: "Append standard input, a row a line, and print the seqs it got",
		Long: "Rows are acknowledged when they are durable (--ack local: on the writer's disk; shared: in the bucket too). Any writer will do\n" +
			"as --server: it says who owns the stream. Rows go in batches of at most 1 MiB, each under a number of its own, so that one whose\n" +
			"answer was lost is sent again without coming in twice. Ctrl-C waits a moment for the batches under way, and what is acknowledged\n" +
			"is printed in any case.\n" +
			"With --key-field each line is a JSON object and goes to the stream named by that field, the whole line as payload.\n" +
			"With --producer the input is one append under the producer's own number: if the command dies, say the same again, and\n" +
			"it is answered with what the first attempt got. The next append to the same shard takes the next number: with a producer\n" +
			"name of its own for each stream that is one more each time. A new epoch (topology set --shards) knows no numbers yet: what\n" +
			"is said again across its beginning may be there twice; look with cat first.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (o.keyField != "") {
				return usage("give either STREAM or --key-field; usage: %s", cmd.UseLine())
			}
			o.once = cmd.Flags().Changed("producer") || cmd.Flags().Changed("sequence")
			if err := checkProducer(cmd, o.producer, o.keyField); o.once && err != nil {
				return err
			}
			return a.append(cmd.Context(), &o, args)
		},
	}
	f := cmd.Flags()
	o.register(f, "http://127.0.0.1:8420", "URL of a writer; several with commas between")
	f.StringVar(&o.keyField, "key-field", "", "route NDJSON by this field")
	f.StringVar(&o.ack, "ack", "", "local or shared (default: the writer's)")
	f.StringVar(&o.producer.ID, "producer", "", "name of an idempotent producer; with --sequence")
	f.Uint64Var(&o.producer.Sequence, "sequence", 0, "the producer's own number of this append, one more each time in a shard; with --producer")
	return cmd
}

func checkProducer(cmd *cobra.Command, p localtier.Producer, keyField string) error {
	switch {
	case !cmd.Flags().Changed("producer") || !cmd.Flags().Changed("sequence"):
		return usage("--producer and --sequence come together")
	case keyField != "":
		return usage("--producer numbers one append to one stream: give STREAM, not --key-field")
	}
	if err := segment.CheckProducer(p.ID); err != nil {
		return usage("--producer: %w", err)
	}
	return nil
}

func (a *app) append(ctx context.Context, o *appendFlags, args []string) error {
	ack := client.Ack(o.ack)
	if ack != client.AckDefault && ack != client.AckLocal && ack != client.AckShared {
		return usage("--ack %q: give local or shared", o.ack)
	}
	c, err := a.newClient(o.server, &o.caller)
	if err != nil {
		return err
	}
	ap := &appender{client: c, results: map[string]*appended{}, ack: ack}
	ap.route = func([]byte) (string, error) { return args[0], nil }
	if o.keyField != "" {
		ap.route = func(line []byte) (string, error) { return fieldOf(line, o.keyField) }
	} else if err := segment.CheckStream(args[0]); err != nil {
		return err
	}
	if o.once {
		ap.producer = o.producer
	}
	// Rows of many streams wait for the bucket once, at the end, not each for a slot of its own.
	shared := o.keyField != "" && ack == client.AckShared
	if shared {
		ap.ack = client.AckLocal
	}
	err = ap.run(ctx, a)
	if err == nil && shared {
		if err = c.Flush(ctx); err != nil {
			err = fmt.Errorf("the rows are on the writers' disks, not known to be in the bucket: %w", err)
		}
	}
	if err != nil && len(ap.results) == 0 && ctx.Err() == nil {
		return asked(err)
	}
	// What was acknowledged is said even if a later batch was not.
	said := a.printAppended(ap, o.keyField != "")
	if err != nil {
		err = fmt.Errorf("%w; acknowledged before it: %s", asked(err), countOf(ap.rows(), "row"))
	}
	return firstOf(err, said)
}

// fieldOf is the stream a line names: a string, or a number as it is written.
func fieldOf(line []byte, field string) (string, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(line, &object); err != nil {
		return "", fmt.Errorf("not a JSON object: %w", err)
	}
	raw, ok := object[field]
	if !ok {
		return "", fmt.Errorf("no field %q", field)
	}
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return name, segment.CheckStream(name)
	}
	var number json.Number
	if err := json.Unmarshal(raw, &number); err != nil {
		return "", fmt.Errorf("field %q is neither a string nor a number", field)
	}
	return number.String(), segment.CheckStream(number.String())
}

// appended is what a stream's rows got.
type appended struct {
	Stream string        `json:"stream"`
	Epoch  segment.Epoch `json:"epoch"`
	Shard  segment.Shard `json:"shard"`
	Term   segment.Term  `json:"term"`
	First  segment.Seq   `json:"first"`
	Last   segment.Seq   `json:"last"`
	Rows   int64         `json:"rows"`
	// The positions with the term whose history they belong to: cat --from takes one.
	FirstToken string `json:"first_token,omitempty"`
	LastToken  string `json:"last_token,omitempty"`
}

func (a *app) printAppended(ap *appender, many bool) error {
	all := ap.sorted()
	rows := ap.rows()
	if many {
		if a.json {
			return a.printJSON(map[string]any{"rows": rows, "streams": all})
		}
		_, err := fmt.Fprintf(a.out, "%s into %s\n", countOf(rows, "row"), countOf(len(all), "stream"))
		return err
	}
	if len(all) == 0 {
		all = append(all, appended{})
	}
	if a.json {
		return a.printJSON(all[0])
	}
	if rows == 0 {
		_, err := fmt.Fprintln(a.out, "no rows")
		return err
	}
	_, err := fmt.Fprintf(a.out, "%s: %s, seq %d to %d; the last one is %s\n", all[0].Stream, countOf(rows, "row"), all[0].First, all[0].Last, all[0].LastToken)
	return err
}

// tooMuch refuses an input that is to be one append.
func tooMuch(n int) error {
	return fmt.Errorf("line %d: more than the %d bytes of one append, which an idempotent producer's has to be: split the input", n, httpapi.MaxBodyBytes)
}
