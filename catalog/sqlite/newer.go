package sqlite

import (
	"sync/atomic"

	"github.com/strandline/strandline/catalog"
)

// newer is what the latest transaction found of the schema. Another process may bring it
// up while this one runs: from then on nothing here knows what the rows mean, and which of
// them keep an object from its delete.
type newer struct {
	path  string
	found atomic.Pointer[error]
}

// check is the first statement of every transaction, so that it sees the version that the
// others see: the file's first page, which SQLite reads for each of them anyway.
func (n *newer) check(t *tx) error {
	var v int64
	if _, err := t.one("PRAGMA user_version", nil, &v); err != nil {
		return mapError("schema version", err)
	}
	if v <= int64(schemaVersion) {
		if n.found.Load() != nil { // an older copy was put back
			n.found.Store(nil)
		}
		return nil
	}
	err := catalog.NewerSchema("catalog "+n.path, v, int64(schemaVersion))
	n.found.Store(&err)
	return err
}

// Newer tells what the latest transaction found.
func (d *DB) Newer() error {
	if err := d.newer.found.Load(); err != nil {
		return *err
	}
	return nil
}

var _ catalog.Versioned = (*DB)(nil)
