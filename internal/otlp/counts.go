package otlp

import (
	"errors"
	"sync/atomic"
)

// Counts are since the start.
type Counts struct {
	// Requests by how they ended: all taken, some records rejected, refused for good, or to
	// be sent again.
	Taken, Partial, Refused, Later int64
	// Records that were answered as durable, retries of them among them, and rejected ones.
	Records, Rejected int64
}

type counters struct {
	taken, partial, refused, later atomic.Int64
	records, rejected              atomic.Int64
}

// Counts reads them; safe for concurrent use.
func (r *Receiver) Counts() Counts {
	c := &r.counters
	return Counts{
		Taken: c.taken.Load(), Partial: c.partial.Load(), Refused: c.refused.Load(), Later: c.later.Load(),
		Records: c.records.Load(), Rejected: c.rejected.Load(),
	}
}

// count notes a request of n records.
func (c *counters) count(n int, no rejected, err error) {
	var bad *refusal
	switch {
	case errors.As(err, &bad):
		c.refused.Add(1)
		return
	case err != nil:
		c.later.Add(1)
		return
	case no.records > 0:
		c.partial.Add(1)
	default:
		c.taken.Add(1)
	}
	c.records.Add(int64(n - no.records))
	c.rejected.Add(int64(no.records))
}
