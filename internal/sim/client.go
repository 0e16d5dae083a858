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
		n := p.served*clients + i
		c := &client{p: p, w: w, rng: p.rand("client", n), name: fmt.Sprintf("%s-%d-%d", p.name, p.life, n)}
		p.done.Go(func() { c.run(ctx) })
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

// client appends rows now and then, half of them as a producer that asks again.
type client struct {
	p    *process
	w    *localtier.Writer
	rng  *rand.Rand
	name string
	told [5]uint64 // by stream, the producer's last sequence
	gave int       // how often it gave a batch up: another producer begins
}

func (c *client) run(ctx context.Context) {
	for c.p.pause(ctx, time.Millisecond+time.Duration(c.rng.Int64N(int64(c.p.sim.cfg.Pace)))) {
		c.append(ctx)
	}
}

func (c *client) append(ctx context.Context) {
	p, s, rng := c.p, c.p.sim, c.rng
	number := rng.IntN(len(streamNames))
	stream := streamNames[number]
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
	var as localtier.Producer
	tries := 1
	if rng.IntN(2) == 0 {
		c.told[number]++
		as = localtier.Producer{ID: fmt.Sprintf("%s-%d-%d", c.name, c.gave, number), Sequence: c.told[number]}
		tries += rng.IntN(4)
	}
	for try := range tries {
		res, err := c.ask(ctx, as, stream, rows, ack)
		if try > 0 {
			p.hit("append again " + kindOf(err))
		}
		if err == nil && p.alive() {
			s.check.acknowledged(p, recs, res, ack)
		}
		if err == nil {
			return
		}
		if !p.pause(ctx, time.Duration(1+rng.Int64N(int64(5*time.Second)))) {
			return
		}
	}
	if as.ID != "" { // its rows may be there, or may not: the next number is nobody's to know
		c.gave, c.told = c.gave+1, [5]uint64{}
	}
}

func (c *client) ask(ctx context.Context, as localtier.Producer, stream string, rows []segment.Row, ack localtier.Ack) (localtier.Result, error) {
	// Some wait no longer than a publish may take.
	ctx, cancel := context.WithTimeout(ctx, []time.Duration{30 * time.Second, 2 * time.Second}[c.rng.IntN(2)])
	defer cancel()
	res, err := c.w.AppendAs(ctx, as, stream, rows, ack)
	c.p.hit("append " + string(ack) + " " + kindOf(err))
	return res, err
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
