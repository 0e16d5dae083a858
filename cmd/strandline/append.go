package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// Batches of the client: large enough that the fsync and the request are shared
// by many rows, small enough that a retry is cheap.
const (
	batchBytes   = 1 << 20
	readAhead    = 1 << 20
	postsAtOnce  = 8
	maxLineBytes = segment.MaxFrameBytes
)

func (a *app) appendCommand() *cobra.Command {
	var server, keyField, ack string
	var producer localtier.Producer
	cmd := &cobra.Command{
		Use:   "append [STREAM]",
		Short: "Append standard input, a row a line, and print the seqs it got",
		Long: "Rows are acknowledged when they are durable (--ack local: on the writer's disk; shared: in the bucket too).\n" +
			"With --key-field each line is a JSON object and goes to the stream named by that field, the whole line as payload.\n" +
			"With --producer the input is one append under the producer's own number: if the answer is lost, say the same again, and\n" +
			"it is answered with what the first attempt got. The next append to the same shard takes the next number: with a producer\n" +
			"name of its own for each stream that is one more each time. A new epoch (topology set --shards) knows no numbers yet: what\n" +
			"is said again across its beginning may be there twice; look with cat first.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (keyField != "") {
				return usage("give either STREAM or --key-field; usage: %s", cmd.UseLine())
			}
			once := cmd.Flags().Changed("producer") || cmd.Flags().Changed("sequence")
			if err := checkProducer(cmd, producer, keyField); once && err != nil {
				return err
			}
			// Rows of many streams wait for the bucket once, at the end, not each for a
			// slot of its own.
			shared := keyField != "" && ack == "shared"
			if shared {
				ack = "local"
			}
			c, err := newClient(server, ack, a.err)
			if err != nil {
				return err
			}
			route := func([]byte) (string, error) { return args[0], nil }
			if keyField != "" {
				route = func(line []byte) (string, error) { return fieldOf(line, keyField) }
			} else if err := segment.CheckStream(args[0]); err != nil {
				return err
			}
			ap := &appender{client: c, route: route, results: map[string]*appended{}, producer: producer}
			err = ap.run(cmd.Context(), a)
			if err == nil && shared {
				if err = c.flush(cmd.Context()); err != nil {
					return fmt.Errorf("the rows are on the writer's disk, not known to be in the bucket: %w", err)
				}
			}
			if err != nil && len(ap.results) == 0 {
				return err
			}
			return firstOf(err, a.printAppended(ap, keyField != "")) // what was acknowledged is said even if a later batch was not
		},
	}
	f := cmd.Flags()
	f.StringVar(&server, "server", "http://127.0.0.1:8420", "URL of the writer")
	f.StringVar(&keyField, "key-field", "", "route NDJSON by this field")
	f.StringVar(&ack, "ack", "", "local or shared (default: the writer's)")
	f.StringVar(&producer.ID, "producer", "", "name of an idempotent producer; with --sequence")
	f.Uint64Var(&producer.Sequence, "sequence", 0, "the producer's own number of this append, one more each time in a shard; with --producer")
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

// appender reads lines and posts them in batches, in order within each stream.
type appender struct {
	client  *client
	route   func(line []byte) (string, error)
	results map[string]*appended
	pending map[string]*bytes.Buffer
	bytes   int

	// producer of an input that is one append; zero: none.
	producer localtier.Producer
}

func (ap *appender) run(ctx context.Context, a *app) error {
	in := bufio.NewReaderSize(a.in, readAhead)
	bar := a.progress(-1, "appending")
	defer func() { _ = bar.Finish() }() // a bar that cannot be drawn is no reason to fail
	ap.pending = map[string]*bytes.Buffer{}
	for n := 1; ; n++ {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return ap.post(ctx)
		}
		if err == nil {
			err = ap.add(line)
		}
		if err != nil {
			if ap.producer.ID != "" {
				return fmt.Errorf("line %d: %w", n, err)
			}
			// The lines before it are whole rows: they are not lost for this one.
			return errors.Join(fmt.Errorf("line %d: %w", n, err), ap.post(ctx))
		}
		_ = bar.Add(len(line)) // likewise
		if ap.producer.ID != "" {
			// One append, or a retry could not be told from it: the server says if it is too much.
			if ap.bytes > httpapi.MaxBodyBytes {
				return fmt.Errorf("line %d: more than the %d bytes of one append, which an idempotent producer's has to be: split the input", n, httpapi.MaxBodyBytes)
			}
			continue
		}
		if ap.bytes >= batchBytes || in.Buffered() == 0 {
			if err := ap.post(ctx); err != nil {
				return err
			}
		}
	}
}

// readLine returns one line without its end; the last may lack it.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLineBytes {
			return nil, fmt.Errorf("longer than %d bytes, which no row can be: split it", maxLineBytes)
		}
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		default:
			return nil, err
		}
	}
}

func (ap *appender) add(line []byte) error {
	stream, err := ap.route(line)
	if err != nil {
		return err
	}
	buf := ap.pending[stream]
	if buf == nil {
		buf = &bytes.Buffer{}
		ap.pending[stream] = buf
	}
	buf.Write(line)
	buf.WriteByte('\n')
	ap.bytes += len(line) + 1
	return nil
}

// post sends one batch a stream, several streams at once.
func (ap *appender) post(ctx context.Context) error {
	type sent struct {
		stream string
		res    httpapi.Appended
		err    error
	}
	out := make(chan sent, len(ap.pending))
	var g errgroup.Group
	g.SetLimit(postsAtOnce)
	for stream, buf := range ap.pending {
		g.Go(func() error {
			res, err := ap.client.append(ctx, batch{stream: stream, rows: buf.Bytes(), producer: ap.producer})
			out <- sent{stream, res, err}
			return nil
		})
	}
	_ = g.Wait() // results carry the errors
	close(out)
	ap.pending, ap.bytes = map[string]*bytes.Buffer{}, 0
	var errs []error
	for s := range out {
		if s.err != nil {
			errs = append(errs, fmt.Errorf("append to %q: %w", s.stream, s.err))
			continue
		}
		ap.record(s.stream, s.res)
	}
	return errors.Join(errs...)
}

func (ap *appender) record(stream string, res httpapi.Appended) {
	r := ap.results[stream]
	if r == nil {
		r = &appended{Stream: stream, Epoch: res.Epoch, Shard: res.Shard, Term: res.Term, First: res.First, FirstToken: res.FirstToken}
		ap.results[stream] = r
	}
	r.Term, r.Last, r.LastToken = res.Term, res.Last, res.LastToken
	r.Rows += int64(res.Rows)
}

func (a *app) printAppended(ap *appender, many bool) error {
	all := make([]appended, 0, len(ap.results))
	var rows int64
	for _, r := range ap.results {
		all = append(all, *r)
		rows += r.Rows
	}
	slices.SortFunc(all, func(x, y appended) int { return bytes.Compare([]byte(x.Stream), []byte(y.Stream)) })
	if many {
		if a.json {
			return a.printJSON(map[string]any{"rows": rows, "streams": all})
		}
		_, err := fmt.Fprintf(a.out, "%s rows into %s streams\n", countText(rows), countText(int64(len(all))))
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
	_, err := fmt.Fprintf(a.out, "%s: %s rows, seq %d to %d; the last one is %s\n", all[0].Stream, countText(rows), all[0].First, all[0].Last, all[0].LastToken)
	return err
}
