package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/spf13/pflag"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/segment"
)

// readFlags are those of cat and scan.
type readFlags struct {
	clientFlags

	from, to, sinceText string
	ndjson              bool
	follow, owner       bool

	since   time.Time // by sinceText; zero: all
	streams bool      // the rows are of many streams, and say of which
}

func (r *readFlags) register(f *pflag.FlagSet) {
	r.clientFlags.register(f, "", "ask this writer or reader, by its URL, not the bucket; several with commas between")
	f.StringVar(&r.from, "from", "", "first position")
	f.StringVar(&r.to, "to", "", "last position")
	f.StringVar(&r.sinceText, "since", "", "rows of this time and later: 10m back from now, or like 2026-01-02T15:04:05Z")
	f.BoolVar(&r.follow, "follow", false, "go on behind the last row, until interrupted")
	f.BoolVar(&r.owner, "owner", false, "with --server: read at the shard's owner, whose disk has rows that are not in the bucket yet")
	f.BoolVar(&r.ndjson, "ndjson", false, "a JSON object a row: stream, epoch, seq, ts, txn, payload")
}

func (r *readFlags) check() (err error) {
	if r.follow && r.to != "" {
		return usage("--follow has no end: leave --to out")
	}
	if r.owner && r.server == "" {
		return usage("--owner: give a --server that knows it")
	}
	r.since, err = since(r.sinceText, time.Now())
	return err
}

// since reads a duration back from now, or a time.
func since(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, form := range []string{time.RFC3339Nano, time.DateTime, time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usage("--since %q: give a duration like 10m, or a time like 2026-01-02T15:04:05Z", text)
}

// least is the earliest time that is shown.
func (r *readFlags) least() int64 {
	if r.since.IsZero() {
		return math.MinInt64
	}
	return r.since.UnixNano()
}

// planRefs are looked at in one query.
const planRefs = 4096

// beginSince is where the first ref begins that may hold a row of a time or later; zero: it is
// not known, or there is none. What is behind the last ref is read, too, if it comes meanwhile.
func beginSince(ctx context.Context, cat catalog.Catalog, stream string, at time.Time) (segment.Pos, error) {
	var from segment.Pos
	for {
		p, err := cat.Plan(ctx, catalog.PlanRequest{Stream: stream, From: from, Limit: planRefs})
		if errors.Is(err, catalog.ErrNotFound) {
			return from, noSuchStream(stream)
		}
		if err != nil || len(p.Refs) == 0 {
			return from, err
		}
		for i := range p.Refs {
			if p.Refs[i].MaxTime >= at.UnixNano() {
				return later(p.Refs[i].FirstPos(), p.LiveIn(p.Refs[i].Epoch)), nil
			}
		}
		// The last ref's own row: it stands, while what is behind it may not yet.
		from = p.Refs[len(p.Refs)-1].LastPos()
		if !p.More {
			return from, nil
		}
		from = from.Next()
	}
}

func later(a, b segment.Pos) segment.Pos {
	if a.Less(b) {
		return b
	}
	return a
}

// rowSource is what a client is asked for.
type rowSource func(*client.Client, client.ReadOptions) iter.Seq2[client.Row, error]

// watched ends a follow that a person ends: a signal is its usual end.
func (r *readFlags) watched(ctx context.Context, err error) error {
	if r.follow && ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

// readFrom copies rows of a server out.
func (a *app) readFrom(r *readFlags, rows rowSource) error {
	patience := commandPatience
	if r.follow {
		patience = followPatience
	}
	c, err := a.newClientWith(r.server, &r.caller, patience)
	if err != nil {
		return err
	}
	return a.copyRows(c, r, rows)
}

// followCold follows catalog and bucket: a reader within this process.
func (a *app) followCold(t *tier, top catalog.Topology, r *readFlags, rows rowSource) error {
	c, err := catalogClient(t, top)
	if err != nil {
		return err
	}
	return a.copyRows(c, r, rows)
}

func (a *app) copyRows(c *client.Client, r *readFlags, rows rowSource) error {
	o := client.ReadOptions{Follow: r.follow, Owner: r.owner}
	var err error
	if o.From, err = wirePosition("--from", r.from); err != nil {
		return err
	}
	if o.To, err = wirePosition("--to", r.to); err != nil {
		return err
	}
	out := newPayloadPrinter(a, r.ndjson || a.json)
	out.streams = r.streams
	for row, err := range rows(c, o) {
		if err != nil {
			return firstOf(asked(err), out.flush())
		}
		if row.Time < r.least() {
			continue
		}
		if err := out.row(row.Stream, &coldload.Row{Epoch: row.Epoch, Row: row.Row}); err != nil {
			return err
		}
		if r.follow { // somebody watches
			if err := out.flush(); err != nil {
				return err
			}
		}
	}
	return out.flush()
}

// rowPrinter prints rows: for people a line of token, stream (each if it is wanted) and
// payload; for machines a JSON object each.
type rowPrinter struct {
	out     *bufio.Writer
	enc     *json.Encoder // nil: for people
	streams bool
}

// newRowPrinter prints rows of many streams.
func newRowPrinter(a *app, ndjson bool) *rowPrinter {
	p := newPayloadPrinter(a, ndjson)
	p.streams = true
	return p
}

func newPayloadPrinter(a *app, ndjson bool) *rowPrinter {
	p := &rowPrinter{out: bufio.NewWriterSize(a.out, 256<<10)}
	if ndjson {
		p.enc = json.NewEncoder(p.out)
	}
	return p
}

func (p *rowPrinter) row(stream string, row *coldload.Row) error { return p.withToken("", stream, row) }

func (p *rowPrinter) withToken(token, stream string, row *coldload.Row) error {
	if p.enc != nil {
		l := httpapi.LineOf(stream, row)
		l.Token = token
		return written(p.enc.Encode(l))
	}
	if token != "" {
		_, _ = p.out.WriteString(token + "\t") // a bufio.Writer keeps its first error for the last write
	}
	if p.streams {
		_, _ = p.out.WriteString(stream + "\t") // likewise
	}
	_, _ = p.out.Write(row.Payload) // likewise
	return written(p.out.WriteByte('\n'))
}

func (p *rowPrinter) flush() error { return written(p.out.Flush()) }

func written(err error) error {
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
