package peer

import (
	"errors"
	"fmt"
	"slices"
)

// Log is one log, open for append.
type Log interface {
	// Producer gives the append function of producer n. It returns once rec is
	// durable, and keeps nothing of it. One goroutine calls it; those of different
	// producers run at once.
	Producer(n int) func(rec []byte) error
	Close() error
}

// Sink takes a record on replay; rec is valid during the call only.
type Sink func(rec []byte) error

// Options of an open.
type Options struct {
	// SegmentBytes is where a log begins its next file.
	SegmentBytes int
	// Keep says that all records will be read back: nothing is reclaimed meanwhile.
	Keep bool
	// Spares is how many files that were written before lie in Peer.SpareDir.
	Spares int
	// Unsynced lets an append be acknowledged before it is durable. JetStream alone
	// heeds it, which takes minutes to fill otherwise; nothing is measured with it.
	Unsynced bool
}

// Role says what a row of the table is.
type Role string

// The roles.
const (
	Ours  Role = "ours"
	Rival Role = "peer" // the best of these is what ours are compared to
	Bare  Role = "bare" // no log
)

// Peer is one implementation.
type Peer struct {
	Name   string
	Role   Role
	Module string // its version is printed
	Note   string
	// Slow peers (far from the best in every cell that was ever measured) are
	// measured with 1 KiB records only, unless asked for, and replay a quarter.
	Slow bool
	// Open opens the log in dir, which is made if it is missing.
	Open func(dir string, o Options) (Log, error)
	// Replay reads a closed log from its beginning, every record. nil: it cannot.
	Replay func(dir string, o Options, sink Sink) error
	// SpareDir is where a log looks for files to write over; nil: it does not.
	SpareDir func(dir string) string
	// NoOpen says that Open on a standing log does not stand for opening it.
	NoOpen bool
}

// All are the implementations in the order of the table.
func All() []Peer {
	return []Peer{
		strandlineWAL, strandlineShard,
		pebbleRecord, etcdWAL, promWlog, raftWAL, tidwallWAL, pebbleDB, boltDB, sqliteFull, jetStream,
		bareGrow, bareOverwrite,
	}
}

// ErrUnknown is a name that All does not have.
var ErrUnknown = errors.New("no such implementation")

// Find gives the peer of a name.
func Find(name string) (Peer, error) {
	all := All()
	i := slices.IndexFunc(all, func(p Peer) bool { return p.Name == name })
	if i < 0 {
		return Peer{}, fmt.Errorf("%w: %q; give one of -list", ErrUnknown, name)
	}
	return all[i], nil
}
