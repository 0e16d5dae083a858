//go:build unix

package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/segment"
)

// reader reads from bucket and catalog, in a process for each read. Some are stopped in the
// middle for longer than the read grace: the objects of their plan are gone when they wake up.
type reader struct {
	*run
	rng *rand.Rand
}

func (r *run) read(ctx context.Context) error {
	rd := &reader{run: r, rng: r.rng(3)}
	names := r.ledger.names()
	for child.Pause(ctx, time.Duration(rd.rng.IntN(500))*time.Millisecond) {
		var err error
		if rd.rng.IntN(4) == 0 {
			err = rd.scan(ctx, segment.Shard(rd.rng.IntN(shards)))
		} else {
			err = rd.cat(ctx, names[rd.rng.IntN(len(names))])
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (rd *reader) cat(ctx context.Context, stream string) error {
	from := segment.Seq(0)
	args := []string{"cat", stream, "--ndjson"}
	if e, ok := rd.ledger.anEntry(stream, 0.5+rd.rng.Float64()/2); ok && rd.rng.IntN(3) > 0 {
		from = e.seq
		args = append(args, "--from", fmt.Sprint(from))
	}
	demands := map[string]demand{stream: rd.ledger.demands(stream, from)}
	return rd.one(ctx, demands, args...)
}

func (rd *reader) scan(ctx context.Context, s segment.Shard) error {
	demands := rd.ledger.pullDemands(s)
	args := []string{"scan", fmt.Sprint(s), "--ndjson"}
	for _, name := range rd.ledger.names() {
		if e, ok := rd.ledger.anEntry(name, 0.7); ok && segment.ShardOf(name, shards) == s {
			for k, d := range demands {
				d.from = e.seq
				demands[k] = d
			}
			args = append(args, "--from", fmt.Sprint(e.seq))
			break
		}
	}
	return rd.one(ctx, demands, args...)
}

// one runs a reading command and holds what it prints against the ledger.
func (rd *reader) one(ctx context.Context, demands map[string]demand, args ...string) error {
	pr, pw := io.Pipe()
	p, err := rd.site.launch(args[0], pw, rd.site.with(args...)...)
	if err != nil {
		return err
	}
	go func() {
		<-p.Gone
		_ = pw.Close() // a pipe's Close does not fail
	}()
	stop := context.AfterFunc(ctx, func() { _ = p.Signal(syscall.SIGKILL) }) // the run is over
	defer stop()
	in := io.Reader(pr)
	if rd.rng.IntN(6) == 0 {
		in = &stalling{Reader: pr, after: rd.rng.IntN(256 << 10), stall: func() { rd.stall(ctx, p) }}
	}
	seen, bad := rd.follow(args[0], in)
	_, _ = io.Copy(io.Discard, pr) // what follows a line that is none
	<-p.Gone
	if ctx.Err() != nil {
		return nil
	}
	rd.verdict(p, demands, seen, bad, args)
	return nil
}

// stall stops a read for longer than the read grace.
func (rd *reader) stall(ctx context.Context, p *child.Process) {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return // it has ended
	}
	d := readGrace + time.Duration(rd.rng.Int64N(int64(2*readGrace)))
	child.Pause(ctx, d)
	rd.report.stalled(d)
	_ = p.Signal(syscall.SIGCONT) // likewise
}

// stalling calls stall once, after some bytes.
type stalling struct {
	io.Reader
	after int
	stall func()
}

func (s *stalling) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if s.after -= n; s.after < 0 && s.stall != nil {
		s.stall()
		s.stall = nil
	}
	return n, err
}

// follow takes in a read's rows: in order, each as it was sent.
func (rd *reader) follow(who string, in io.Reader) (seen map[string][]sighting, bad error) {
	seen = map[string][]sighting{}
	rows, bad := decodeLines(in)
	last := segment.Seq(0)
	for _, row := range rows {
		if row.Seq <= last {
			rd.complain("disorder: %s read seq %d after %d", who, row.Seq, last)
			return seen, bad
		}
		last = row.Seq
		if strings.HasPrefix(row.Stream, "~") {
			continue
		}
		if n, ok := rd.ledger.saw(who, row.Stream, row.Seq, textOf(row)); ok {
			seen[row.Stream] = append(seen[row.Stream], sighting{row.Seq, n})
		}
	}
	rd.report.read(int64(len(rows)))
	return seen, bad
}

// verdict: a read is complete or says, by its kind, why not (I7).
func (rd *reader) verdict(p *child.Process, demands map[string]demand, seen map[string][]sighting, bad error, args []string) {
	switch code := p.Code(); {
	case code == exitOK && bad == nil:
		rd.report.count("read complete")
		for stream, d := range demands {
			d.met(strings.Join(args, " "), seen[stream], 0)
		}
	case code == exitUnavailable:
		rd.report.count("read unavailable")
	case code == exitFailed && explained(p.Said()):
		rd.report.count("read refused")
	default:
		rd.complain("I7: %s, its output ended with %v: %v", strings.Join(args, " "), bad, &child.EndedError{Process: p})
	}
}

// readOwners reads over HTTP, where unpublished rows and the bucket's meet.
func (r *run) readOwners(ctx context.Context) error {
	rd := &reader{run: r, rng: r.rng(4)}
	client := newClient()
	defer client.CloseIdleConnections()
	names := r.ledger.names()
	for child.Pause(ctx, time.Duration(200+rd.rng.IntN(800))*time.Millisecond) {
		stream := names[rd.rng.IntN(len(names))]
		urls := r.fleet.urls()
		if len(urls) == 0 {
			continue
		}
		rd.owner(ctx, client, urls[rd.rng.IntN(len(urls))], stream)
	}
	return nil
}

// owner reads the later half of a stream from a writer, owner or not.
func (rd *reader) owner(ctx context.Context, client *http.Client, base, stream string) {
	e, ok := rd.ledger.anEntry(stream, 0.5+rd.rng.Float64()/2)
	if !ok {
		return
	}
	shard := segment.ShardOf(stream, shards)
	era := rd.ledger.era(shard)
	d := rd.ledger.demands(stream, e.seq)
	within, cancel := context.WithTimeout(ctx, 4*callTimeout)
	defer cancel()
	text, err := fetch(within, client, http.MethodGet, fmt.Sprintf("%s%s?from=%d", base, streamPath(stream), e.seq), "")
	var seen map[string][]sighting
	if err == nil {
		seen, err = rd.follow("owner", strings.NewReader(string(text)))
	}
	var p *problem
	switch {
	case err == nil:
		rd.report.count("read complete")
		if era >= 0 && era == rd.ledger.era(shard) { // not of an owner that has not heard of its taker
			d.met("HTTP read", seen[stream], 0)
		}
	case errors.As(err, &p) && !p.passing() && p.Code != "trimmed" && p.Code != "deleted":
		rd.complain("I7: HTTP read of %s from %d: %v", stream, e.seq, p)
	default:
		rd.report.count("read unavailable")
	}
}
