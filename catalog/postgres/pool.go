package postgres

import "github.com/strandline/strandline/catalog"

// Pool is the connections of this process. A wait is a verb that found none free.
func (d *DB) Pool() catalog.Pool {
	s := d.pool.Stat()
	return catalog.Pool{
		Open: int(s.TotalConns()), InUse: int(s.AcquiredConns()), Max: int(s.MaxConns()),
		Waits: s.EmptyAcquireCount(), Waited: s.EmptyAcquireWaitTime(),
	}
}

var _ catalog.Pooled = (*DB)(nil)
