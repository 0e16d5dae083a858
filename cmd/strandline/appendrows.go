package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/client"
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
	// finishTime is how long an interrupted append waits for the answers under way.
	finishTime = 5 * time.Second
)

// chunk is a run of lines, and why there are no more of them.
type chunk struct {
	lines [][]byte
	first int   // the number of its first line
	bytes int   // of the lines with their ends
	err   error // behind the lines; io.EOF: the input is over
}

// readChunks reads the input into chunks of at most most bytes (one line may have more), and
// sends what there is whenever the input pauses. It holds one chunk while another is posted.
func readChunks(ctx context.Context, r io.Reader, most int, out chan<- chunk) {
	defer close(out)
	in := bufio.NewReaderSize(r, readAhead)
	send := func(c chunk) bool {
		select {
		case out <- c:
			return true
		case <-ctx.Done():
			return false
		}
	}
	c := chunk{first: 1}
	for {
		line, err := readLine(in)
		if err != nil {
			c.err = err
			send(c)
			return
		}
		if len(c.lines) > 0 && c.bytes+len(line)+1 > most {
			if !send(c) {
				return
			}
			c = chunk{first: c.first + len(c.lines)}
		}
		c.lines, c.bytes = append(c.lines, line), c.bytes+len(line)+1
		if in.Buffered() == 0 && most == batchBytes {
			if !send(c) {
				return
			}
			c = chunk{first: c.first + len(c.lines)}
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

// appender posts lines in batches, in order within each stream.
type appender struct {
	client  *client.Client
	route   func(line []byte) (string, error)
	ack     client.Ack
	results map[string]*appended
	streams map[string]*client.Appender

	// producer of an input that is one append; zero: none.
	producer localtier.Producer
}

// run appends the input. The reader of the input ends with it, or with the process: nothing
// ends a read of a terminal.
func (ap *appender) run(ctx context.Context, a *app) error {
	bar := a.progress(-1, "appending")
	defer func() { _ = bar.Finish() }() // a bar that cannot be drawn is no reason to fail
	ap.streams = map[string]*client.Appender{}
	most := batchBytes
	if ap.producer.ID != "" {
		most = httpapi.MaxBodyBytes // one append, or a retry could not be told from it
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	chunks := make(chan chunk)
	go readChunks(reading, a.in, most, chunks)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case c, more := <-chunks:
			if !more {
				return context.Cause(ctx) // the reader ends early with the context only
			}
			if ap.producer.ID != "" && c.err == nil {
				return tooMuch(c.first + len(c.lines))
			}
			_ = bar.Add(c.bytes) // likewise
			if err := ap.take(ctx, c); err != nil {
				return err
			}
			if errors.Is(c.err, io.EOF) {
				return nil
			}
		}
	}
}

// take posts a chunk. The lines before one that is refused are whole rows: they are not lost
// for it, unless the input is one append.
func (ap *appender) take(ctx context.Context, c chunk) error {
	if c.err != nil && !errors.Is(c.err, io.EOF) {
		c.err = fmt.Errorf("line %d: %w", c.first+len(c.lines), c.err)
	} else {
		c.err = nil
	}
	streams := map[string][]segment.Row{}
	for i, line := range c.lines {
		stream, err := ap.route(line)
		if err != nil {
			c.err = fmt.Errorf("line %d: %w", c.first+i, err)
			break
		}
		streams[stream] = append(streams[stream], segment.Row{Payload: line})
	}
	if c.err != nil && ap.producer.ID != "" {
		return c.err
	}
	return errors.Join(c.err, ap.post(ctx, streams))
}

// post sends one batch a stream, several streams at once.
func (ap *appender) post(ctx context.Context, streams map[string][]segment.Row) error {
	type sent struct {
		stream string
		res    client.Appended
		err    error
	}
	ctx, cancel := graced(ctx, finishTime)
	defer cancel()
	out := make(chan sent, len(streams))
	var g errgroup.Group
	g.SetLimit(postsAtOnce)
	for stream, rows := range streams {
		send := ap.sender(stream)
		g.Go(func() error {
			res, err := send(ctx, rows)
			out <- sent{stream, res, err}
			return nil
		})
	}
	_ = g.Wait() // results carry the errors
	close(out)
	var errs []error
	for s := range out {
		if s.err != nil {
			errs = append(errs, s.err)
			continue
		}
		ap.record(s.stream, s.res)
	}
	return errors.Join(errs...)
}

// sender is how a stream's batches are sent: under the number that was given, or under those of
// an Appender of its own.
func (ap *appender) sender(stream string) func(context.Context, []segment.Row) (client.Appended, error) {
	if ap.producer.ID != "" {
		o := client.AppendOptions{Ack: ap.ack, Producer: ap.producer.ID, Sequence: ap.producer.Sequence}
		return func(ctx context.Context, rows []segment.Row) (client.Appended, error) {
			return ap.client.Append(ctx, stream, rows, o)
		}
	}
	s := ap.streams[stream]
	if s == nil {
		s = ap.client.NewAppender(stream, client.AppendOptions{Ack: ap.ack})
		ap.streams[stream] = s
	}
	return s.Append
}

func (ap *appender) record(stream string, res client.Appended) {
	r := ap.results[stream]
	if r == nil {
		r = &appended{Stream: stream, Epoch: res.Epoch, Shard: res.Shard, Term: res.Term, First: res.First, FirstToken: res.FirstToken}
		ap.results[stream] = r
	}
	r.Term, r.Last, r.LastToken = res.Term, res.Last, res.LastToken
	r.Rows += int64(res.Rows)
}

// rows is how many are acknowledged.
func (ap *appender) rows() (n int64) {
	for _, r := range ap.results {
		n += r.Rows
	}
	return n
}

func (ap *appender) sorted() []appended {
	all := make([]appended, 0, len(ap.results))
	for _, r := range ap.results {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(x, y appended) int { return strings.Compare(x.Stream, y.Stream) })
	return all
}
