package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// streamNames are those of K38: none may be taken for the beginning of another.
var streamNames = []string{"x", "x1", "x~1", "x/", "x%"}

// clients of a writer.
const clients = 3

// serve runs clients against a writer until it is to be closed.
func (p *process) serve(w *localtier.Writer, t catalog.Topology) {
	ctx, end := context.WithCancel(p.ctx)
	for i := range clients {
		rng := p.rand("client", p.served*clients+i)
		p.done.Go(func() { p.client(ctx, w, rng) })
	}
	rng := p.rand("consumer", p.served)
	p.done.Go(func() { p.consume(ctx, w, t, rng) })
	p.watch(ctx, w)
	end()
	p.done.Wait()
}

// watch returns when the writer is to be closed: the end of the process or of the epoch,
// or a shard that will serve no more (its /readyz fails for good).
func (p *process) watch(ctx context.Context, w *localtier.Writer) {
	for {
		t := time.NewTimer(2*time.Second + p.jitter(time.Second))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-w.Over():
			t.Stop()
			return
		case <-t.C:
		}
		for _, st := range w.Status() {
			switch st.State {
			case localtier.StateFenced, localtier.StateHalted, localtier.StateClosed:
				p.hit("shard " + string(st.State))
				return
			}
		}
		if p.closing() {
			return
		}
	}
}

// closing says that the process was asked to end in order.
func (p *process) closing() bool {
	p.sim.mu.Lock()
	defer p.sim.mu.Unlock()
	return p.sim.terms[p.name]
}

// client appends rows now and then.
func (p *process) client(ctx context.Context, w *localtier.Writer, rng *rand.Rand) {
	for p.pause(ctx, time.Millisecond+time.Duration(rng.Int64N(int64(p.sim.cfg.Pace)))) {
		p.append(ctx, w, rng)
	}
}

func (p *process) append(ctx context.Context, w *localtier.Writer, rng *rand.Rand) {
	s := p.sim
	stream := streamNames[rng.IntN(len(streamNames))]
	ack := localtier.AckLocal
	if rng.IntN(5) < 2 {
		ack = localtier.AckShared
	}
	n := 1 + rng.IntN(3)
	size := 10 + rng.IntN(60)
	if rng.IntN(6) == 0 {
		size = 2000
	}
	recs := s.model.attempt(p, stream, n, size)
	rows := make([]segment.Row, n)
	for i, r := range recs {
		rows[i] = segment.Row{Payload: []byte(r.payload)}
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	res, err := w.Append(ctx, stream, rows, ack)
	p.hit("append " + string(ack) + " " + kindOf(err))
	if err == nil && p.alive() {
		s.check.acknowledged(p, recs, res, ack)
	}
}

// consume is a durable consumer's life.
func (p *process) consume(ctx context.Context, w *localtier.Writer, t catalog.Topology, rng *rand.Rand) {
	const name = "c1"
	for p.pause(ctx, 3*time.Second+time.Duration(rng.Int64N(int64(4*time.Second)))) {
		shard := segment.Shard(rng.IntN(int(t.Shards)))
		chain := segment.Chain{Epoch: t.Epoch, Shard: shard}
		switch n := rng.IntN(20); {
		case n < 3:
			_, err := w.CreateConsumer(ctx, shard, name, 0)
			p.hit("consumer create " + kindOf(err))
		case n < 4:
			p.sim.check.consumerGoes(chain)
			err := w.RemoveConsumer(ctx, shard, name)
			p.hit("consumer remove " + kindOf(err))
		default:
			all, err := w.Consumers(ctx, shard)
			if err != nil || len(all) == 0 || all[0].Lag == 0 {
				continue
			}
			to := all[0].Cursor + 1 + segment.Seq(rng.Uint64N(all[0].Lag))
			p.sim.check.consumerAsked(chain, to)
			_, err = w.Ack(ctx, shard, name, to)
			p.hit("consumer ack " + kindOf(err))
		}
	}
}

// payloadOf makes a row's bytes: its number, and a filler that does not compress.
func payloadOf(n uint64, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "row %d ", n)
	rng := rand.New(rand.NewPCG(n, 99))
	for b.Len() < size {
		fmt.Fprintf(&b, "%08x", rng.Uint32())
	}
	return b.String()
}
