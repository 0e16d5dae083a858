package peer

import (
	"errors"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"
)

var raftWAL = Peer{
	Name: "raft-wal", Role: Rival, Module: "github.com/hashicorp/raft-wal",
	Note: "behind the committer; StoreLogs syncs, and the directory with a segment's first sync; replay is GetLog by index",
	Open: openRaft, Replay: replayRaft,
}

// raftLog closes the meta store itself: WAL.Close leaves it open and locked.
type raftLog struct {
	wal  *wal.WAL
	meta *metadb.BoltMetaDB
	last uint64
	logs []*raft.Log
}

func openRaftWAL(dir string, o Options) (*raftLog, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	l := &raftLog{meta: &metadb.BoltMetaDB{}}
	var err error
	l.wal, err = wal.Open(dir, wal.WithSegmentSize(o.SegmentBytes), wal.WithMetaStore(l.meta), wal.WithLogger(hclog.NewNullLogger()))
	if err != nil {
		return nil, errors.Join(err, l.meta.Close())
	}
	if l.last, err = l.wal.LastIndex(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func openRaft(dir string, o Options) (Log, error) {
	l, err := openRaftWAL(dir, o)
	if err != nil {
		return nil, err
	}
	return commitFor(l), nil
}

func (l *raftLog) appendBatch(recs [][]byte) error {
	for len(l.logs) < len(recs) {
		l.logs = append(l.logs, &raft.Log{Term: 1})
	}
	batch := l.logs[:len(recs)]
	for i, rec := range recs {
		l.last++
		batch[i].Index, batch[i].Data = l.last, rec
	}
	return l.wal.StoreLogs(batch)
}

func (l *raftLog) Close() error { return errors.Join(l.wal.Close(), l.meta.Close()) }

func replayRaft(dir string, o Options, sink Sink) error {
	l, err := openRaftWAL(dir, o)
	if err != nil {
		return err
	}
	first, err := l.wal.FirstIndex()
	var log raft.Log
	for i := first; i <= l.last && err == nil; i++ {
		if err = l.wal.GetLog(i, &log); err == nil {
			err = sink(log.Data)
		}
	}
	return errors.Join(err, l.Close())
}
