package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/strandline/strandline/catalog"
)

const (
	// chainsEvery is how long what was read of the chains is good for: scrapes come as
	// often, and several at once.
	chainsEvery = 15 * time.Second
	// chainsPatience is how long a scrape waits for it; the answer may come later.
	chainsPatience = 500 * time.Millisecond
	chainsTimeout  = 10 * time.Second
)

// chainsLook remembers the chains as the catalog had them.
type chainsLook struct {
	now func() time.Time

	mu      sync.Mutex
	rows    []catalog.ChainRow
	read    time.Time // when rows were; zero: never
	asked   time.Time
	asking  chan struct{} // closed when the question under way is answered; nil: none is
	closed  bool
	running sync.WaitGroup
}

// look returns the rows of a moment ago, asking for newer ones if they are old. A catalog
// that is away does not hold up a scrape: it has the last ones, with their age.
func (c *chainsLook) look(ctx context.Context, ask func(context.Context) ([]catalog.ChainRow, error)) ([]catalog.ChainRow, time.Time) {
	c.mu.Lock()
	if !c.closed && c.asking == nil && (c.asked.IsZero() || c.now().Sub(c.asked) >= chainsEvery) {
		c.asked, c.asking = c.now(), make(chan struct{})
		c.running.Go(func() { c.ask(context.WithoutCancel(ctx), ask) })
	}
	asking := c.asking
	c.mu.Unlock()
	if asking != nil {
		patience := time.NewTimer(chainsPatience)
		defer patience.Stop()
		select {
		case <-asking:
		case <-patience.C:
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rows, c.read
}

func (c *chainsLook) ask(ctx context.Context, ask func(context.Context) ([]catalog.ChainRow, error)) {
	ctx, cancel := context.WithTimeout(ctx, chainsTimeout)
	defer cancel()
	rows, err := ask(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.rows, c.read = rows, c.now()
	} // else the verb's own counter has it
	close(c.asking)
	c.asking = nil
}

func (c *chainsLook) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
}

// observeChains is the deployment as its catalog has it.
func (p *Provider) observeChains(ctx context.Context, s sink, src *Sources) {
	if src.Chains == nil {
		return
	}
	rows, read := p.chains.look(ctx, src.Chains)
	s.put("strandline_chains_read_timestamp_seconds", stamp(read))
	if read.IsZero() {
		return
	}
	now := p.cfg.Now()
	count := map[string]int{"owned": 0, "ownerless": 0, "closed": 0}
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Closed:
			count["closed"]++
		case now.Before(r.LeaseEnd):
			count["owned"]++
		default:
			count["ownerless"]++
		}
		if !through(r) {
			observeChain(s, r, now)
		}
	}
	for state, n := range count {
		s.put("strandline_chains", float64(n), state)
	}
}

// through says that a closed chain owes nothing any more: the past epochs of a long life
// would fill a scrape.
func through(r *catalog.ChainRow) bool {
	return r.Closed && r.Trimmed == r.AbsorbedEnd && r.TransitBytes == 0 && len(r.Consumers) == 0
}

func observeChain(s sink, r *catalog.ChainRow, now time.Time) {
	epoch, shard := chainLabel(r.Chain)
	s.put("strandline_transit_bytes", float64(r.TransitBytes), epoch, shard)
	s.put("strandline_cursor_lag_slots", float64(r.AbsorbedEnd-r.Rewritten), epoch, shard, "rewritten")
	s.put("strandline_cursor_lag_slots", float64(r.AbsorbedEnd-r.Condemned), epoch, shard, "condemned")
	s.put("strandline_cursor_lag_slots", float64(r.AbsorbedEnd-r.Trimmed), epoch, shard, "trimmed")
	s.put("strandline_cursor_lag_seconds", age(now, r.TransitSince), epoch, shard, "rewritten")
	condemned := r.CondemnedAt
	if r.Condemned == r.Trimmed {
		condemned = time.Time{} // nothing waits
	}
	s.put("strandline_cursor_lag_seconds", age(now, condemned), epoch, shard, "trimmed")
	last := max(r.NextSeq, 1) - 1
	s.put("strandline_chain_retained_rows", float64(max(last, r.WatermarkSeq)-r.WatermarkSeq), epoch, shard)
	if !r.Closed && now.Before(r.LeaseEnd) {
		return // its owner knows better
	}
	var slowest float64
	for _, c := range r.Consumers {
		slowest = max(slowest, float64(max(last, c.Cursor)-c.Cursor))
	}
	s.put("strandline_consumers", float64(len(r.Consumers)), epoch, shard)
	s.put("strandline_cursor_lag_rows", slowest, epoch, shard, "consumer")
}
