package peer

import (
	"encoding/binary"
	"errors"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

var pebbleDB = Peer{
	Name: "pebble", Role: Rival, Module: "github.com/cockroachdb/pebble/v2",
	Note: "the whole store: Set with Sync under a rising key, its own group commit and recycled log files; memtable 64 MiB, otherwise as it comes; flushes and compactions run meanwhile; replay is an iterator",
	Open: openPebble, Replay: replayPebble,
}

type pebbleLog struct {
	db   *pebble.DB
	last atomic.Uint64
}

// quiet drops what pebble says; it ends the process by a panic on what is fatal.
type quiet struct{}

func (quiet) Infof(string, ...any)           {}
func (quiet) Errorf(string, ...any)          {}
func (quiet) Fatalf(format string, _ ...any) { panic(format) }

func openPebbleDB(dir string) (*pebble.DB, error) {
	return pebble.Open(dir, &pebble.Options{
		FormatMajorVersion: pebble.FormatNewest, MemTableSize: 64 << 20, Logger: quiet{},
	})
}

func openPebble(dir string, _ Options) (Log, error) {
	db, err := openPebbleDB(dir)
	if err != nil {
		return nil, err
	}
	l := &pebbleLog{db: db}
	it, err := db.NewIter(nil)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if it.Last() {
		l.last.Store(binary.BigEndian.Uint64(it.Key()))
	}
	if err := it.Close(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return l, nil
}

func (l *pebbleLog) Producer(int) func(rec []byte) error {
	key := make([]byte, 8)
	return func(rec []byte) error {
		binary.BigEndian.PutUint64(key, l.last.Add(1))
		return l.db.Set(key, rec, pebble.Sync)
	}
}

func (l *pebbleLog) Close() error { return l.db.Close() }

func replayPebble(dir string, _ Options, sink Sink) error {
	db, err := openPebbleDB(dir)
	if err != nil {
		return err
	}
	it, err := db.NewIter(nil)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		err = sink(it.Value())
	}
	return errors.Join(err, it.Error(), it.Close(), db.Close())
}
