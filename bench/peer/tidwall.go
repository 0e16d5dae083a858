package peer

import (
	"errors"

	"github.com/tidwall/wal"
)

var tidwallWAL = Peer{
	Name: "tidwall/wal", Role: Rival, Module: "github.com/tidwall/wal",
	Note: "behind the committer; WriteBatch syncs. No checksum, and no sync of the directory when a file is begun, so it promises less than the others",
	Slow: true,
	Open: openTidwall, Replay: replayTidwall,
}

type tidwallLog struct {
	wal   *wal.Log
	batch wal.Batch
	last  uint64
}

func openTidwallLog(dir string, o Options) (*tidwallLog, error) {
	w, err := wal.Open(dir, &wal.Options{SegmentSize: o.SegmentBytes, NoCopy: true})
	if err != nil {
		return nil, err
	}
	l := &tidwallLog{wal: w}
	if l.last, err = w.LastIndex(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return l, nil
}

func openTidwall(dir string, o Options) (Log, error) {
	l, err := openTidwallLog(dir, o)
	if err != nil {
		return nil, err
	}
	return commitFor(l), nil
}

func (l *tidwallLog) appendBatch(recs [][]byte) error {
	l.batch.Clear()
	for _, rec := range recs {
		l.last++
		l.batch.Write(l.last, rec)
	}
	return l.wal.WriteBatch(&l.batch)
}

func (l *tidwallLog) Close() error { return l.wal.Close() }

func replayTidwall(dir string, o Options, sink Sink) error {
	l, err := openTidwallLog(dir, o)
	if err != nil {
		return err
	}
	first, err := l.wal.FirstIndex()
	for i := first; i <= l.last && i > 0 && err == nil; i++ {
		var rec []byte
		if rec, err = l.wal.Read(i); err == nil {
			err = sink(rec)
		}
	}
	return errors.Join(err, l.Close())
}
