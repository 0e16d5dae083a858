package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// runReader reads streams and shards, and holds every read to I7.
func (p *process) runReader() {
	rng := p.rand("reader", 0)
	r, err := p.newReader(3)
	if err != nil {
		p.sim.check.violated("start", "%s: %v", p.name, err)
		return
	}
	for p.pause(p.ctx, time.Second+time.Duration(rng.Int64N(int64(8*time.Second)))) {
		ctx, cancel := context.WithTimeout(p.ctx, 3*time.Minute)
		if rng.IntN(3) == 0 {
			p.scan(ctx, r, rng)
		} else {
			p.read(ctx, r, rng)
		}
		cancel()
	}
}

func (p *process) newReader(refs int) (*coldload.Reader, error) {
	return coldload.New(p.catalog, p.classes, coldload.Config{PlanRefs: refs, Window: 2, GapBytes: 100, Footers: 2, ScanRefs: 50, Clock: p.now})
}

// got is a row that a read gave.
type got struct {
	at  segment.Pos
	sum uint64
}

func (p *process) read(ctx context.Context, r *coldload.Reader, rng *rand.Rand) {
	p.reading = time.Now()
	stream := streamNames[rng.IntN(len(streamNames))]
	from, tip := p.sim.check.readFrom(stream, rng)
	slow := rng.IntN(3) == 0
	for {
		var rows []got
		var end error
		for row, err := range r.Rows(ctx, stream, from, segment.Pos{}) {
			if err != nil {
				end = err
				break
			}
			rows = append(rows, got{row.Pos(), segment.RowSum(row.Row)})
			if slow && rng.IntN(4) == 0 { // its plan ages, and what it names goes
				p.pause(ctx, time.Duration(rng.Int64N(int64(p.sim.cfg.ReadGrace))))
			}
		}
		p.hit("read " + readKind(end))
		p.sim.check.read(p, stream, from, tip, rows, end)
		loss, ok := acceptedLoss(end)
		if !ok || !p.alive() {
			return
		}
		p.hit("read on behind a loss")
		p.sim.check.behindLoss(p, loss)
		from = loss.First
	}
}

// acceptedLoss is an end of a read that says where to go on.
func acceptedLoss(end error) (*coldload.ReadError, bool) {
	var e *coldload.ReadError
	return e, errors.As(end, &e) && e.Accepted()
}

// readFrom draws where to begin, and says how many rows the stream had by then.
func (k *checker) readFrom(stream string, rng *rand.Rand) (from segment.Pos, tip int) {
	k.sim.applying.Lock()
	defer k.sim.applying.Unlock()
	t := k.model.stream(stream)
	if n := len(t.at); n > 0 && rng.IntN(3) == 0 {
		from = t.at[rng.IntN(n)]
	}
	return from, len(t.at)
}

// read is I7: every read is complete, or a typed error; and its rows are the history's.
func (k *checker) read(p *process, stream string, from segment.Pos, tip int, rows []got, end error) {
	k.sim.applying.Lock()
	defer k.sim.applying.Unlock()
	if k.sim.back.since(p) {
		return
	}
	k.sim.cat.View(func(v memory.View) {
		next, ok := k.given(v, p, stream, from, rows)
		if !ok {
			return
		}
		if end == nil && p.alive() {
			k.skipped(v, p, stream, next, tip)
		}
		at := from
		if n := len(rows); n > 0 {
			at = rows[n-1].at.Next()
		}
		k.readEnd(p, stream, k.overtaken(v, stream, at), k.atLoss(v, stream, at), end)
	})
}

// skipped: rows that a read left out have to be dead.
func (k *checker) skipped(v memory.View, p *process, stream string, from, to int) {
	t := k.model.stream(stream)
	for i := from; i < to; i++ {
		if k.isLive(v, stream, t.chain[i], t.at[i]) {
			k.violated("I7", "%s read %q and was not given the live row at %s: between rows %d and %d", p.name, stream, t.at[i], from, to)
			return
		}
	}
}

// readEnd says which errors a read may end in. overtaken: live_from passed the position
// from which it had yet to give. lost: the row there is one that was lost.
func (k *checker) readEnd(p *process, stream string, overtaken, lost bool, end error) {
	_, given := acceptedLoss(end)
	lost = lost || given && overtaken // it was lost when the read planned, and a trim took it since
	switch {
	case (lost || k.sim.back.noticed()) && errors.Is(end, coldload.ErrLost):
	case end == nil, !p.alive():
	case errors.Is(end, coldload.ErrLost), errors.Is(end, coldload.ErrCorrupt), errors.Is(end, segment.ErrCorrupt):
		k.violated("I7", "%s read %q: %v", p.name, stream, end)
	case errors.Is(end, coldload.ErrTrimmed), errors.Is(end, coldload.ErrDeleted):
		if !overtaken {
			k.violated("I7", "%s read %q, of which nothing was trimmed that it had yet to give: %v", p.name, stream, end)
		}
	case errors.Is(end, catalog.ErrNotFound), errors.Is(end, catalog.ErrUnavailable), errors.Is(end, catalog.ErrAmbiguous),
		errors.Is(end, objstore.ErrUnavailable), errors.Is(end, objstore.ErrShort), errors.Is(end, context.DeadlineExceeded):
	default:
		k.violated("I7", "%s read %q: an error of no kind: %v", p.name, stream, end)
	}
}

func readKind(err error) string {
	switch {
	case errors.Is(err, coldload.ErrTrimmed):
		return "trimmed"
	case errors.Is(err, coldload.ErrDeleted):
		return "deleted"
	case errors.Is(err, coldload.ErrLost):
		return "lost"
	case errors.Is(err, catalog.ErrNotFound):
		return "not found"
	}
	return kindOf(err)
}

func (p *process) scan(ctx context.Context, r *coldload.Reader, rng *rand.Rand) {
	p.reading = time.Now()
	chain, tip, ok := p.sim.check.scanOf(rng)
	if !ok {
		return
	}
	var rows []coldload.ShardRow
	var end error
	for row, err := range r.Scan(ctx, chain, 0) {
		if err != nil {
			end = err
			break
		}
		rows = append(rows, row)
	}
	p.hit("scan " + readKind(end))
	p.sim.check.scanned(p, chain, tip, rows, end)
}

func (k *checker) scanOf(rng *rand.Rand) (segment.Chain, int, bool) {
	k.sim.applying.Lock()
	defer k.sim.applying.Unlock()
	var chains []segment.Chain
	k.sim.cat.View(func(v memory.View) {
		for row := range v.Chains() {
			chains = append(chains, row.Chain)
		}
	})
	if len(chains) == 0 {
		return segment.Chain{}, 0, false
	}
	c := chains[rng.IntN(len(chains))]
	return c, len(k.model.chain(c).rows), true
}

// scanned is I7 for a shard scan.
func (k *checker) scanned(p *process, c segment.Chain, tip int, rows []coldload.ShardRow, end error) {
	k.sim.applying.Lock()
	defer k.sim.applying.Unlock()
	if k.sim.back.since(p) {
		return
	}
	h := k.model.chain(c)
	k.sim.cat.View(func(v memory.View) {
		next := segment.Seq(1)
		for _, r := range rows {
			if r.Seq < next || int(r.Seq) > len(h.rows) || h.rows[r.Seq-1] != (past{r.Stream, segment.RowSum(r.Row)}) {
				k.violated("I7", "%s scanned %s and got seq %d of %q, which is not the history's, or not in order", p.name, c, r.Seq, r.Stream)
				return
			}
			k.unscanned(v, p, c, next, r.Seq)
			next = r.Seq + 1
		}
		if end == nil && p.alive() {
			k.unscanned(v, p, c, next, segment.Seq(tip)+1)
		}
		row := v.Chain(c)
		k.readEnd(p, c.String(), row != nil && next <= row.WatermarkSeq, k.atChainLoss(c, next), end)
	})
}

func (k *checker) unscanned(v memory.View, p *process, c segment.Chain, from, to segment.Seq) {
	for seq := from; seq < to; seq++ {
		stream := k.model.chain(c).rows[seq-1].stream
		if stream[0] != '~' && k.isLive(v, stream, c, segment.Pos{Epoch: c.Epoch, Seq: seq}) {
			k.violated("I7", "%s scanned %s and was not given seq %d of %q, which is live", p.name, c, seq, stream)
			return
		}
	}
}

// atChainLoss is atLoss for a scan.
func (k *checker) atChainLoss(c segment.Chain, next segment.Seq) bool {
	rows := k.model.chain(c).rows
	for seq := next; int(seq) <= len(rows); seq++ {
		if k.isLost(rows[seq-1].stream, segment.Pos{Epoch: c.Epoch, Seq: seq}) {
			return true // that row, or one that is merged with it; it may be dead by now
		}
	}
	return false
}
