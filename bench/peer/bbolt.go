package peer

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

var boltDB = Peer{
	Name: "bbolt", Role: Rival, Module: "go.etcd.io/bbolt", Slow: true,
	Note: "behind the committer, one Update a batch (its own Batch waits 10 ms and is far slower here); rising keys, pages filled; values have no checksum",
	Open: openBolt, Replay: replayBolt,
}

var boltBucket = []byte("log")

type boltLog struct{ db *bbolt.DB }

func openBoltDB(dir string, readOnly bool) (*bbolt.DB, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return bbolt.Open(filepath.Join(dir, "log.db"), 0o644, &bbolt.Options{
		Timeout: time.Minute, FreelistType: bbolt.FreelistMapType, NoFreelistSync: true, ReadOnly: readOnly,
	})
}

func openBolt(dir string, _ Options) (Log, error) {
	db, err := openBoltDB(dir, false)
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(boltBucket)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return commitFor(&boltLog{db}), nil
}

func (l *boltLog) appendBatch(recs [][]byte) error {
	return l.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(boltBucket)
		b.FillPercent = 1 // keys only rise
		for _, rec := range recs {
			n, err := b.NextSequence()
			if err != nil {
				return err
			}
			if err := b.Put(binary.BigEndian.AppendUint64(nil, n), rec); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *boltLog) Close() error { return l.db.Close() }

func replayBolt(dir string, _ Options, sink Sink) error {
	db, err := openBoltDB(dir, true)
	if err != nil {
		return err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(boltBucket).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if err := sink(v); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, db.Close())
}
