package sqlite

import "github.com/strandline/strandline/catalog"

// Pool is the reading connections, and the writing one. Who waits is not counted: readers
// wait for each other a moment at a time, writers are committed in groups.
func (d *DB) Pool() catalog.Pool {
	p := catalog.Pool{Max: cap(d.readers), Open: cap(d.readers), InUse: cap(d.readers) - len(d.readers)}
	if d.writer != nil {
		p.Max, p.Open = p.Max+1, p.Open+1
	}
	return p
}

var _ catalog.Pooled = (*DB)(nil)
