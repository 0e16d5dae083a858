package objstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Store is what the rest of Strandline uses: a Driver with key checks, one retry
// loop with read-back, deadlines and counters around it.
//
// Create-once writes carry a nonce of the call in the object's metadata
// (MetaNonce). After ErrExists, ErrAmbiguous or a lost answer the Store reads the
// nonce back: its own earlier attempt is a success, another's object is
// ErrExists, and what cannot be read is ErrAmbiguous. So a caller sees won, lost
// or unknown, and unknown is rare and real.
//
// A cancelled context starts no mutation. The one exception is the abort of an
// own multipart upload, which cleans up and publishes nothing; it runs under a
// deadline of its own.
//
// A Store is safe for concurrent use.
//
//	put.go     PutOnce PutIfMatch
//	publish.go won, lost or unknown: the read-back behind both and behind Commit
//	get.go     ReadRange ReadSuffix ReadAll Head
//	list.go    List (an iterator over all pages) ListUploads
//	listsorted.go ListSorted: in order of the keys, whatever the store's is
//	delete.go  Delete (any number of keys, in sets)
//	upload.go  NewWriter: a create-once body of unknown length
//	join.go    Writer.CopyRange: server-side ranges among written bytes
//	commit.go  Writer.Commit and Writer.Abort: how an upload ends
//	abort.go   Abort: an upload whose Writer is gone
//	retry.go   the loop; backoff.go: the pauses of schedules around it, and how long a call may take
//	brake.go   what all calls wait for when the store is overloaded
//	stats.go   counters by operation; account.go: the same by kind of error and by time
type Store struct {
	driver Driver
	cfg    Config
	stats  stats
	spare  sync.Pool                    // of *[]byte: spent buffers of a part, for all Writers
	caps   atomic.Pointer[Capabilities] // nil: the driver's own word
	brake  brake
	late   error // why a call's overall deadline ended it
}

// MetaNonce is the metadata name of the writer's nonce.
const MetaNonce = "strandline-nonce"

// New puts a Store around a driver. Zero fields of cfg take their defaults.
func New(driver Driver, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if least := driver.Capabilities().MinPart; cfg.PartSize < least {
		return nil, &Error{Op: "open", Key: driver.Name(), Kind: ErrInvalid, Err: fmt.Errorf(
			"part size %d is below the store's minimum of %d: raise Config.PartSize", cfg.PartSize, least)}
	}
	return &Store{
		driver: driver, cfg: cfg, brake: brake{backoff: cfg.Backoff},
		late: fmt.Errorf("the call took longer than Config.TotalTimeout, %v: %w", cfg.TotalTimeout, context.DeadlineExceeded),
	}, nil
}

// Driver gives conformance suites and doctor the bare driver.
func (s *Store) Driver() Driver { return s.driver }

// Name is the driver's name.
func (s *Store) Name() string { return s.driver.Name() }

// Capabilities are the driver's, as far as Narrow has not taken them back.
func (s *Store) Capabilities() Capabilities {
	if c := s.caps.Load(); c != nil {
		return *c
	}
	return s.driver.Capabilities()
}

// Narrow sets what the store was found to be able to do, before it is used. It can
// only take back what the driver declares: a probe that went well once is no proof
// of more.
func (s *Store) Narrow(found Capabilities) {
	c := s.driver.Capabilities()
	c.OrderedList = c.OrderedList && found.OrderedList
	c.StartAfter = c.StartAfter && found.StartAfter
	c.DirectoryPrefix = c.DirectoryPrefix || found.DirectoryPrefix
	c.RangeCopy = c.RangeCopy && found.RangeCopy
	c.MinCopy = max(c.MinCopy, found.MinCopy)
	c.MinPart = max(c.MinPart, found.MinPart)
	c.EqualParts = c.EqualParts || found.EqualParts
	c.ConditionalComplete = c.ConditionalComplete && found.ConditionalComplete
	c.ListUploads = c.ListUploads && found.ListUploads
	c.Append = c.Append && found.Append
	c.MaxDeleteSet = min(c.MaxDeleteSet, found.MaxDeleteSet)
	s.caps.Store(&c)
}

// Close closes the driver.
func (s *Store) Close() error { return s.driver.Close() }
