package catalog

import "time"

// Pool is the state of a catalog's connections, for those who watch it.
type Pool struct {
	Open, InUse, Max int
	// Waits are verbs that found no free connection, Waited how long they waited in all;
	// zero where the catalog does not count them.
	Waits  int64
	Waited time.Duration
}

// Pooled is a catalog that keeps connections. The question costs none of them.
type Pooled interface {
	Pool() Pool
}

// Versioned is a catalog that holds its schema against this build's in each transaction.
type Versioned interface {
	// Newer is ErrNewer if the latest transaction found a schema that this build does not know.
	// The question costs nothing.
	Newer() error
}
