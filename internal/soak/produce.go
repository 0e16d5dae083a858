//go:build unix

package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/internal/payload"
	"github.com/strandline/strandline/segment"
)

// rowsSent are the rows that producers append.
func rowsSent() payload.Sizes {
	return payload.Sizes{Fat: "fat/", Least: 8 << 10, Spread: 24 << 10}
}

// producer appends numbered rows to one stream. A batch is said again, with its sequence,
// until it is answered; so a row is in the history once.
type producer struct {
	*run
	id     string
	lives  int // how often it began anew
	stream string
	shard  segment.Shard
	rng    *rand.Rand
	next   uint64           // number of the next row
	seq    uint64           // producer sequence of the next batch
	begins map[uint64]entry // the first row of acknowledged batches, by sequence
	who    caller
}

// batch is rows on their way.
type batch struct {
	n    uint64
	rows int
	body string
	ack  string
}

func (p *producer) produce(ctx, last context.Context) error {
	defer p.who.http.CloseIdleConnections()
	for ctx.Err() == nil {
		if err := p.send(last, p.make()); err != nil {
			return fmt.Errorf("the last rows of %s were never answered: %w", p.stream, err)
		}
		child.Pause(ctx, time.Duration(p.rng.IntN(400))*time.Millisecond)
	}
	return nil
}

func (p *producer) make() batch {
	b := batch{n: p.next, rows: 1 + p.rng.IntN(12), ack: "local"}
	if p.rng.IntN(5) == 0 {
		b.ack = "shared"
	}
	var body strings.Builder
	for i := range b.rows {
		body.Write(rowsSent().Row(p.stream, b.n+uint64(i)))
		body.WriteByte('\n')
	}
	b.body = body.String()
	p.next += uint64(b.rows)
	p.ledger.sending(p.stream, p.next)
	return b
}

// send repeats a batch until it is acknowledged or ctx ends.
func (p *producer) send(ctx context.Context, b batch) error {
	ambiguous := false
	var last error
	for {
		base := p.fleet.route(p.shard)
		begun := time.Now()
		got, err := p.post(ctx, base, b)
		if err == nil {
			return p.acked(b, got, receipt{ambiguous: ambiguous, url: base, begun: begun})
		}
		if ctx.Err() != nil {
			return errors.Join(err, last)
		}
		last = err
		ambiguous = p.refused(b, base, err) || ambiguous
		child.Pause(ctx, time.Duration(50+p.rng.IntN(200))*time.Millisecond)
	}
}

func (p *producer) post(ctx context.Context, base string, b batch) (got httpapi.Appended, err error) {
	if base == "" {
		return got, errNobody
	}
	q := url.Values{"ack": {b.ack}, "producer": {p.id}, "sequence": {fmt.Sprint(p.seq)}}
	err = call(ctx, p.who.http, "POST", base+streamPath(p.stream)+"?"+q.Encode(), b.body, &got)
	p.fleet.learn(p.shard, base, err)
	return got, err
}

// refused looks at an answer that is none; true: the rows may be there all the same.
func (p *producer) refused(b batch, base string, err error) bool {
	var pr *problem
	if !errors.As(err, &pr) {
		return !errors.Is(err, errNobody) && !neverSent(err)
	}
	if pr.Code == "sequence" && pr.Expect != nil {
		p.goOn(b, base, *pr.Expect)
	} else if !pr.passing() {
		p.complain("append to %s at %s: %v", p.stream, base, pr)
	}
	return !pr.wroteNothing()
}

// goOn looks at the sequence that the shard expects. One that is lower than ours means that
// batches are out of the history: those must be excusable, all of them. Their numbers are not
// used again for other rows, since an attempt of theirs may still be on its way to the
// taker and would be answered for ours: a new producer begins.
func (p *producer) goOn(b batch, base string, expect uint64) {
	if base != p.fleet.owner(p.shard) {
		return // a former owner that has not heard of it: what it expects is of no history
	}
	if expect > p.seq {
		p.complain("%s at %s expects sequence %d of %s, %d was never sent", p.stream, base, expect, p.id, p.seq)
	}
	l := p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for q := expect; q < p.seq; q++ {
		if e, ok := p.begins[q]; ok && !l.excusable(p.shard, &e) {
			p.complain("loss: %s at %s expects sequence %d, but %d was acknowledged: %s (next batch begins with row %d)", p.stream, base, expect, q, e, b.n)
		}
	}
	p.lives++
	p.id, p.seq = fmt.Sprintf("p%d:%s", p.lives, p.stream), 1
	clear(p.begins)
}

func (p *producer) acked(b batch, got httpapi.Appended, r receipt) error {
	if got.Rows != b.rows || got.Last-got.First+1 != segment.Seq(b.rows) || got.Stream != p.stream || got.Shard != p.shard {
		p.complain("append of %d rows to %s is answered %+v", b.rows, p.stream, got)
	}
	r.stream, r.n, r.rows, r.first, r.term, r.shared = p.stream, b.n, b.rows, got.First, got.Term, b.ack == "shared"
	p.ledger.ack(r)
	p.begins[p.seq] = entry{n: b.n, seq: got.First, term: got.Term, shared: r.shared, url: r.url}
	delete(p.begins, p.seq-5000) // none is ever that far behind
	p.seq++
	return nil
}
