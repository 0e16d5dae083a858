//go:build unix

package soak

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/segment"
)

// history says which rows a shard's history has: by term, the last seq that the term or one
// before it wrote. Everything is absorbed by now.
type history map[segment.Term]segment.Seq

// has says whether a row that was acknowledged under a term is in the history.
func (h history) has(e *entry) bool { return e.seq <= h[e.term] }

func historyOf(terms []catalog.TermRow) history {
	h, last := history{}, segment.Seq(0)
	for i := range terms {
		last = max(last, terms[i].LastSeq)
		h[terms[i].Term] = last
	}
	return h
}

// judgeRows reads every stream from the bucket and holds it against the ledger.
func (r *run) judgeRows(ctx context.Context) error {
	r.report.Excused, r.report.Salvaged = 0, 0
	for _, name := range r.ledger.names() {
		if err := r.judgeStream(ctx, name); err != nil {
			return fmt.Errorf("stream %s: %w", name, err)
		}
	}
	return nil
}

func (r *run) judgeStream(ctx context.Context, name string) error {
	s := r.ledger.streams[name]
	row, err := r.chain(ctx, s.shard)
	if err != nil {
		return err
	}
	terms, err := r.site.catalog.Terms(ctx, row.Chain)
	if err != nil {
		return err
	}
	r.judgeLosses(s.shard, historyOf(terms))
	stands, err := r.site.catalog.Stream(ctx, name)
	if err != nil {
		return err
	}
	out, p, err := r.site.run(ctx, "cat", r.site.with("cat", name, "--ndjson")...)
	if err != nil {
		return err
	}
	if p.Code() != exitOK {
		r.complain("loss: %s cannot be read: %v", name, &child.EndedError{Process: p})
	}
	lines, err := decodeLines(bytes.NewReader(out))
	if err != nil {
		return err
	}
	j := judgement{run: r, s: s, history: historyOf(terms), begins: max(stands.LiveFrom.Seq, row.WatermarkSeq+1)}
	if stands.LiveFrom.Seq > s.asked {
		r.complain("loss: %s begins at %d, nobody asked for more than %d", name, stands.LiveFrom.Seq, s.asked)
	}
	for _, l := range lines {
		j.row(l.Seq, textOf(l))
	}
	j.end()
	r.report.Judged += int64(len(lines))
	return nil
}

// judgeLosses: a taker begins no lower than what was absorbed before it.
func (r *run) judgeLosses(s segment.Shard, h history) {
	for _, x := range r.ledger.losses[s] {
		if h[x.term]+1 < x.next {
			r.complain("I8: shard %d had absorbed seqs below %d before term %d was ended, its history ends that term at %d", s, x.next, x.term, h[x.term])
		}
	}
}

// judgement is of one stream, row by row in the order in which they were read.
type judgement struct {
	*run
	s       *streamLog
	history history
	begins  segment.Seq // live_from
	last    segment.Seq
	at      map[segment.Seq]uint64
	places  map[uint64]int // how often a row was there
}

func (j *judgement) row(seq segment.Seq, text string) {
	if j.at == nil {
		j.at, j.places = map[segment.Seq]uint64{}, map[uint64]int{}
	}
	if seq <= j.last {
		j.complain("disorder: %s holds seq %d after %d", j.s.name, seq, j.last)
	}
	j.last = max(j.last, seq)
	if seq < j.begins {
		j.complain("leak: %s shows seq %d, below its live_from %d", j.s.name, seq, j.begins)
	}
	n, ok := j.ledger.saw("the judge", j.s.name, seq, text)
	if !ok {
		return
	}
	from, again := j.ledger.salvaged[j.s.shard]
	if j.places[n]++; j.places[n] > 1 && (!again || seq < from) && !j.mayTwice(n) {
		j.complain("twice: row %d of %s stands at seq %d, too", n, j.s.name, seq)
	}
	j.at[seq] = n
}

// mayTwice: an attempt that went unanswered before its shard was taken; and the README's
// limit, a producer that the taker had forgotten.
func (j *judgement) mayTwice(n uint64) bool {
	e := j.s.entryOf(n)
	return e == nil && len(j.ledger.losses[j.s.shard]) > 0 || e != nil && e.straddled
}

// end looks for every acknowledged row.
func (j *judgement) end() {
	j.ledger.mu.Lock()
	missing := j.missing()
	j.ledger.mu.Unlock()
	if n := len(missing); n > 0 {
		j.complain("loss: %s lacks %d acknowledged rows from live_from %d on: %s", j.s.name, n, j.begins, strings.Join(missing[:min(n, 5)], "; "))
	}
}

// missing are the rows that nothing excuses. Under mu.
func (j *judgement) missing() (out []string) {
	_, again := j.ledger.salvaged[j.s.shard]
	for i := range j.s.acked {
		e := &j.s.acked[i]
		n, there := j.at[e.seq]
		switch {
		case there && n == e.n:
		case j.history.has(e) && e.seq < j.begins: // given up
		case !j.history.has(e) && j.ledger.excusable(j.s.shard, e):
			j.report.Excused++
			if j.places[e.n] > 0 {
				j.report.Salvaged++
			} else if again && !j.ledger.deleted[j.fleet.diskOf(e.url)] {
				out = append(out, "not salvaged: "+e.String())
			}
		default:
			out = append(out, e.String())
		}
	}
	return out
}
