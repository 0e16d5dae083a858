package auditbench

import (
	"sync/atomic"
	"time"
)

// clock is the time of a tier's catalog and duties: the process's, moved forward over
// the graces, which nobody has to wait for. Safe for concurrent use.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }
